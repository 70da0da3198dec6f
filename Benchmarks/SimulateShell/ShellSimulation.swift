import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import OperonWire

/// A cluster of one seed: the real `CoordinatorService` with its contents and the bytes of its
/// messages, over a broker, a store, workers and clients that are models.
///
/// `@unchecked Sendable`: everything in this process runs on one thread.
final class ShellSimulation: @unchecked Sendable {
    let machine: SimulatedMachine
    let scenario: ShellScenario
    let rule: BrokenRule?
    let store: InMemoryStore
    let reign: Reign
    let ledger: ShellLedger
    var workers: [ShellWorker]
    /// The coordinator that runs, or the last one that did.
    var process: CoordinatorProcess?
    var brokerIsUp = true
    var intruder: SimulatedIntruder?
    /// When the last message of each way arrives: none overtakes another.
    var laneFree: [ShellLane: Timestamp] = [:]
    var hasHealed = false
    private var starts = 0
    /// Where the coordinator dies next, and whether its machine does.
    private var crash: (point: CrashPoint, isPowerCut: Bool)?
    private var diskIsFull = false
    private var syncFails = false
    private var clientsLeft: Int
    private var tasks: [Task<Void, Never>] = []
    /// Nothing new begins any more.
    private(set) var isEnding = false
    private let logger: Logger

    /// After the last fault: patience, leases, and what is left to run.
    private static let timeToEnd = Duration.seconds(400)
    private static let stepsMax = 3_000_000

    /// - Parameter rule: A rule that is broken on purpose.
    init(seed: UInt64, breaking rule: BrokenRule?, trace: ((String) -> Void)?) {
        machine = SimulatedMachine(seed: seed)
        scenario = ShellScenario(&machine.random)
        self.rule = rule
        reign = Reign(rawValue: seed | 1)
        store = InMemoryStore(reign: reign, limits: scenario.limits)
        workers = (0..<scenario.workers).map { _ in ShellWorker() }
        clientsLeft = scenario.clients + (scenario.hasTriggers ? 1 : 0)
        if scenario.hasIntruder { intruder = SimulatedIntruder(seed: seed) }
        ledger = ShellLedger(scenario, trace: trace)
        let isTraced = trace != nil
        logger = Logger(label: "coordinator") { label in
            guard isTraced else { return SwiftLogNoOpLogHandler() }
            return StreamLogHandler.standardOutput(label: label)
        }
    }

    /// Runs it to its end; returns the rule that was broken.
    func run() -> String? {
        precondition(JobQueue.isEmpty, "something of another seed is left")
        start()
        let limit = SimulatedMachine.start + scenario.healAt + Self.timeToEnd
        let isInTime = machine.run(steps: Self.stepsMax) {
            ledger.broken != nil || isOver || machine.now > limit
        }
        if ledger.broken == nil, !isInTime, !machine.isIdle {
            ledger.breaks("it never comes to rest")
        } else if ledger.broken == nil, !isOver {
            let graphs = ledger.unfinished
            let unseen = ledger.unseenEnds
            let what =
                !graphs.isEmpty
                ? "for the ends of \(graphs)"
                : !unseen.isEmpty ? "for events of the ends of \(unseen)" : "for \(ledger.waitsFor)"
            ledger.breaks("after \(machine.elapsed) somebody waits \(what)")
        }
        let broken = ledger.broken
        end()
        return broken
    }

    /// Ends all tasks, so that nothing of this seed is left when the next one begins.
    private func end() {
        isEnding = true
        die(isPowerCut: false)
        for task in tasks { task.cancel() }
        machine.finish()
        // Each holds this simulation.
        tasks = []
        process = nil
    }

    /// Whether all clients have what they wanted, and whoever follows events has seen all ends.
    private var isOver: Bool { clientsLeft == 0 && ledger.unseenEnds.isEmpty }

    private func start() {
        startCoordinator()
        for index in workers.indices {
            machine.after(machine.draw(upTo: .seconds(1))) { self.boot(index) }
        }
        for client in 0..<scenario.clients {
            tasks.append(
                Task {
                    await self.runClient(client)
                    self.clientsLeft -= 1
                }
            )
        }
        if scenario.hasTriggers {
            tasks.append(
                Task {
                    await self.runTriggers()
                    self.clientsLeft -= 1
                }
            )
        }
        tasks.append(Task { await self.followEvents() })
        intrude()
        for (time, fault) in scenario.faults { machine.after(time) { self.happen(fault) } }
        machine.after(scenario.healAt) { self.heal() }
    }

