package import OperonModel

/// Decides when a connection to the broker is opened, given up, tried again and closed for good.
///
/// One shell, which owns the socket, drives it: the shell passes in events with their times,
/// performs the effects in order, and passes in `tick` when `wakeAt` has come. The machine gives up
/// by itself only after a failure that no further try can fix.
package struct LinkStateMachine: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        /// Before `started`.
        case idle
        /// Socket, TLS and login are under way. Left by `opened`, a failure, or the deadline.
        case connecting(deadline: Timestamp)
        /// Declaring, binding and consuming. Left by `ready`, a failure, or the deadline.
        case preparing(deadline: Timestamp)
        /// Logged in, but something that the other side has to declare does not exist yet. Prepares
        /// again at `until`.
        case absent(until: Timestamp)
        /// Consuming. Left by a failure, silence, or a request.
        case up(since: Timestamp)
        /// Not connected; the next try is at `until`.
        case waiting(until: Timestamp)
        /// Closing on request: accepted messages are being sent. Left by `lost` or the deadline.
        case closing(deadline: Timestamp)
        /// Closed, refused or cancelled. Never left.
        case ended
    }

    /// Something that happened. Events about a connection name the attempt they belong to, because
    /// an event of an old connection may arrive after the next attempt has begun.
    package enum Event: Hashable, Sendable {
        case started
        /// Logged in; both sides agreed on this heartbeat (zero: none).
        case opened(attempt: UInt64, heartbeat: Duration)
        /// Declared, bound and consuming.
        case ready(attempt: UInt64)
        case failed(attempt: UInt64, LinkFailure)
        /// `wakeAt` may have come.
        case tick
        case reconnectRequested
        case closeRequested
        case cancelled
    }

    package enum Effect: Hashable, Sendable {
        /// Open a socket and log in.
        case connect(attempt: UInt64)
        /// Declare, bind and consume, under this connection number.
        case prepare(number: UInt32)
        case announceUp(number: UInt32)
        case announceDown(reason: String)
        case sendHeartbeat
        /// Drop the connection now.
        case disconnect(reason: String)
        /// Send the accepted messages, then close the connection.
        case drain
        case end(LinkEnd)
    }

    package private(set) var state = State.idle
    /// Counts the connections that got as far as declaring, from 1. A name that was declared on a
    /// half-open connection stays locked for a while, so no number is used twice.
    package private(set) var number: UInt32 = 0
    private let configuration: Configuration
    private var generator: SeededGenerator
    private var attempt: UInt64 = 0
    private var failures = 0
    private var absences = 0
    private var hasBeenUp = false
    private var lockedSince: Timestamp?
    private var liveness: Liveness?

    package init(configuration: Configuration = Configuration(), seed: UInt64) {
        self.configuration = configuration
        generator = SeededGenerator(seed: seed)
    }

    package mutating func handle(
        _ event: Event,
        at now: Timestamp,
        into effects: inout [Effect]
    ) {
        switch event {
        case .started: start(at: now, into: &effects)
        case .opened(let attempt, let heartbeat):
            opened(attempt, heartbeat: heartbeat, at: now, into: &effects)
        case .ready(let attempt): ready(attempt, at: now, into: &effects)
        case .failed(let attempt, let failure):
            failed(attempt, failure, at: now, into: &effects)
        case .tick: tick(at: now, into: &effects)
        case .reconnectRequested: reconnectRequested(at: now, into: &effects)
        case .closeRequested: closeRequested(at: now, into: &effects)
        case .cancelled: cancelled(into: &effects)
        }
    }

    /// When the next `tick` is needed.
    package var wakeAt: Timestamp? {
        switch state {
        case .idle, .ended: nil
        case .connecting(let deadline), .closing(let deadline): deadline
        case .preparing(let deadline): earlier(deadline, liveness?.wakeAt)
        case .absent(let until): earlier(until, liveness?.wakeAt)
        case .up: liveness?.wakeAt
        case .waiting(let until): until
        }
    }

    /// Whether this is the current attempt, and it is still connecting.
    package func isConnecting(attempt: UInt64) -> Bool {
        guard attempt == self.attempt, case .connecting = state else { return false }
        return true
    }

    /// Bytes were received. This is not an event: it happens at every read and decides nothing.
    package mutating func bytesReceived(at now: Timestamp) { liveness?.received = now }

    /// Bytes were sent, so no heartbeat is due for a while.
    package mutating func bytesSent(at now: Timestamp) { liveness?.sent = now }

    private func earlier(_ left: Timestamp, _ right: Timestamp?) -> Timestamp {
        guard let right else { return left }
        return min(left, right)
    }
}

