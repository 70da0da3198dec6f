// What coordinators and workers say to each other about the sources of triggers that workers watch.
// Any of it may be lost, and may come twice or late. A worker states from time to time all that it
// holds, and the coordinator orders whatever is otherwise than it wants.

/// Who watches the source of a trigger.
package enum TriggerWatcher: Hashable, Sendable {
    /// The coordinator's process.
    case coordinator
    /// One worker at a time whose labels meet all of these requirements.
    case workers([WorkerRequirement])
}

/// The number of the watching of one source by one worker. No two coordinators give the same.
package struct WatchID: RandomID {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// What a coordinator orders about watching.
package enum WatchOrder: Hashable, Sendable {
    /// Watch this source for the trigger. A worker that watches the same source for it already goes
    /// on under the new number. `nil`: a source that this program does not know, or refuses.
    case begin(WatchID, TriggerID, WatchedSource?)
    case end(WatchID)
    /// The occurrence of this identity is stored, or can never fire the trigger: the next may be
    /// reported.
    case taken(WatchID, identity: String)
    /// Report again how the watch is, and its occurrence.
    case again(WatchID)
    /// Report which process has this number now. The first number is that of the question.
    case identify(UInt64, process: Int32)
}

/// A watch that a worker holds.
package struct HeldWatch: Hashable, Sendable {
    package var watch: WatchID
    package var trigger: TriggerID
    package var state: WatchState
    /// The identity of what it has reported and the coordinator has not taken; `nil`: nothing.
    package var occurrence: String?

    package init(
        watch: WatchID,
        trigger: TriggerID,
        state: WatchState,
        occurrence: String? = nil
    ) {
        self.watch = watch
        self.trigger = trigger
        self.state = state
        self.occurrence = occurrence
    }
}

/// How far a watch is.
package enum WatchState: UInt8, Hashable, Sendable, CaseIterable {
    case starting
    case observing
    /// It cannot observe at present, and tries again.
    case waiting
    /// Nothing more can occur, or be observed.
    case ended
}

/// What a worker reports about watching.
package enum WatchReport: Hashable, Sendable {
    /// All that it watches. Sent after each welcome, and from time to time.
    case holds([HeldWatch])
    /// - Parameter problem: Why it waits, or why it can never observe; `nil`: neither.
    case state(WatchID, WatchState, problem: TriggerSourceError?)
    /// So many occurrences cannot be reported, at least 1; the last one for this reason.
    case refused(WatchID, count: UInt32, TriggerSourceError)
    /// Something occurred. Nothing else occurs in this watch before that is taken.
    case occurred(WatchID, Occurrence)
    /// The process of a question: see `ProcessTarget.identity`.
    case identified(UInt64, String)
    /// There is no such process, or it cannot be looked at.
    case unidentified(UInt64, TriggerSourceError)
}

extension Limits {
    /// Sources that one worker watches at once.
    package static let watchesPerWorker = 10_000
    /// Bytes of the arguments of a program that a worker runs to watch its lines.
    package static let watchedProgramBytes = 128 << 10
    /// Bytes of a sentence that says why something cannot be observed.
    package static let watchProblemBytes = 2_000
    /// Bytes of what tells a process from every other.
    package static let processIdentityBytes = 256
    /// Bytes of orders or reports about watches in one message, unless one of them alone has more.
    package static let watchMessageBytes = 256 << 10
    /// Bytes of occurrences that workers have reported and that are not stored.
    package static let watchedBytes = 64 << 20
}

// MARK: - Sizes

extension WatchOrder {
    /// The approximate size in memory, in bytes.
    package var approximateBytes: Int {
        switch self {
        case .begin(_, _, let source): 128 + (source?.approximateBytes ?? 0)
        case .end, .taken, .again, .identify: 128
        }
    }
}

extension WatchedSource {
    fileprivate var approximateBytes: Int {
        switch self {
        case .file(let file): file.path.utf8.count
        case .pipe(let path), .process(.file(let path)): path.utf8.count
        case .program(let arguments): arguments.reduce(0) { $0 + 16 + $1.utf8.count }
        case .signal, .process, .message: 0
        }
    }
}

extension WatchReport {
    /// The approximate size in memory, in bytes.
    package var approximateBytes: Int {
        switch self {
        case .holds(let held): held.reduce(0) { $0 + 64 + ($1.occurrence?.utf8.count ?? 0) }
        case .occurred(_, let occurrence): 512 + occurrence.event.count
        case .state(_, _, let problem): 64 + (problem?.message.utf8.count ?? 0)
        case .refused(_, _, let problem), .unidentified(_, let problem):
            64 + problem.message.utf8.count
        case .identified: 128
        }
    }
}

extension Array {
    /// The elements in pieces of at most so many bytes, an element that has more alone.
    package func pieces(ofBytes most: Int, _ size: (Element) -> Int) -> [ArraySlice<Element>] {
        var pieces: [ArraySlice<Element>] = []
        var start = startIndex
        var bytes = 0
        for index in indices {
            let own = size(self[index])
            if index > start, bytes + own > most {
                pieces.append(self[start..<index])
                start = index
                bytes = 0
            }
            bytes += own
        }
        if start < endIndex { pieces.append(self[start...]) }
        return pieces
    }
}