    func note(_ what: @autoclosure () -> String) {
        guard ledger.isTraced else { return }
        ledger.note("\(machine.elapsed): \(what())")
    }

    // MARK: - Faults

    private func happen(_ fault: ShellScenario.Fault) {
        note("fault: \(fault)")
        switch fault {
        case .coordinatorKilled: die(isPowerCut: false)
        case .coordinatorKilledAt(let point): crash = (point, false)
        case .powerCut(nil): die(isPowerCut: true)
        case .powerCut(let point?): crash = (point, true)
        case .coordinatorLeaves: leave()
        case .brokerDown:
            brokerIsUp = false
            process.map { disconnect($0, isBroker: true) }
            for index in workers.indices { disconnect(index) }
            machine.after(machine.draw(upTo: .seconds(8))) {
                self.brokerIsUp = true
                self.process.map { self.connect($0) }
            }
        case .coordinatorCut: process.map { disconnect($0, isBroker: false) }
        case .workerKilled: kill(machine.draw(below: workers.count))
        case .workerCut: disconnect(machine.draw(below: workers.count))
        case .diskFull:
            diskIsFull = true
            machine.after(machine.draw(upTo: .seconds(8))) { self.diskIsFull = false }
        case .syncFails: syncFails = true
        case .clockSet(let step): machine.set(by: step)
        }
    }

    private func heal() {
        note("healed")
        crash = nil
        diskIsFull = false
        syncFails = false
        machine.setRight()
        hasHealed = true
    }

    // MARK: - The coordinator

    private func startCoordinator() {
        guard !isEnding else { return }
        starts += 1
        let process = CoordinatorProcess(number: starts, simulation: self)
        self.process = process
        note("coordinator \(starts) starts")
        Task { await self.run(process) }
    }

    private func run(_ process: CoordinatorProcess) async {
        do {
            var configuration = Scheduler.Configuration()
            configuration.limits = scenario.limits
            configuration.seed = UInt64(process.number)
            configuration.violation = rule?.scheduler
            let time = machine.source
            let (scheduler, restored) = try await CoordinatorService.restore(
                from: process,
                configuration: configuration,
                triggers: Self.triggerSupport,
                time: time,
                violation: rule?.service
            )
            let service = CoordinatorService(
                scheduler: scheduler,
                transport: process.transport,
                logger: logger,
                operationsPerMessage: scenario.operationsPerMessage,
                restored: restored,
                triggers: Self.triggerSupport,
                time: time,
                machineTime: time,
                violation: rule?.service,
                passed: { self.passed($0, process) },
                observer: { _, _ in }
            )
            process.service = service
            process.epoch = scheduler.epoch
            process.client = LocalCoordinator(service: service, caller: "", version: "0")
            process.isOpen.open()
            connect(process)
            process.activities.append(Task { await service.runTriggers() })
            if let retention = scenario.retention {
                process.activities.append(
                    Task {
                        // If it ends by an error, so does the service.
                        try? await service.keepPruned(within: retention)
                    }
                )
            }
            try await service.run()
            ended(process, nil)
        } catch {
            ended(process, error)
        }
    }

    /// The process of a coordinator has ended, which somebody starts again.
    private func ended(_ process: CoordinatorProcess, _ error: (any Error)?) {
        for activity in process.activities { activity.cancel() }
        // It holds this process.
        process.service = nil
        process.client = nil
        guard !process.isDead else { return }
        // While no honest worker follows it, a hostile one can claim that a newer one rules.
        let isSuperseded = (error as? PortError)?.code == .prefixHeld && scenario.hasIntruder
        if !process.mayEnd, !isSuperseded {
            ledger.breaks("coordinator \(process.number) ended: \(error.map { "\($0)" } ?? "why?")")
        }
        die(isPowerCut: process.hasFailedSync)
    }

    private func passed(_ point: CrashPoint, _ process: CoordinatorProcess) {
        guard let crash, crash.point == point, process === self.process, !process.isDead else {
            return
        }
        self.crash = nil
        die(isPowerCut: crash.isPowerCut)
    }

