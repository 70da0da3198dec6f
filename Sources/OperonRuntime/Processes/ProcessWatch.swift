import OperonModel

/// The state of one running process, and what must be done next: a value without I/O, driven by its
/// `RunningProcess`.
///
/// Its states: *running* → (asked to stop: SIGTERM, then SIGKILL after the grace) → *exited*
/// (the rest of its group gets SIGKILL) → *drained* (both streams have ended, or the drain
/// time is over).
struct ProcessWatch {
    /// Why the process was stopped. The first reason counts.
    enum StopReason {
        /// A stop was requested from outside.
        case request
        /// The process exceeded its timeout.
        case timeout
    }

    /// What must be done, in this order.
    enum Step: Equatable {
        /// SIGTERM to the group, and SIGCONT so that a stopped process can act on it.
        case terminate
        /// SIGKILL to the group.
        case kill
        /// Read nothing more: report the end.
        case finish
    }

    /// How long a stream may stay open after the process has ended. A process that left the group
    /// may hold it open for ever; the output of the group itself is in the pipe by then.
    static let drain = Duration.seconds(1)

    let startedAt: Timestamp
    private let grace: Duration
    private(set) var stopReason: StopReason?
    private(set) var endedAt: Timestamp?
    private var openStreams = 2
    private var isKilled = false
    private var timeoutAt: Timestamp?
    private var killAt: Timestamp?
    private var drainUntil: Timestamp?

    init(startedAt: Timestamp, timeout: Duration?, grace: Duration) {
        self.startedAt = startedAt
        self.grace = max(.zero, grace)
        timeoutAt = timeout.map { startedAt + max(.zero, $0) }
    }

    /// When `timePassed` must be called next; `nil`: never.
    var deadline: Timestamp? {
        [timeoutAt, killAt, drainUntil].compactMap(\.self).min()
    }

    /// A stop was requested from outside.
    mutating func requested(_ request: StopSignal.Request, at now: Timestamp) -> [Step] {
        switch request {
        case .cancel: stop(for: .request, at: now)
        case .kill: killNow(for: .request)
        }
    }

    /// Performs whatever is due at this time.
    mutating func timePassed(_ now: Timestamp) -> [Step] {
        var steps: [Step] = []
        if let timeoutAt, now >= timeoutAt {
            self.timeoutAt = nil
            steps += stop(for: .timeout, at: now)
        }
        if let killAt, now >= killAt {
            steps += killNow(for: .request)
        }
        if let drainUntil, now >= drainUntil {
            self.drainUntil = nil
            openStreams = 0
            steps.append(.finish)
        }
        return steps
    }

    /// The process has ended and was collected; its group was killed before that.
    mutating func exited(at now: Timestamp) -> [Step] {
        guard endedAt == nil else { return [] }
        endedAt = now
        timeoutAt = nil
        killAt = nil
        guard openStreams > 0 else { return [.finish] }
        drainUntil = now + ProcessWatch.drain
        return []
    }

    /// No process can write to one of the streams any more.
    mutating func streamEnded() -> [Step] {
        guard openStreams > 0 else { return [] }
        openStreams -= 1
        guard openStreams == 0, endedAt != nil else { return [] }
        drainUntil = nil
        return [.finish]
    }

    private mutating func stop(for reason: StopReason, at now: Timestamp) -> [Step] {
        // Harmless: a request that comes after another, or crosses the end of the process.
        guard endedAt == nil, stopReason == nil else { return [] }
        stopReason = reason
        timeoutAt = nil
        killAt = now + grace
        return [.terminate]
    }

    private mutating func killNow(for reason: StopReason) -> [Step] {
        guard endedAt == nil, !isKilled else { return [] }
        if stopReason == nil { stopReason = reason }
        isKilled = true
        timeoutAt = nil
        killAt = nil
        return [.kill]
    }
}
