import OperonModel
import OperonPorts
import Synchronization

/// The watching of one trigger's source.
final class TriggerWatch: Sendable {
    /// What is told of it.
    struct Report: Hashable, Sendable {
        var state = State.starting
        /// Why it does not observe at present, or never will; empty: it does.
        var problem = ""
        /// Occurrences that could not fire the trigger.
        var refused: UInt64 = 0
        /// Why the last of them could not.
        var refusal = ""
        /// Whether it was told that it cannot be observed, and not that it is observed again.
        var isLossTold = false
    }

    /// What the log says of a status.
    enum News {
        case observed
        /// After a loss that was told.
        case observedAgain
        case lost(TriggerSourceError)
        case refused(TriggerSourceError)
    }

    enum State: String, Sendable {
        case starting, observing, waiting
        /// Nothing more can occur, or be observed.
        case ended
    }

    let source: WatchedSource
    let watcher: TriggerWatcher
    /// The trigger does not fire after this time.
    let until: WallTime?
    /// Opened when the trigger is gone, or has another source.
    let end = Latch()
    private let change = Mutex(Latch())
    private let box = Mutex(Report())

    init(_ source: WatchedSource, by watcher: TriggerWatcher, until: WallTime?) {
        self.source = source
        self.watcher = watcher
        self.until = until
    }

    var report: Report { box.withLock { $0 } }

    /// Opens at the next change of the trigger's firings, after which it may take an occurrence
    /// that it could not take before.
    var nextChange: Latch { change.withLock { $0 } }

    func noteChange() {
        change.withLock { latch in
            defer { latch = Latch() }
            return latch
        }.open()
    }

    /// Returns what is new to tell; `nil`: nothing.
    func note(_ status: TriggerSourceStatus) -> News? {
        box.withLock { report in
            let before = report
            switch status {
            case .observing:
                report.state = .observing
                report.problem = ""
                report.isLossTold = false
                guard report != before else { return nil }
                return before.isLossTold ? .observedAgain : .observed
            case .waiting(let error):
                report.state = .waiting
                report.problem = error.message
                report.isLossTold = true
                return report == before ? nil : .lost(error)
            case .refused(let error):
                report.refused += 1
                report.refusal = error.message
                // Whoever writes lines or messages decides how many there are.
                return report.refused & (report.refused - 1) == 0 ? .refused(error) : nil
            }
        }
    }

    /// - Parameter problem: Why it can never observe; empty: what it watched has ended.
    func noteEnd(_ problem: String = "") {
        box.withLock { report in
            report.state = .ended
            report.problem = problem
        }
    }
}
