package import OperonCore
package import OperonModel

/// A scheduler on a test bench: connected, with workers that do what the test says. Everything it
/// does is kept until the test has looked at it, so that a test can assert that nothing is left.
package struct SchedulerBench {
    package var scheduler: Scheduler
    package var now: Moment
    /// Since the last `drain`.
    package var effects = Scheduler.Effects()
    package private(set) var workers: [Worker] = []
    /// After every event; O(operations), so not for a million of them.
    package var checksInvariants = true
    /// The scheduler's ticks to itself come back at once.
    package var returnsTicks = true
    /// What is to be kept, if anybody keeps it.
    package var journal: BenchJournal?
    package var resolver = BenchResolver()

    package struct Worker: Sendable {
        package var identity: WorkerIdentity
        package var slots: UInt32
        package var queues: [String]
        package var kinds: [String]
        package var runsAnyKind = false
        package var offer = WorkerOffer()
        package var nextEvent: UInt64 = 1
        /// Granted, in the order in which it arrived, and without an end.
        package var held: [HeldAttempt] = []
        /// The highest number it received on its connection.
        package var received: UInt64 = 0
        package var orders: [Order] = []
    }

    package static let reign = Reign(rawValue: 7)

    package init(
        _ configuration: Scheduler.Configuration = SchedulerBench.noReadAhead,
        connected: Bool = true
    ) {
        scheduler = Scheduler(
            configuration: configuration,
            reign: Self.reign,
            epoch: Epoch(rawValue: 1)
        )
        now = Moment(
            monotonic: Timestamp(nanoseconds: 1_000_000_000_000),
            wall: WallTime(nanosecondsSince1970: 2_000_000_000_000_000_000)
        )
        if connected {
            drive(.transportUp)
            drain()
        }
    }

    /// A worker holds no more than its slots, so that a test can count.
    package static var noReadAhead: Scheduler.Configuration {
        var configuration = Scheduler.Configuration()
        configuration.readAheadCountMax = 0
        return configuration
    }

    // MARK: Events

    package mutating func drive(_ event: Scheduler.Event, by client: String = "") {
        let first = effects.messages.count
        let firstRecord = effects.records.count
        scheduler.handle(event, by: client, at: now, resolving: &resolver, into: &effects)
        journal?.note(event, effects.records[firstRecord...], at: now)
        if checksInvariants { scheduler.checkInvariants() }
        for message in effects.messages[first...] { deliver(message) }
        guard returnsTicks else { return }
        while let number = effects.ticks.popLast() {
            for way in [Tick.Way.events, .beats] { tick(number, way) }
        }
    }

    /// One of the coordinator's own ticks comes back.
    package mutating func tick(_ number: UInt64, _ way: Tick.Way) {
        drive(
            .workerMessage(
                WorkerEnvelope(
                    reign: scheduler.reign,
                    epoch: scheduler.epoch,
                    sequence: 0,
                    sender: .none,
                    body: .tick(Tick(number: number, way: way))
                )
            )
        )
    }

    /// Time goes by, on both clocks, and whatever was due is looked at.
    package mutating func advance(by duration: Duration) {
        now.monotonic = now.monotonic + duration
        now.wall = WallTime(
            nanosecondsSince1970: now.wall.nanosecondsSince1970 + duration.nanoseconds
        )
        drive(.timeReached)
    }

    @discardableResult
    package mutating func submit(
        _ operations: [OperationDescription],
        queues: [QueueSettings] = [],
        keys: [KeySettings] = [],
        order: OperationOrder = .submission,
        failFast: Bool = false,
        open isOpen: Bool = false
    ) throws(Refusal) -> GraphID {
        let name = "graph\(resolver.graphs.count)"
        var description = GraphDescription(name: name, operations: operations)
        description.order = order
        description.queues = queues
        description.keys = keys
        var compiled = try CompiledGraph.compile(description, resolve: resolver.find)
        compiled.failFast = failFast
        resolver.graphs.append(description)
        drive(.graphSubmitted(compiled, isOpen: isOpen))
        return GraphID(rawValue: UInt32(resolver.graphs.count - 1))
    }

    /// Adds to an open graph; dependencies may name operations of any graph. The first refusal of
    /// the scheduler is thrown.
    package mutating func add(
        _ operations: [OperationDescription],
        to graph: GraphID,
        queues: [QueueSettings] = []
    ) throws(Refusal) {
        var description = GraphDescription(name: "addition", operations: operations)
        description.order = .submission
        description.queues = queues
        let addition = try CompiledAddition.compile(
            description,
            to: try scheduler.additionBase(of: graph),
            resolve: resolver.find
        )
        try request(.operationsAdded(graph, addition))
        resolver.graphs[Int(graph.rawValue)].operations += operations
    }

    /// Drives a command whose refusal is thrown.
    package mutating func request(_ event: Scheduler.Event) throws(Refusal) {
        let before = effects.refusals.count
        drive(event)
        guard effects.refusals.count > before else { return }
        throw effects.refusals[before].worded { "\($0.index)" }
    }

    package mutating func submit(_ graph: CompiledGraph) {
        resolver.graphs.append(GraphDescription(name: graph.name))
        drive(.graphSubmitted(graph))
    }

    /// The operation of this name; the latest graph wins.
    package func id(_ name: String) -> OperationID {
        guard let id = resolver.find(name) else {
            preconditionFailure("the test submitted no operation “\(name)”")
        }
        return id
    }

    package func name(_ id: OperationID) -> String {
        resolver.graphs[Int(id.graph.rawValue)].operations[Int(id.index)].name
    }

    package func state(_ name: String) -> OperationState { scheduler.state(of: id(name)) }

    package func outcome(_ name: String) -> Outcome? { scheduler.outcome(of: id(name)) }

    package func explain(_ name: String) -> [Scheduler.Reason] { scheduler.explain(id(name)) }

    package mutating func cancel(_ name: String, reason: String = "", cascade: Bool = false) {
        drive(.cancelRequested(.operation(id(name)), reason: reason, cascade: cascade))
    }

    package mutating func suspend(
        _ target: Scheduler.Target,
        _ suspension: Suspension = Suspension()
    ) {
        drive(.suspensionRequested(target, suspension))
    }

    package mutating func resume(_ target: Scheduler.Target) {
        drive(.suspensionRequested(target, nil))
    }

    package mutating func setLimit(_ maximum: Int?, of queue: String = "default") {
        drive(.queueLimitSet(queue: queue, maximum: maximum))
    }

    // MARK: What came of it

    /// Takes what happened since the last time.
    @discardableResult
    package mutating func drain() -> Scheduler.Effects {
        let taken = effects
        effects.removeAll()
        return taken
    }

    /// Names of operations granted since the last `drain`, in order.
    package var granted: [String] {
        effects.records.compactMap { record in
            guard case .granted(_, let operation, _, _) = record else { return nil }
            return name(operation)
        }
    }

    package var finished: [String] {
        effects.records.flatMap { record in
            switch record {
            case .finished(let operation, _): [name(operation)]
            case .rangeFinished(let operations, _): operations.map(name)
            default: [String]()
            }
        }
    }
}

