import Logging
import NIOCore
import OperonCore
import OperonModel
import OperonPorts
import OperonSystem

/// The differences between the two sides of a transport.
protocol LinkRole: Sendable {
    associatedtype Event: Sendable

    var names: Topology { get }
    /// The methods that declare and consume on the connection with this number, in order.
    func preparation(number: UInt32) -> [OutgoingMethod]
    func up(number: UInt32) -> Event
    func down(reason: String) -> Event
    /// The event for missing declarations of the other side; `nil` if there is no such event.
    func absent() -> Event?
    func message(_ body: [UInt8]) -> Event
    /// The event for a returned message; `nil` if there is no such event.
    func returned(routingKey: String, exchange: String) -> Event?
    func blocked(_ isBlocked: Bool, reason: String) -> Event
    /// The event for an attempt to connect that failed; `nil` if there is no such event.
    func unreachable(reason: String) -> Event?
    /// The event for a message that has to be answered, which came over the connection of this
    /// attempt.
    func delivery(_ message: MessageAssembler.Message, attempt: UInt64) -> Event?
}

extension LinkRole {
    func unreachable(reason: String) -> Event? { nil }

    func delivery(_ message: MessageAssembler.Message, attempt: UInt64) -> Event? { nil }
}

/// The shell around `LinkStateMachine`. It performs the machine's effects on one event loop, moves
/// messages from the outbox to the connection, and passes incoming events to the one consumer of
/// `inbox`.
///
/// `@unchecked Sendable`: all mutable state is used on `loop` only.
final class AMQPLink<Role: LinkRole>: @unchecked Sendable {
    private enum Fault: Hashable { case tooLargeToSend, overLimit }

    let inbox: BatchBuffer<Role.Event>
    let outbox: Outbox
    let role: Role
    let configuration: AMQPConfiguration
    let loop: any EventLoop
    let logger: Logger
    var connection: AMQPConnection?

    private var machine: LinkStateMachine
    private var generator: SeededGenerator
    private let ended: EventLoopPromise<LinkEnd>
    private var timer: Scheduled<Void>?
    private var timerAt: Timestamp?
    private var queue = CircularBuffer<LinkStateMachine.Event>()
    private var isHandling = false
    private var isUp = false
    /// The last reported reason why there is no connection.
    private var toldReason: String?
    private let faults = FaultLog<Fault>()
    /// Whether people were told that there is no connection, before there ever was one.
    private var hasToldTrouble = false
    private var hasBeenUp = false
    private var hasToldAbsence = false
    private var isDraining = false
    /// The events of the current read and their cost.
    private var batch: [Role.Event] = []
    private var batchBytes = 0
    /// Deliveries that came before the last consumer was confirmed. They wait so that `up` comes
    /// first.
    private var early: [Role.Event] = []
    private var isReadingPaused = false
    private var ask: Ask?

    /// A question to the holder of the lock.
    private struct Ask {
        let queue: String
        let timeout: Scheduled<Void>
    }

    init(
        role: Role,
        configuration: AMQPConfiguration,
        machine: LinkStateMachine.Configuration,
        seed: UInt64,
        logger: Logger,
        group: any EventLoopGroup
    ) {
        self.role = role
        self.configuration = configuration
        self.logger = logger
        loop = group.any()
        generator = SeededGenerator(seed: seed)
        self.machine = LinkStateMachine(configuration: machine, seed: generator.next())
        outbox = Outbox(bytesMax: configuration.limits.outgoingBytes)
        // As many bytes may wait for the consumer as for the broker in the other direction; the
        // rest stays in the broker.
        inbox = BatchBuffer(costLimit: configuration.limits.outgoingBytes)
        ended = loop.makePromise()
        inbox.setOnRoom { [weak self] in
            guard let self else { return }
            loop.execute { self.setReadingPaused(false) }
        }
    }

    /// If the transport never ran, nobody waits for this promise.
    deinit { ended.succeed(.closed) }

    // MARK: - Calls from any thread

