import Logging
import OperonCore
import OperonModel

// An event that crashes the coordinator each time it is handled is set aside at the fourth time;
// otherwise its sender would resend it to every later coordinator. A coordinator without a store on
// a disk does not need this: its reign ends with it, and nothing of that reign is sent to the next
// coordinator.
extension CoordinatorService {
    /// Splits events into groups to be handled one after the other. An event that was in hand at a
    /// crash gets its own group, which shows whether it was the cause. An event that was in hand at
    /// three crashes in a row is replaced, or left out.
    func vetted(_ events: [Scheduler.Event]) -> [[Scheduler.Event]] {
        guard let inHand else { return [events] }
        let events = events.flatMap(Self.noted)
        guard inHand.hasSuspects else { return [events] }
        var groups: [[Scheduler.Event]] = [[]]
        for event in events {
            guard case .workerMessage(let envelope) = event else {
                groups[groups.count - 1].append(event)
                continue
            }
            if case .events(let batch) = envelope.body {
                vet(batch, of: envelope, by: inHand, into: &groups)
                continue
            }
            let key = EventIdentity(envelope)?.key
            guard let key, inHand.isSuspect(key) else {
                groups[groups.count - 1].append(event)
                continue
            }
            if inHand.isFatal(key) {
                logger.error(
                    "message set aside: the coordinator ended three times while it handled it",
                    metadata: ["worker": "\(envelope.sender.name)"]
                )
            } else {
                groups += [[event], []]
            }
        }
        return groups.filter { !$0.isEmpty }
    }

    /// Splits messages so that all events of each can be noted before the first is handled.
    /// Well-behaved workers never send longer messages.
    private static func noted(_ event: Scheduler.Event) -> [Scheduler.Event] {
        guard case .workerMessage(let envelope) = event,
            case .events(let batch) = envelope.body, batch.events.count > EventsInHand.inHandMax
        else { return [event] }
        return stride(from: 0, to: batch.events.count, by: EventsInHand.inHandMax).map { start in
            var part = batch
            part.events = Array(batch.events[start...].prefix(EventsInHand.inHandMax))
            // Wrapping arithmetic: the numbers come from outside.
            part.firstNumber &+= UInt64(start)
            var copy = envelope
            copy.body = .events(part)
            return .workerMessage(copy)
        }
    }

    private func vet(
        _ batch: EventBatch,
        of envelope: WorkerEnvelope,
        by inHand: EventsInHand,
        into groups: inout [[Scheduler.Event]]
    ) {
        var part = batch
        part.events = []
        func message() -> Scheduler.Event {
            var copy = envelope
            copy.body = .events(part)
            return .workerMessage(copy)
        }
        func close() {
            if !part.events.isEmpty { groups[groups.count - 1].append(message()) }
            // Wrapping arithmetic: the numbers come from outside.
            part.firstNumber &+= UInt64(part.events.count)
            part.events = []
        }
        for event in batch.events {
            let key = EventIdentity(event).key
            guard inHand.isSuspect(key) else {
                part.events.append(event)
                continue
            }
            if inHand.isFatal(key) {
                part.events.append(setAside(event, sentAt: batch.sentAt))
                inHand.forget(key)
                continue
            }
            close()
            part.events = [event]
            groups.append([message()])
            groups.append([])
            part.firstNumber &+= 1
            part.events = []
        }
        close()
    }

    /// The event that is handled instead: its attempt fails.
    private func setAside(_ event: WorkerEvent, sentAt: Timestamp) -> WorkerEvent {
        let held = event.held
        logger.error(
            "event set aside: the coordinator ended three times while it handled it",
            metadata: ["operation": "\(held.operation)", "attempt": "\(held.attempt)"]
        )
        let why = "the coordinator ended three times while it handled what this operation sent"
        return .finished(
            held,
            AttemptResult(end: .failed(.undecodable(why)), startedAt: sentAt, endedAt: sentAt)
        )
    }

    /// Returns `nil` if the file cannot be used: the coordinator works without it, but cannot
    /// detect an event that crashes it repeatedly.
    static func eventsInHand(besideStore path: String, _ logger: Logger) -> EventsInHand? {
        do throws(SystemError) {
            return try EventsInHand(besideStore: path)
        } catch {
            logger.warning(
                "an event that ends the coordinator would not be found out",
                metadata: ["reason": "\(error)"]
            )
            return nil
        }
    }

    /// Notes the event as in hand, before any part of it is read.
    func take(_ event: Scheduler.Event) {
        guard let inHand, case .workerMessage(let envelope) = event else { return }
        guard case .events(let batch) = envelope.body else {
            if let identity = EventIdentity(envelope) { inHand.take(identity.key) }
            return
        }
        inHand.makeRoom(for: batch.events.count)
        for event in batch.events { inHand.take(EventIdentity(event).key) }
        passed(.inHand)
        if event.hasRequests { passed(.requestInHand) }
    }

    /// Marks everything in hand as handled; with `false`, as to be taken again later.
    func putDown(isHandled: Bool = true) { inHand?.clear(isHandled: isHandled) }
}