// MARK: - Connecting

extension LinkStateMachine {
    private mutating func start(at now: Timestamp, into effects: inout [Effect]) {
        // Benign: a link is started once; a second `started` asks for what is already under way.
        guard state == .idle else { return }
        connect(at: now, into: &effects)
    }

    private mutating func connect(at now: Timestamp, into effects: inout [Effect]) {
        attempt += 1
        state = .connecting(deadline: now + configuration.connectWithin)
        effects.append(.connect(attempt: attempt))
    }

    private mutating func opened(
        _ attempt: UInt64,
        heartbeat: Duration,
        at now: Timestamp,
        into effects: inout [Effect]
    ) {
        guard attempt == self.attempt, case .connecting = state else { return }
        absences = 0
        if heartbeat > .zero { liveness = Liveness(heartbeat: heartbeat, received: now, sent: now) }
        number += 1
        prepare(at: now, into: &effects)
    }

    private mutating func prepare(at now: Timestamp, into effects: inout [Effect]) {
        state = .preparing(deadline: now + configuration.connectWithin)
        effects.append(.prepare(number: number))
    }

    private mutating func ready(
        _ attempt: UInt64,
        at now: Timestamp,
        into effects: inout [Effect]
    ) {
        guard attempt == self.attempt, case .preparing = state else { return }
        state = .up(since: now)
        hasBeenUp = true
        lockedSince = nil
        effects.append(.announceUp(number: number))
    }
}

// MARK: - Failing and trying again

extension LinkStateMachine {
    private mutating func failed(
        _ attempt: UInt64,
        _ failure: LinkFailure,
        at now: Timestamp,
        into effects: inout [Effect]
    ) {
        guard attempt == self.attempt else { return }
        switch state {
        case .idle, .waiting, .ended:
            // Benign: this side dropped the connection before the event of its end arrived.
            return
        case .closing:
            end(.closed, into: &effects)
        case .connecting, .preparing, .absent, .up:
            judge(failure, at: now, into: &effects)
        }
    }

    private mutating func judge(
        _ failure: LinkFailure,
        at now: Timestamp,
        into effects: inout [Effect]
    ) {
        switch failure {
        case .lost(let reason):
            retry(reason: reason, at: now, into: &effects)
        case .absent(let reason):
            guard case .preparing = state else {
                return retry(reason: reason, at: now, into: &effects)
            }
            absences += 1
            state = .absent(
                until: now + pause(after: absences, atMost: configuration.absencePauseMax)
            )
        case .locked(let holder):
            let since = lockedSince ?? now
            lockedSince = since
            // A dead connection of one's own cannot answer. If the holder answered, it is alive,
            // and waiting would not help.
            if holder != nil || now - since >= configuration.lockPatience {
                disconnect(reason: "the prefix is held", into: &effects)
                end(.prefixHeld(holder: holder), into: &effects)
            } else {
                retry(reason: "the prefix is locked", at: now, into: &effects)
            }
        case .refused(let reason):
            disconnect(reason: reason, into: &effects)
            end(.accessRefused(reason), into: &effects)
        case .notAllowed(let reason):
            guard !hasBeenUp else { return retry(reason: reason, at: now, into: &effects) }
            disconnect(reason: reason, into: &effects)
            end(.accessRefused(reason), into: &effects)
        case .incompatible(let reason):
            guard !hasBeenUp else { return retry(reason: reason, at: now, into: &effects) }
            disconnect(reason: reason, into: &effects)
            end(.incompatible(reason), into: &effects)
        }
    }

