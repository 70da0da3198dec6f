import ArgumentParser
import Logging
import OperonAMQP
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTrust
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Many workers in one process, for `scripts/load`. Each has what `operon-worker` has towards the
/// broker and the coordinator: a connection, an identity, a lease, beats and operations of its own.
/// They share the thread of their connections and what starts processes, which alone would be six
/// threads and a process for each of them.
///
/// Prints a line each time the number of workers that a coordinator has welcomed reaches `step`
/// more. It serves until it is killed.
@main struct ManyWorkers: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "many-workers")

    @Option var broker: String
    @Option var prefix = "operon."
    @Option var count = 1_000
    @Option var slots = 1
    @Option var step = 100

    func run() async throws {
        var logger = Logger(label: "many-workers")
        logger.logLevel = .error
        let connection = try BrokerConnection(url: broker, prefix: prefix)
        let processes = try ProcessRunner(ProcessRunner.Configuration(environment: [:]))
        let offer = try Machine(environment: [:]).checkedOffer(resources: [], labels: [])
        let token = try TrustChoice.worker(nil, environment: OwnProcess.environment) { _ in }
        let welcomed = Welcomed(step: step, count: count)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                let trust = token.map { WorkerTrust($0) }
                let incarnation = trust?.incarnation ?? .drawn()
                var agent = WorkerAgent.Configuration(
                    name: "many-\(number)",
                    incarnation: incarnation,
                    host: OwnProcess.hostName,
                    processID: OwnProcess.id,
                    slots: slots,
                    kinds: RegisteredKinds.none.names
                )
                agent.offer = offer
                let service = WorkerService(
                    agent: WorkerAgent(configuration: agent),
                    transport: connection.workerTransport(of: incarnation, logger: logger),
                    seals: trust.map { WorkerSealBox($0) { _ in } },
                    processes: processes,
                    logger: logger,
                    observer: { notices in
                        for notice in notices {
                            switch notice {
                            case .welcomed: welcomed.add(number)
                            case .refused(let why): Self.say("refused \(why)")
                            case .leaseExpired(let dropped): Self.say("lease over, \(dropped)")
                            default: break
                            }
                        }
                    }
                )
                group.addTask(executorPreference: connection.executor) { try await service.run() }
            }
            try await group.waitForAll()
        }
    }

    private static func say(_ line: String) {
        print(line)
        fflush(nil)
    }

    /// Counts each worker once, however often it connects.
    private final class Welcomed: Sendable {
        private let seen = Mutex<Set<Int>>([])
        private let step: Int
        private let count: Int

        init(step: Int, count: Int) {
            self.step = step
            self.count = count
        }

        func add(_ number: Int) {
            let total = seen.withLock { seen in
                seen.insert(number).inserted ? seen.count : 0
            }
            if total > 0, total % step == 0 || total == count { say("welcomed \(total)") }
        }
    }
}