    func run() async throws {
        let end = try await withTaskCancellationHandler {
            loop.execute { self.handle(.started) }
            return try await ended.futureResult.get()
        } onCancel: {
            loop.execute { self.handle(.cancelled) }
        }
        switch end {
        case .closed: return
        case .accessRefused(let reason): throw PortError(.accessRefused, reason)
        case .incompatible(let reason): throw PortError(.protocolViolation, reason)
        case .prefixHeld(let holder): throw PortError(.prefixHeld, heldSentence(holder))
        }
    }

    func send(_ message: Outbox.Message) async {
        guard message.body.count <= configuration.bodyBytesMax else {
            guard let count = faults.count(.tooLargeToSend, at: now) else { return }
            return logger.error(
                "a message over the limit was not sent",
                metadata: ["bytes": "\(message.body.count)", "messages": "\(count)"]
            )
        }
        if outbox.append(message) { loop.execute { self.pump() } }
        await outbox.waitForRoom(isBulk: message.isBulk)
    }

    /// Answers a delivery. Returns whether the connection that it came over is still up: on another
    /// one the broker delivers the message again, and the answer would mean another delivery.
    func answer(_ method: OutgoingMethod, attempt: UInt64) async -> Bool {
        let isWritten = loop.submit {
            guard self.isUp, let connection = self.connection, connection.attempt == attempt else {
                return false
            }
            connection.answer(method)
            self.machine.bytesSent(at: self.now)
            return true
        }
        // The loop has ended only if the process ends.
        return (try? await isWritten.get()) ?? false
    }

    func reconnect() async {
        loop.execute { self.handle(.reconnectRequested) }
    }

    func close() async {
        loop.execute { self.handle(.closeRequested) }
        _ = try? await ended.futureResult.get()
    }

    private func heldSentence(_ holder: String?) -> String {
        let who =
            holder.map { "Another coordinator holds the prefix “\(role.names.prefix)”: \($0)." }
            ?? "The prefix “\(role.names.prefix)” is locked, and its holder does not answer."
        return who + " Stop it, or choose another prefix."
    }

    // MARK: - The state machine

    func handle(_ event: LinkStateMachine.Event) {
        queue.append(event)
        // An effect may cause events; they wait until all earlier effects have been performed.
        guard !isHandling else { return }
        isHandling = true
        while let event = queue.popFirst() {
            var effects: [LinkStateMachine.Effect] = []
            machine.handle(event, at: now, into: &effects)
            for effect in effects { perform(effect) }
        }
        isHandling = false
        setTimer()
    }

    /// Whether this attempt to connect still needs a socket.
    func isCurrent(_ attempt: UInt64) -> Bool { machine.isConnecting(attempt: attempt) }

    private var now: Timestamp {
        Timestamp(nanoseconds: Int64(NIODeadline.now().uptimeNanoseconds))
    }

    private func perform(_ effect: LinkStateMachine.Effect) {
        switch effect {
        case .connect(let attempt): connect(attempt: attempt)
        case .prepare(let number):
            connection?.prepare(role.preparation(number: number))
        case .announceUp(let number): announceUp(number: number)
        case .announceDown(let reason): announceDown(reason: reason)
        case .sendHeartbeat: connection?.sendHeartbeat()
        case .disconnect(let reason): disconnect(reason: reason)
        case .drain:
            isDraining = true
            outbox.stopAccepting()
            pump()
        case .end(let end): finish(end)
        }
    }

    private func announceUp(number: UInt32) {
        // As loud as the trouble: who heard of that waits for this. Of later connections, the owner
        // of the link tells.
        logger.log(
            level: hasToldTrouble && !hasBeenUp ? .warning : .info,
            "connected",
            metadata: ["connection": "\(number)"]
        )
        (isUp, hasBeenUp) = (true, true)
        toldReason = nil
        hasToldAbsence = false
        outbox.begin()
        batch.append(role.up(number: number))
        batch.append(contentsOf: early)
        early = []
        flushBatch()
    }