// MARK: - Workers

extension SchedulerBench {
    /// A worker that says hello, is welcomed and has answered that with its first beat.
    @discardableResult
    package mutating func join(
        slots: UInt32 = 1,
        queues: [String] = [],
        kinds: [String] = Work.builtInKinds,
        runsAnyKind: Bool = false,
        offer: WorkerOffer = WorkerOffer()
    ) -> Int {
        let index = workers.count
        workers.append(
            Worker(
                identity: WorkerIdentity(
                    name: "w\(index)",
                    incarnation: Incarnation(rawValue: UInt64(index + 1)),
                    connection: 1
                ),
                slots: slots,
                queues: queues,
                kinds: kinds,
                runsAnyKind: runsAnyKind,
                offer: offer
            )
        )
        hello(from: index)
        return index
    }

    package mutating func hello(
        from worker: Int,
        connection: UInt32? = nil,
        reign: Reign = SchedulerBench.reign,
        held: [HeldAttempt] = [],
        firstEvent: UInt64? = nil,
        lastEvent: UInt64? = nil,
        draining: Bool = false,
        id: String = "",
        predecessor: Incarnation? = nil
    ) {
        if let connection, connection > workers[worker].identity.connection {
            workers[worker].identity.connection = connection
            workers[worker].received = 0
        }
        workers[worker].held = held
        let next = workers[worker].nextEvent
        var hello = Hello(
            sentAt: now.monotonic,
            host: "bench",
            processID: 1,
            slots: workers[worker].slots,
            queues: workers[worker].queues,
            kinds: workers[worker].kinds,
            held: held,
            firstEvent: firstEvent ?? next,
            lastEvent: lastEvent ?? next - 1,
            isDraining: draining,
            worker: id,
            predecessor: predecessor
        )
        hello.runsAnyKind = workers[worker].runsAnyKind
        hello.offer = workers[worker].offer
        send(.hello(hello), from: worker, reign: reign)
    }

