import OperonModel

/// What is known of one running process, and what must be done next: a value without I/O, driven by
/// its `RunningProcess`.
///
/// Its life: *running* → (asked to stop: SIGTERM, after the grace SIGKILL) → *exited* (the rest of
/// its group gets SIGKILL) → *drained* (both streams ended, or the drain time is over).
struct ProcessWatch {
    /// Why we ended it. The first reason stays.
    enum StopReason {
        /// Asked from outside.
        case request
        /// It ran longer than it may.
        case timeout
    }

    /// What must be done, in order.
    enum Step: Equatable {
        /// SIGTERM to the group, and SIGCONT so that a stopped process can act on it.
        case terminate
        /// SIGKILL to the group.
        case kill
        /// Collect nothing more: report the end.
        case finish
    }

    /// How long a stream may stay open after the process has ended. Somebody who left its group
    /// may hold it for ever; what its own group printed is in the pipe by then.
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

    /// When `timePassed` wants to be called; `nil`: never.
    var deadline: Timestamp? {
        [timeoutAt, killAt, drainUntil].compactMap(\.self).min()
    }

    /// Asked from outside to stop.
    mutating func requested(_ request: StopSignal.Request, at now: Timestamp) -> [Step] {
        switch request {
        case .cancel: stop(for: .request, at: now)
        case .kill: killNow(for: .request)
        }
    }

    /// The moment may have come for something.
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

    /// It has ended and was collected; its group was killed before that.
    mutating func exited(at now: Timestamp) -> [Step] {
        guard endedAt == nil else { return [] }
        endedAt = now
        timeoutAt = nil
        killAt = nil
        guard openStreams > 0 else { return [.finish] }
        drainUntil = now + ProcessWatch.drain
        return []
    }

    /// Nobody can print to one of its streams any more.
    mutating func streamEnded() -> [Step] {
        guard openStreams > 0 else { return [] }
        openStreams -= 1
        guard openStreams == 0, endedAt != nil else { return [] }
        drainUntil = nil
        return [.finish]
    }

    private mutating func stop(for reason: StopReason, at now: Timestamp) -> [Step] {
        // Benign: a request that crosses the end of the process, or comes second.
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