    private func announceDown(reason: String) {
        isUp = false
        // The owner of the link logs it.
        toldReason = reason
        outbox.drop()
        batch.append(role.down(reason: reason))
        flushBatch()
    }

    /// Notifies once each time the link waits for the other side.
    private func announceAbsence() {
        guard !hasToldAbsence, let event = role.absent() else { return }
        hasToldAbsence = true
        batch.append(event)
        flushBatch()
    }

    private func disconnect(reason: String) {
        // Log each reason once: a broker that is away for an hour makes one line. The owner of the
        // link logs the end of the link and the loss of a connection that was up.
        let isNews = reason != toldReason && !isUp && machine.state != .ended
        toldReason = reason
        if isNews { hasToldTrouble = true }
        logger.log(
            level: isNews ? .warning : .debug,
            "not connected",
            metadata: ["reason": "\(reason)"]
        )
        if isNews, let event = role.unreachable(reason: reason) {
            batch.append(event)
            flushBatch()
        }
        ask?.timeout.cancel()
        ask = nil
        early = []
        hasToldAbsence = false
        connection?.drop()
        connection = nil
    }

    private func finish(_ end: LinkEnd) {
        outbox.drop()
        flushBatch()
        inbox.finish()
        connection?.drop()
        connection = nil
        ended.succeed(end)
    }

    /// One timer, rescheduled only if it would fire too late. Bytes that keep a connection alive
    /// postpone its deadline; the machine finds that out when the timer fires.
    private func setTimer() {
        guard let wakeAt = machine.wakeAt else {
            timer?.cancel()
            timerAt = nil
            return
        }
        if let timerAt, timerAt <= wakeAt { return }
        timer?.cancel()
        timerAt = wakeAt
        let deadline = NIODeadline.uptimeNanoseconds(UInt64(max(wakeAt.nanoseconds, 0)))
        timer = loop.scheduleTask(deadline: deadline) {
            self.timerAt = nil
            // While reading is paused, missing data does not mean that the broker is silent.
            if self.isReadingPaused { self.machine.bytesReceived(at: self.now) }
            self.handle(.tick)
        }
    }
}

// MARK: - Messages

extension AMQPLink {
    /// The most bytes that are written at a time. While the socket accepts no more, the rest waits
    /// in the outbox, where a beat can still overtake it.
    private static var writeBytesMax: Int { 128 << 10 }

    func pump() {
        guard isUp || isDraining, let connection else { return }
        var hasWritten = false
        while connection.isWritable {
            if connection.hasRest {
                // Send beats between the frames of a large message.
                let beats = outbox.takeUrgent()
                if !beats.isEmpty { connection.write(beats, names: role.names) }
                connection.writeRest()
                hasWritten = true
                continue
            }
            let messages = outbox.take(bytesMax: Self.writeBytesMax)
            guard !messages.isEmpty else {
                if hasWritten { flush(connection) }
                if isDraining { connection.sayGoodbye() }
                return
            }
            connection.write(messages, names: role.names)
            hasWritten = true
        }
        if hasWritten { flush(connection) }
    }

    private func flush(_ connection: AMQPConnection) {
        connection.flush()
        machine.bytesSent(at: now)
    }

    private func flushBatch() {
        guard !batch.isEmpty else { return }
        let hasRoom = inbox.append(batch, cost: batchBytes)
        batch = []
        batchBytes = 0
        if !hasRoom { setReadingPaused(true) }
    }

    private func setReadingPaused(_ isPaused: Bool) {
        // The consumer may have made room between two batches; then a pause would never end.
        let isPaused = isPaused && !inbox.hasRoom
        isReadingPaused = isPaused
        connection?.setReadingPaused(isPaused)
    }

    private func arrived(_ event: Role.Event, bytes: Int = 0) {
        guard isUp else { return early.append(event) }
        batch.append(event)
        batchBytes += bytes
    }
}

// MARK: - Events of the connection

