import OperonModel

/// What the simulator met: a rule that no seed ever tried was not tested.
package struct SimulatorCoverage: Hashable, Sendable {
    /// A change of an operation's state, as `docs/STATES.md` draws it.
    package enum Edge: String, CaseIterable, Sendable {
        case released = "pending → ready"
        case dispatched = "ready → dispatched"
        case started = "dispatched → executing"
        case givenBack = "dispatched → ready (given back)"
        case lostBeforeStart = "dispatched → ready (worker lost)"
        case lostRunning = "executing → ready (worker lost)"
        case startedOutside = "ready → executing (for somebody outside)"
        case resumed = "ready → executing (its worker came back)"
        case resumedAfterReturn = "dispatched → executing (its worker came back)"
        case retried = "executing → ready (retried)"
        case crashed = "executing → ready (crashed)"
        case stoppedAndReturned = "executing → ready (given back)"
        case skipped = "pending → finished (skipped)"
        case cancelledPending = "pending → finished (cancelled)"
        case cancelledReady = "ready → finished (cancelled)"
        case cancelledDispatched = "dispatched → finished (cancelled)"
        case cancelledExecuting = "executing → finished (cancelled)"
        case succeeded = "executing → finished (succeeded)"
        case failed = "executing → finished (failed)"
        case reopened = "finished → pending (reopened)"
    }

    /// Something that goes wrong, or that somebody asks for, in the simulated world.
    package enum Fault: String, CaseIterable, Sendable {
        case messageLost
        case messageReturned
        case clockSetForward
        case clockSetBack
        case eventsLate
        case workerCut
        case workerKilled
        case workerBuried
        case workerPoisoned
        case ticked
        case workerFrozen
        case coordinatorCut
        case coordinatorFrozen
        case coordinatorAskedToLeave
        case attemptUnsendable
        case failedFast
        case brokerCrashed
        case oldCoordinator
        case workerDrained
        case workerAskedToDrain
        case suspended
        case cancelled
        case cancelledTogether
        case clientNamed
        case limitChanged
        case priorityChanged
        case outputFetched
        case outputDamaged
        case outputAskedAgain
        case coordinatorKilled
        case killedBeforeRecords
        case killedBeforeMessages
        case killedBetweenMessages
        case killedAfterMessages
        case killedAfterSync
        case powerCut
        case recoveryInterrupted
        case commitFailed
        case graphAddedTo
        case graphSubmittedBeside
        case dependencyAdded
        case dependencyRemoved
        case roundOpened
        case suspendedUntil
        case graphCancelled
        case childrenAdded
        case childrenAddedAgain
        case addedWithoutWaiting
        case joined
        case waited
        case waitedForChildren
        case waitRefused
        case waitWithdrawn
        case outputRead
        case queuePriorityChanged
        case keyLimitChanged
        case rateUsed
        case queueReset
        case keyReset
        case notYet
        case outsideCompleted
        case outsideCompletedAgain
        case outsideCompletedLate
        case outsideCompletedEarly
        case outsideTimedOut
        case intruderSpoke
        case operationAskedTooMuch
        case restoredOutside
        case queueDefinedAgain
        case graphForgotten
        case restoredTombstone
        case restoredAddition
        case restoredDependencies
        case restoredAcrossGraphs
        case restoredRound
        case restoredSuspension
        case restoredCommands
    }

    private var edges = [Int](repeating: 0, count: Edge.allCases.count)
    private var faults = [Int](repeating: 0, count: Fault.allCases.count)

    package init() {}

    package func count(_ edge: Edge) -> Int { edges[Self.place(edge)] }

    package func count(_ fault: Fault) -> Int { faults[Self.place(fault)] }

    mutating func hit(_ edge: Edge) { edges[Self.place(edge)] += 1 }

    mutating func hit(_ fault: Fault) { faults[Self.place(fault)] += 1 }

    package mutating func add(_ other: SimulatorCoverage) {
        for index in edges.indices { edges[index] += other.edges[index] }
        for index in faults.indices { faults[index] += other.faults[index] }
    }

    /// One line for each edge and each fault.
    package var report: String {
        let lines =
            Edge.allCases.map { "\(count($0))\t\($0.rawValue)" }
            + Fault.allCases.map { "\(count($0))\t\($0.rawValue)" }
        return lines.joined(separator: "\n")
    }

    private static func place<Case: CaseIterable & Equatable>(_ one: Case) -> Int {
        var place = 0
        for other in Case.allCases {
            if other == one { return place }
            place += 1
        }
        preconditionFailure("`allCases` has every case")
    }
}

extension SimulatorCoverage {
    /// Which edge a change was, if it was one.
    mutating func changed(from old: OperationState, to new: OperationState, _ why: Cause) {
        switch (old, new, why) {
        case (.pending, .ready, _): hit(.released)
        case (.ready, .dispatched, _): hit(.dispatched)
        case (.ready, .executing, .outside): hit(.startedOutside)
        case (.ready, .executing, _): hit(.resumed)
        case (.dispatched, .executing, .resumed): hit(.resumedAfterReturn)
        case (.dispatched, .executing, _): hit(.started)
        case (.dispatched, .ready, .lost): hit(.lostBeforeStart)
        case (.dispatched, .ready, _): hit(.givenBack)
        case (.executing, .ready, .lost): hit(.lostRunning)
        case (.executing, .ready, .retried): hit(.retried)
        case (.executing, .ready, .crashed): hit(.crashed)
        case (.executing, .ready, _): hit(.stoppedAndReturned)
        case (.pending, .finished, .outcome(.skipped)): hit(.skipped)
        case (.pending, .finished, .outcome(.cancelled)): hit(.cancelledPending)
        case (.ready, .finished, .outcome(.cancelled)): hit(.cancelledReady)
        case (.dispatched, .finished, .outcome(.cancelled)): hit(.cancelledDispatched)
        case (.executing, .finished, .outcome(.cancelled)): hit(.cancelledExecuting)
        case (.executing, .finished, .outcome(.succeeded)): hit(.succeeded)
        case (.executing, .finished, .outcome(.failed)): hit(.failed)
        case (.finished, .pending, _): hit(.reopened)
        case (_, _, _): break
        }
    }

    enum Cause {
        case none
        case outside
        case resumed
        case crashed
        case lost
        case returned
        case retried
        case outcome(OutcomeKind)
    }
}
