import NIOConcurrencyHelpers
import OperonModel
import OperonPorts

/// The watching of one trigger's source.
struct TriggerWatch: Sendable {
    /// What is told of it.
    struct Report: Hashable, Sendable {
        var state = State.starting
        /// Why it does not observe at present, or never will; empty: it does.
        var problem = ""
        /// Occurrences that could not be taken.
        var refused: UInt64 = 0
        /// Why the last of them could not.
        var refusal = ""
    }

    enum State: String, Sendable {
        case starting, observing, waiting
        /// Nothing more can occur.
        case ended
    }

    let source: WatchedSource
    /// Opened when the trigger is gone, or has another source.
    let over = Latch()
    /// Raised whenever the trigger may take an occurrence that it could not take before.
    let room = Signal()
    private let box = NIOLockedValueBox(Report())

    init(_ source: WatchedSource) { self.source = source }

    var report: Report { box.withLockedValue { $0 } }

    func note(_ status: TriggerSourceStatus) {
        box.withLockedValue { report in
            switch status {
            case .observing:
                report.state = .observing
                report.problem = ""
            case .waiting(let error):
                report.state = .waiting
                report.problem = error.message
            case .refused(let error):
                report.refused += 1
                report.refusal = error.message
            }
        }
    }

    /// - Parameter problem: Why it can never observe; empty: what it watched has ended.
    func noteEnd(_ problem: String = "") {
        box.withLockedValue { report in
            report.state = .ended
            report.problem = problem
        }
    }
}