extension AMQPLink: AMQPConnectionOwner {
    func opened(_ connection: AMQPConnection, heartbeat: Duration) {
        handle(.opened(attempt: connection.attempt, heartbeat: heartbeat))
    }

    func ready(_ connection: AMQPConnection) {
        guard let ask else { return handle(.ready(attempt: connection.attempt)) }
        // The queue for the answer is ready, so publish the question to the locked queue.
        connection.publish([], to: role.names.lock, replyTo: ask.queue, isMandatory: true)
    }

    func failed(_ connection: AMQPConnection, _ failure: LinkFailure) {
        handle(.failed(attempt: connection.attempt, failure))
    }

    func channelClosed(
        _ connection: AMQPConnection,
        _ reason: CloseReason,
        during step: OutgoingMethod
    ) {
        if ask != nil { return answered(nil) }
        if reason.code == CloseReason.resourceLocked, case .queueDeclare(role.names.lock, _) = step
        {
            return askHolder(connection)
        }
        let failure: LinkFailure =
            switch reason.code {
            case CloseReason.accessRefused:
                .refused("\(configuration.address) refuses what we need: \(reason.text)")
            case CloseReason.notFound: .absent(reason.text)
            case CloseReason.preconditionFailed:
                .incompatible("something of another kind is in the way: \(reason.text)")
            default: .lost("the broker closed the channel: \(reason.text)")
            }
        logger.debug("not there yet", metadata: ["reason": "\(reason.text)"])
        if case .absent = failure { announceAbsence() }
        handle(.failed(attempt: connection.attempt, failure))
    }

    func received(_ connection: AMQPConnection, _ message: MessageAssembler.Message) {
        guard connection === self.connection else { return }
        switch message.origin {
        case .returned(let routingKey, let exchange):
            if ask != nil { return answered(nil) }
            if let event = role.returned(routingKey: routingKey, exchange: exchange) {
                arrived(event)
            }
        case .delivered(.lock):
            guard let replyTo = message.properties.replyTo else { return }
            connection.publish(
                configuration.currentHolder.answer,
                to: replyTo,
                replyTo: nil,
                isMandatory: false
            )
        case .delivered(.asks):
            if let body = message.body { answered(PrefixHolder(answer: body)) }
        case .delivered(.messages):
            if let event = role.delivery(message, attempt: connection.attempt) {
                arrived(event, bytes: message.body?.count ?? 0)
            }
        case .delivered:
            guard let body = message.body else { return dropped(message.bodyBytes) }
            arrived(role.message(body), bytes: body.count)
        }
    }

    private func dropped(_ bytes: UInt64) {
        guard let count = faults.count(.overLimit, at: now) else { return }
        logger.error(
            "a message over the limit was dropped",
            metadata: ["bytes": "\(bytes)", "messages": "\(count)"]
        )
    }

    func blocked(_ connection: AMQPConnection, _ isBlocked: Bool, reason: String) {
        guard connection === self.connection else { return }
        logger.notice(
            "the broker's alarm changed",
            metadata: ["blocked": "\(isBlocked)", "reason": "\(reason)"]
        )
        arrived(role.blocked(isBlocked, reason: reason))
    }

    func readCompleted(_ connection: AMQPConnection) {
        guard connection === self.connection else { return }
        machine.bytesReceived(at: now)
        flushBatch()
    }

    func becameWritable(_ connection: AMQPConnection) { pump() }

    // MARK: The lock

    private func askHolder(_ connection: AMQPConnection) {
        let (queue, methods) = role.names.asking(id: generator.next())
        // Two seconds: the holder answers from its event loop at once, or is not running.
        let timeout = loop.scheduleTask(in: .seconds(2)) { self.answered(nil) }
        ask = Ask(queue: queue, timeout: timeout)
        connection.prepare(methods)
    }

    private func answered(_ holder: PrefixHolder?) {
        guard let ask, let connection else { return }
        ask.timeout.cancel()
        self.ask = nil
        handle(
            .failed(attempt: connection.attempt, .locked(holder: holder.map(\.sentence)))
        )
    }
}