    package mutating func beat(
        from worker: Int,
        received: UInt64? = nil,
        sent: UInt64? = nil,
        held: [HeldAttempt]? = nil,
        open: [OpenRequest] = [],
        draining: Bool = false
    ) {
        send(
            .beat(
                Beat(
                    sentAt: now.monotonic,
                    received: received ?? workers[worker].received,
                    sent: sent ?? workers[worker].nextEvent - 1,
                    held: held ?? workers[worker].held,
                    isDraining: draining,
                    open: open
                )
            ),
            from: worker
        )
    }

    package mutating func send(
        _ body: WorkerMessage,
        from worker: Int,
        connection: UInt32? = nil,
        reign: Reign = SchedulerBench.reign,
        epoch: Epoch? = nil
    ) {
        var sender = workers[worker].identity
        if let connection { sender.connection = connection }
        drive(
            .workerMessage(
                WorkerEnvelope(
                    reign: reign,
                    epoch: epoch ?? scheduler.epoch,
                    sequence: 0,
                    sender: sender,
                    body: body
                )
            )
        )
    }

    /// The latest attempt at this operation that a worker holds, and who that is.
    package func attempt(_ name: String) -> (worker: Int, held: HeldAttempt) {
        let id = id(name)
        var latest: (worker: Int, held: HeldAttempt)?
        for (index, worker) in workers.enumerated() {
            for held in worker.held where held.operation == id {
                if let latest, held.attempt < latest.held.attempt { continue }
                latest = (index, held)
            }
        }
        guard let latest else { preconditionFailure("no worker holds an attempt at “\(name)”") }
        return latest
    }

    /// Sends the next event of a worker.
    package mutating func send(_ event: WorkerEvent, from worker: Int) {
        let number = workers[worker].nextEvent
        workers[worker].nextEvent += 1
        send(
            .events(EventBatch(firstNumber: number, sentAt: now.monotonic, events: [event])),
            from: worker
        )
    }

    package mutating func start(_ name: String) {
        let (worker, held) = attempt(name)
        send(.started(held, at: now.monotonic), from: worker)
    }

    package mutating func finish(_ name: String, _ end: AttemptEnd = .succeeded) {
        let (worker, held) = attempt(name)
        settle(held, result(end), from: worker)
    }

    /// Ends an attempt with a result of the test's own making.
    package mutating func settle(
        _ held: HeldAttempt,
        _ result: AttemptResult,
        from worker: Int
    ) {
        workers[worker].held.removeAll { $0 == held }
        send(.finished(held, result), from: worker)
    }

    /// It followed another reign meanwhile, and counts its events from 1 again.
    package mutating func helloAfterAnotherReign(from worker: Int, connection: UInt32) {
        workers[worker].nextEvent = 1
        hello(from: worker, connection: connection, reign: Reign(rawValue: 8))
    }

    package mutating func giveBack(_ name: String) {
        let (worker, held) = attempt(name)
        workers[worker].held.removeAll { $0 == held }
        send(.returned(held), from: worker)
    }

    package func result(_ end: AttemptEnd) -> AttemptResult {
        AttemptResult(end: end, startedAt: now.monotonic, endedAt: now.monotonic)
    }

    /// Orders that reached a worker since the last time.
    package mutating func takeOrders(of worker: Int) -> [Order] {
        let orders = workers[worker].orders
        workers[worker].orders = []
        return orders
    }

    /// Forgets what a worker was sent, as if it had been lost on the way.
    package mutating func lose(_ name: String) {
        let (worker, held) = attempt(name)
        workers[worker].held.removeAll { $0 == held }
    }

    private mutating func deliver(_ message: Scheduler.Message) {
        guard case .worker(let address) = message.destination,
            let index = workers.firstIndex(where: {
                $0.identity.incarnation == address.incarnation
                    && $0.identity.connection == address.connection
            })
        else { return }
        workers[index].received = max(workers[index].received, message.sequence)
        switch message.body {
        case .dispatch(_, let grants):
            for grant in grants where !workers[index].held.contains(grant.held) {
                workers[index].held.append(grant.held)
            }
        case .plain(.control(let control)): workers[index].orders += control.orders
        case .plain(.welcome(let welcome)): workers[index].orders += welcome.orders
        case .plain: break
        }
    }
}

extension OperationDescription {
    /// A short-hand for tests: an operation that does nothing.
    package static func nothing(
        _ name: String,
        after dependencies: [String] = [],
        _ condition: DependencyCondition = .unlessFailed,
        _ change: (inout OperationDescription) -> Void = { _ in }
    ) -> OperationDescription {
        var operation = OperationDescription(name: name, work: .nothing)
        operation.dependencies = dependencies.map { DependencyDescription($0, condition) }
        change(&operation)
        return operation
    }
}