    private mutating func retry(
        reason: String,
        at now: Timestamp,
        into effects: inout [Effect]
    ) {
        if case .up(let since) = state, now - since >= configuration.pauseMax { failures = 0 }
        failures += 1
        disconnect(reason: reason, into: &effects)
        state = .waiting(until: now + pause(after: failures, atMost: configuration.pauseMax))
    }

    private mutating func disconnect(reason: String, into effects: inout [Effect]) {
        liveness = nil
        effects.append(.disconnect(reason: reason))
        if case .up = state { effects.append(.announceDown(reason: reason)) }
    }

    /// Doubles with each failure. The pause is a random time in the upper half of that, so that
    /// many clients that lost the same broker do not all come back at the same instant.
    private mutating func pause(after failures: Int, atMost limit: Duration) -> Duration {
        // Sixteen doublings make almost an hour. Beyond that, only the limit matters.
        let doubled = configuration.pauseMin * (1 << min(failures - 1, 16))
        let whole = min(doubled, limit).nanoseconds
        return .nanoseconds(whole / 2 + Int64(Double(whole / 2) * generator.fraction()))
    }
}

// MARK: - Time

extension LinkStateMachine {
    private mutating func tick(at now: Timestamp, into effects: inout [Effect]) {
        if isSilent(at: now) {
            return retry(reason: "the broker is silent", at: now, into: &effects)
        }
        switch state {
        case .idle, .ended: return
        case .connecting(let deadline), .preparing(let deadline):
            guard now < deadline else {
                return retry(reason: "connecting took too long", at: now, into: &effects)
            }
        case .absent(let until):
            if now >= until { prepare(at: now, into: &effects) }
        case .up: break
        case .waiting(let until):
            if now >= until { connect(at: now, into: &effects) }
            return
        case .closing(let deadline):
            guard now < deadline else {
                disconnect(reason: "closing took too long", into: &effects)
                return end(.closed, into: &effects)
            }
        }
        guard let due = liveness?.heartbeatAt, now >= due else { return }
        liveness?.sent = now
        effects.append(.sendHeartbeat)
    }

    private func isSilent(at now: Timestamp) -> Bool {
        guard let silentAt = liveness?.silentAt, now >= silentAt else { return false }
        switch state {
        case .preparing, .absent, .up: return true
        case .idle, .connecting, .waiting, .closing, .ended: return false
        }
    }
}

// MARK: - Requests

extension LinkStateMachine {
    private mutating func reconnectRequested(at now: Timestamp, into effects: inout [Effect]) {
        switch state {
        case .idle, .connecting, .waiting, .closing, .ended:
            // Benign: there is no connection that could be silent.
            return
        case .preparing, .absent, .up:
            failures = 0
            retry(reason: "a new connection was asked for", at: now, into: &effects)
        }
    }

    private mutating func closeRequested(at now: Timestamp, into effects: inout [Effect]) {
        switch state {
        case .closing, .ended: return
        case .idle, .waiting: end(.closed, into: &effects)
        case .connecting, .preparing, .absent:
            disconnect(reason: "closed", into: &effects)
            end(.closed, into: &effects)
        case .up:
            liveness = nil
            state = .closing(deadline: now + configuration.closeWithin)
            effects.append(.drain)
        }
    }

    private mutating func cancelled(into effects: inout [Effect]) {
        switch state {
        case .ended: return
        case .idle, .waiting: end(.closed, into: &effects)
        case .connecting, .preparing, .absent, .up, .closing:
            disconnect(reason: "cancelled", into: &effects)
            end(.closed, into: &effects)
        }
    }

    private mutating func end(_ end: LinkEnd, into effects: inout [Effect]) {
        state = .ended
        liveness = nil
        effects.append(.end(end))
    }
}
