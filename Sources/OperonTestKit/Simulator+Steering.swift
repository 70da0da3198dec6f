import OperonCore
import OperonModel

// What somebody asks for of queues, priorities and suspensions while graphs grow, and what graphs
// that come later say of queues.
extension Simulator {
    mutating func steer() {
        guard !isHealed, scheduler.graphCount > 0 else { return }
        guard store?.isAlive != false else {
            at(now + .milliseconds(200), .steer)
            return
        }
        switch steering.next() % 8 {
        case 0...1:
            drive(.queuePrioritySet(queue: someQueue(), somePriority()))
            ledger.met(.queuePriorityChanged)
        case 2:
            guard let operation = someMember() else { return }
            drive(.priorityRequested(operation, somePriority()))
        case 3: drive(.suspensionRequested(someTarget(), someSuspension()))
        case 4: drive(.suspensionRequested(someTarget(), nil))
        case 5:
            let maximum = steering.next() % 3 == 0 ? nil : Int(steering.next() % 4)
            drive(.queueLimitSet(queue: someQueue(), maximum: maximum))
        case 6: drive(someReset())
        case _: submitWithSettings()
        }
    }

    private mutating func someQueue() -> String { ["a", "b", "c"][Int(steering.next() % 3)] }

    private mutating func someReset() -> Scheduler.Event {
        steering.next() % 3 == 0
            ? .keyReset("key") : .queueReset(someQueue())
    }

    private mutating func somePriority() -> QueuePriority {
        QueuePriority.allCases[Int(steering.next() % 5)]
    }

    private mutating func someMember() -> OperationID? {
        let graph = GraphID(rawValue: UInt32(steering.next() % UInt64(scheduler.graphCount)))
        let count = scheduler.operationCount(of: graph)
        guard count > 0 else { return nil }
        return OperationID(graph: graph, index: UInt32(steering.next() % UInt64(count)))
    }

    private mutating func someTarget() -> Scheduler.Target {
        guard steering.next() % 3 > 0, let operation = someMember() else {
            return .queue(someQueue())
        }
        return steering.next() % 2 == 0 ? .operation(operation) : .graph(operation.graph)
    }

    private mutating func someSuspension() -> Suspension {
        var suspension = Suspension()
        if steering.next() % 2 == 0 { suspension.by = "somebody" }
        if steering.next() % 2 == 0 { suspension.reason = "a reason" }
        if steering.next() % 2 == 0 {
            suspension.until = moment.wall + .milliseconds(1 + Int64(steering.next() % 20_000))
        }
        return suspension
    }

    /// A graph of one operation that says how its queues are to be.
    private mutating func submitWithSettings() {
        var queues: [QueueSettings] = []
        for name in ["a", "b"] {
            var settings = QueueSettings(name: name)
            if steering.next() % 3 == 0 {
                settings.maxConcurrentOperationCount = Int(steering.next() % 4)
            }
            if steering.next() % 3 == 0 { settings.priority = somePriority() }
            settings.isSuspended = steering.next() % 8 == 0
            queues.append(settings)
        }
        var policy = OperationPolicy()
        policy.queue = UInt32(steering.next() % 2)
        let graph = CompiledGraph(
            name: "settings",
            topology: GraphTopology(dependencyOffsets: [0, 0], dependencyEdges: []),
            queues: queues,
            kinds: SimulatorScenario.kinds,
            keys: [],
            policies: [policy],
            policy: [0],
            rank: [0]
        )
        drive(.graphSubmitted(graph))
        ledger.met(.queueDefinedAgain)
    }
}
