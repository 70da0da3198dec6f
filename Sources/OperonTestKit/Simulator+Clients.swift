import OperonCore
import OperonModel

// By whom changes are asked for: each command comes from somebody, with a name or without.
extension Simulator {
    /// Who asks for it; empty: nobody, or somebody without a name.
    mutating func someClient(asking event: Scheduler.Event) -> String {
        guard event.isCommand else { return "" }
        return ["", "ann", "bob"][Int(clients.next() % 3)]
    }

    /// Each event that says what was asked for has the name, and no other event has one.
    mutating func checkClient(_ client: String, asking command: Scheduler.Event) {
        let wall = moment.wall
        var broken: String?
        var isNamed = false
        effects.forEachRecord { record, name in
            guard let event = ClusterEvent(record, by: name, at: wall) else { return }
            // It has a name of its own.
            if event.kind == .suspended { return }
            let expected = command.isSaid(by: event) ? client : ""
            if !expected.isEmpty { isNamed = true }
            guard event.by != expected else { return }
            broken = "\(event.kind), asked for by “\(expected)”, names “\(event.by)”"
        }
        if isNamed { ledger.met(.clientNamed) }
        if let broken { ledger.broken(broken) }
        checkDrains(client, command)
    }

    /// A worker that drains has the name of the first who asked this coordinator for it.
    private mutating func checkDrains(_ client: String, _ command: Scheduler.Event) {
        if case .drainRequested(let worker) = command,
            effects.messages.contains(where: \.isDrain)
        {
            drains[worker] = client
        }
        for case .workerDraining(let worker, let name) in effects.notices {
            let expected = drains[worker.incarnation] ?? ""
            guard name != expected else { continue }
            ledger.broken("“\(expected)” drains \(worker.name), and the event names “\(name)”")
        }
    }
}

extension Scheduler.Message {
    fileprivate var isDrain: Bool {
        guard case .plain(.control(let control)) = body else { return false }
        return control.orders.contains(.drain)
    }
}

extension Scheduler.Event {
    fileprivate var isCommand: Bool {
        switch self {
        case .graphSubmitted, .operationsAdded, .graphClosed, .queueLimitSet, .queueRateSet,
            .queuePrioritySet, .keyLimitSet, .queueReset, .keyReset, .suspensionRequested,
            .cancelRequested, .priorityRequested, .dependencyAdded, .dependencyRemoved,
            .retryRequested, .completionRequested, .drainRequested:
            true
        case .graphsForgotten, .workerMessage, .transportUp, .transportDown, .addressReturned,
            .attemptUnsendable, .shutdownRequested, .timeReached:
            false
        }
    }

    /// Whether the event says what the command asked for, and not what followed from it.
    fileprivate func isSaid(by event: ClusterEvent) -> Bool {
        switch self {
        case .graphSubmitted: event.kind == .graphSubmitted
        case .operationsAdded: event.kind == .graphAdded
        case .graphClosed: event.kind == .graphClosed
        case .queueLimitSet, .queueRateSet, .queuePrioritySet, .queueReset: event.kind == .queueSet
        case .keyLimitSet, .keyReset: event.kind == .keySet
        case .suspensionRequested: event.kind == .resumed
        case .cancelRequested(let target, let reason, _):
            switch event.kind {
            // What fails fast, or waits in vain, is cancelled for another reason.
            case .cancelRequested, .graphCancelled, .queueCancelled: event.reason == reason
            case .graphClosed: target == event.graph.map { .graph($0) }
            default: false
            }
        case .priorityRequested: event.kind == .priority
        case .dependencyAdded: event.kind == .dependencyAdded
        case .dependencyRemoved: event.kind == .dependencyRemoved
        case .retryRequested: event.kind == .reopened
        case .completionRequested(let operation, _, _):
            event.operation == operation && [.finished, .attemptEnded].contains(event.kind)
        // A drain is no record: see `checkDrains`.
        case .drainRequested, .graphsForgotten, .workerMessage, .transportUp, .transportDown,
            .addressReturned, .attemptUnsendable, .shutdownRequested, .timeReached:
            false
        }
    }
}
