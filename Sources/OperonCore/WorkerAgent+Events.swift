import DequeModule
import OperonModel

// What the worker reports to the coordinator, and when it may forget a report.
extension WorkerAgent {
    /// Gives an event a number, and keeps it until it is acknowledged.
    mutating func record(_ event: WorkerEvent) {
        let bytes = event.byteCount
        events.append(RetainedEvent(event: event, byteCount: bytes))
        retainedBytes += bytes
        switch event {
        case .started, .added, .yielded, .read: break
        case .finished(let held, _), .returned(let held): finalAttempts.insert(held.attempt)
        }
    }

    /// The coordinator has acknowledged every event up to this number.
    mutating func acknowledge(_ number: UInt64) {
        while firstEvent <= number, let first = events.first {
            forget(first)
        }
    }

    private mutating func forget(_ first: RetainedEvent) {
        events.removeFirst()
        firstEvent += 1
        retainedBytes -= first.byteCount
        if sentCount > 0 {
            sentCount -= 1
            inFlightBytes -= first.byteCount
        }
        switch first.event {
        case .started, .added, .yielded, .read: break
        case .finished(let held, _), .returned(let held): finalAttempts.remove(held.attempt)
        }
    }

    /// The coordinator is missing the events from this number on.
    mutating func resend(from number: UInt64) {
        guard number >= firstEvent else { return }
        let keep = Int(min(number - firstEvent, UInt64(sentCount)))
        for index in keep..<sentCount { inFlightBytes -= events[index].byteCount }
        sentCount = keep
    }

    /// Sends as many events as fit into the window, several in a message.
    mutating func sendEvents(at now: Timestamp, into effects: inout Effects) {
        guard link == .welcomed else { return }
        while sentCount < events.count {
            var batch: [WorkerEvent] = []
            var bytes = 0
            let firstNumber = firstEvent + UInt64(sentCount)
            while sentCount < events.count, batch.count < configuration.eventsPerMessage {
                let next = events[sentCount]
                // An event may be larger than the window or a message: it travels alone.
                let fits =
                    inFlightBytes == 0 || inFlightBytes + next.byteCount <= settings.eventWindow
                let joins =
                    batch.isEmpty || bytes + next.byteCount <= configuration.eventBytesPerMessage
                guard fits, joins else { break }
                batch.append(next.event)
                bytes += next.byteCount
                inFlightBytes += next.byteCount
                sentCount += 1
            }
            guard !batch.isEmpty else { return hastenBeat(at: now) }
            append(
                .events(EventBatch(firstNumber: firstNumber, sentAt: now, events: batch)),
                lane: .events,
                into: &effects
            )
            if configuration.violation == .forgetsOnSend {
                acknowledge(firstEvent + UInt64(sentCount) - 1)
            }
        }
    }

    /// Sends a beat now if the next event does not fit into the window. The coordinator
    /// acknowledges less than half a window only with the answer to a beat. At most one such beat
    /// is sent for each event that waits for room.
    private mutating func hastenBeat(at now: Timestamp) {
        let next = firstEvent + UInt64(sentCount)
        guard inFlightBytes < settings.eventWindow / 2, hastenedEvent != next else { return }
        hastenedEvent = next
        nextBeat = min(nextBeat, now)
    }

    /// Reports the starts of attempts that have run long enough for a separate report.
    mutating func reportStarts(at now: Timestamp) {
        while let attempt = unreportedStarts.first {
            guard let place = held.index(forKey: attempt),
                let startedAt = held.values[place].startedAt,
                !held.values[place].isStartReported
            else {
                unreportedStarts.removeFirst()
                continue
            }
            guard now - startedAt >= configuration.startReportDelay else { return }
            unreportedStarts.removeFirst()
            reportStart(attempt)
        }
    }

    mutating func reportStart(_ attempt: AttemptID) {
        guard let place = held.index(forKey: attempt),
            let startedAt = held.values[place].startedAt,
            !held.values[place].isStartReported
        else { return }
        held.values[place].isStartReported = true
        record(.started(held.values[place].operation.held, at: startedAt))
    }
}