    /// Whatever it does from now on reaches nobody.
    private func die(isPowerCut: Bool) {
        guard let process, !process.isDead else { return }
        note("coordinator \(process.number) dies\(isPowerCut ? " with its machine" : "")")
        process.isDead = true
        process.isOpen.open()
        process.transport.end()
        let outage = machine.draw(upTo: .seconds(hasHealed ? 1 : 10))
        Task {
            if isPowerCut { await self.store.cutPower() } else { await self.store.kill() }
            try? await self.machine.sleep(for: outage)
            self.startCoordinator()
        }
    }

    /// In good order.
    private func leave() {
        guard let process, !process.isDead, let service = process.service else { return }
        process.mayEnd = true
        Task { await service.shutDown() }
    }

    // MARK: - The disk

    func beforeCommit(_ process: CoordinatorProcess) async throws {
        try await machine.sleep(for: machine.draw(upTo: scenario.diskMax))
        try process.check()
        if diskIsFull { throw StoreError(.full, "The disk is full.") }
    }

    func sync(_ process: CoordinatorProcess) async throws {
        try await machine.sleep(for: machine.draw(upTo: scenario.diskMax))
        try process.check()
        guard syncFails else { return }
        syncFails = false
        note("a sync fails")
        process.hasFailedSync = true
        process.mayEnd = true
        throw StoreError(.failed, "The disk does not sync.")
    }
}

/// One process of the coordinator, and what it sees of its store.
///
/// `@unchecked Sendable`: everything in this process runs on one thread.
final class CoordinatorProcess: OperationStore, @unchecked Sendable {
    let number: Int
    let transport: ShellTransport
    private unowned let simulation: ShellSimulation
    /// Opens when clients can reach it, or when it is dead.
    let isOpen = Latch()
    var service: CoordinatorService?
    var epoch = Epoch(rawValue: 0)
    var client: LocalCoordinator?
    var activities: [Task<Void, Never>] = []
    var isDead = false
    /// Whether it was told to end, or must.
    var mayEnd = false
    /// What the disk has is not known any more.
    var hasFailedSync = false

    init(number: Int, simulation: ShellSimulation) {
        self.number = number
        self.simulation = simulation
        transport = ShellTransport(simulation)
    }

    func check() throws {
        guard !isDead else { throw StoreError(.failed, "The process is dead.") }
    }

    private var store: InMemoryStore {
        get throws {
            try check()
            return simulation.store
        }
    }

    func open() async throws -> StoredState { try await store.open() }

    func commit(_ batch: StoreBatch, by epoch: Epoch) async throws {
        try await simulation.beforeCommit(self)
        // As the real store does.
        if hasFailedSync { throw StoreError(.failed, "The disk did not sync.") }
        try await store.commit(batch, by: epoch)
    }

    func sync() async throws {
        if hasFailedSync {
            simulation.ledger.breaks("coordinator \(number) syncs after a sync that failed")
        }
        let simulation = simulation
        try await store.sync { try await simulation.sync(self) }
    }

    func output(of operation: OperationID) async throws -> Payload? {
        try await store.output(of: operation)
    }

    func log(of operation: OperationID) async throws -> [StoredLog] {
        try await store.log(of: operation)
    }

    func loggedOperations(of graph: GraphID) async throws -> [UInt32] {
        try await store.loggedOperations(of: graph)
    }

    func attempts(of operation: OperationID) async throws -> [StoredAttempt] {
        try await store.attempts(of: operation)
    }

    func attempts(
        of graph: GraphID,
        in operations: Range<UInt32>
    ) async throws -> [StoreChanges.Attempt] {
        try await store.attempts(of: graph, in: operations)
    }

    func events(after: UInt64, limit: Int) async throws -> [StoredEvent] {
        try await store.events(after: after, limit: limit)
    }

    func prunable(beyond bounds: StoreRetention.Bounds) async throws -> [GraphID] {
        try await store.prunable(beyond: bounds)
    }

    func drop(_ graphs: [GraphID], by epoch: Epoch) async throws {
        try await store.drop(graphs, by: epoch)
    }

    func forget(workers: [Incarnation], by epoch: Epoch) async throws -> [Incarnation] {
        try await store.forget(workers: workers, by: epoch)
    }

    func backup() async throws -> StoreBackup? { nil }

    func close() async {
        guard !isDead else { return }
        await simulation.store.close()
    }
}
