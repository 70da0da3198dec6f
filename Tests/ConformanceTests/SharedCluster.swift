import Foundation
import Logging
import Operon
import OperonFaultKit

/// A coordinator with a store and a prefix of its own, and workers: what all rows of one back end
/// share. It is started when the first of them needs it, and ends with the test runner: programs
/// die with the thread that started them, and whatever their operations left with them.
actor SharedCluster {
    nonisolated let cluster: Cluster
    /// Another client of the same coordinator.
    nonisolated let otherCluster: Cluster
    nonisolated let turnstile: Turnstile
    nonisolated let prefix: String
    private let isMortal: Bool
    private let folder: String
    private let broker: BrokerUsers
    private var workers: [Program?] = []
    private var workerCount = 0
    private let coordinator: Program

    private static let clusters = Lock<[BackEnd: Task<SharedCluster, any Error>]>([:])

    static func of(_ backEnd: BackEnd) async throws -> SharedCluster {
        let task = clusters.withLock { clusters in
            if let task = clusters[backEnd] { return task }
            let task = Task {
                let shared = try await SharedCluster(
                    isMortal: backEnd.isMortal,
                    slots: backEnd.slots
                )
                try await shared.startWorkers(backEnd.slots)
                return shared
            }
            clusters[backEnd] = task
            return task
        }
        return try await task.value
    }

    /// Says what may explain a failure.
    private static let logger: Logger = {
        var logger = Logger(label: "conformance") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .error
        return logger
    }()

    init(isMortal: Bool, slots: Int) async throws {
        self.isMortal = isMortal
        broker = try BrokerUsers()
        let name = UUID().uuidString.prefix(13).lowercased()
        prefix = "test.\(name)."
        folder =
            FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path
            + "/operon-conformance-\(name)"
        try FileManager.default.createDirectory(
            atPath: folder + "/tmp",
            withIntermediateDirectories: true
        )
        Remains.note(folder)
        coordinator = try Program(
            "operon",
            [
                "coordinator", "--broker", broker.coordinator, "--prefix", prefix,
                "--store", folder + "/graphs.db", "--listen", "unix:\(folder)/operon.sock",
            ],
            environment: Self.environment(folder),
            directory: folder
        )
        Remains.note(coordinator)
        try await coordinator.says("answers at ")
        let url = try Self.address(coordinator)
        cluster = Cluster.remote(url, logger: Self.logger)
        otherCluster = Cluster.remote(url, logger: Self.logger)
        // Where workers come and go, more rows wait than run.
        turnstile = Turnstile(slots)
    }

    private static func address(_ coordinator: Program) throws -> String {
        let said = coordinator.output.text + coordinator.errors.text
        guard let range = said.range(of: "answers at ") else {
            throw Failure("no address: \(said)")
        }
        let word = said[range.upperBound...].prefix { !$0.isWhitespace }
        return String(word)
    }

    private static func environment(_ folder: String) -> [String: String] {
        [
            "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
            "HOME": folder, "LANG": "C.UTF-8", "TMPDIR": folder + "/tmp", "USER": "somebody",
            // A crash that is meant needs no explanation.
            "SWIFT_BACKTRACE": "enable=no",
        ]
    }

    // MARK: - Workers

    func startWorkers(_ count: Int) async throws {
        for _ in 0..<count { workers.append(try startWorker()) }
        for worker in workers { try await worker?.says("welcomed by the coordinator") }
    }

    /// One more, of one slot. Returns when the coordinator knows it.
    func addWorker() async throws -> Program {
        let worker = try startWorker()
        try await worker.says("welcomed by the coordinator")
        return worker
    }

    private func startWorker() throws -> Program {
        workerCount += 1
        let worker = try Program(
            "conformance-worker",
            [broker.worker, prefix, "w\(workerCount)", "1"],
            environment: Self.environment(folder),
            directory: folder
        )
        Remains.note(worker)
        return worker
    }

    /// Ends it before the test runner does.
    func end() async throws {
        let programs = workers.compactMap { $0 } + [coordinator]
        for program in programs { program.signal(SIGKILL) }
        for program in programs { try await program.end() }
        await cluster.close()
        await otherCluster.close()
        try removeFolder()
    }

    /// The guards of killed workers remove what is theirs at the same time.
    private func removeFolder() throws {
        while true {
            do {
                return try FileManager.default.removeItem(atPath: folder)
            } catch CocoaError.fileNoSuchFile where FileManager.default.fileExists(atPath: folder) {
                continue
            }
        }
    }

    /// What its workers have used of the processors since they began.
    func processorTime() throws -> Duration {
        let ticks = try workers.compactMap { $0 }.reduce(0) { sum, worker in
            let path = "/proc/\(worker.process)/stat"
            let text = try String(contentsOfFile: path, encoding: .utf8)
            // “number (name) state …”: user and system time are fields 14 and 15.
            let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
            guard fields.count > 13, let user = Int(fields[11]), let system = Int(fields[12])
            else { throw Failure("\(path) says “\(text)”") }
            return sum + user + system
        }
        return .seconds(1) * ticks / sysconf(Int32(_SC_CLK_TCK))
    }

    /// Says what nobody understands, to the coordinator and to each worker, and returns when all of
    /// them have said so.
    func speakNonsense() async throws {
        let heard = workers.compactMap { $0 } + [coordinator]
        let before = heard.map { $0.errors.text.count(of: Self.dropped) }
        try await Nonsense.speak(at: broker.coordinator, prefix: prefix)
        for (program, count) in zip(heard, before) {
            try await program.says(Self.dropped, times: count + 1)
        }
    }

    private static let dropped = "message refused"

    private var generator = SystemRandomNumberGenerator()

    /// Where workers are to die: one of them does, some time soon, and is started again.
    func strike() {
        guard isMortal else { return }
        let delay = Duration.milliseconds(Int.random(in: 0...150, using: &generator))
        let index = Int.random(in: workers.indices, using: &generator)
        Task {
            // The moment is chance itself.
            try await Task.sleep(for: delay)
            try await replace(index)
        }
    }

    private func replace(_ index: Int) async throws {
        // It may be dying already.
        guard let worker = workers[index] else { return }
        workers[index] = nil
        worker.signal(SIGKILL)
        try await worker.end(within: .seconds(60))
        workers[index] = try startWorker()
    }
}

/// What is to be ended and removed when the test runner ends.
private enum Remains {
    private static let state = Lock<(folders: [String], programs: [Program])>(([], []))

    static func note(_ folder: String) {
        let isFirst = state.withLock { state in
            state.folders.append(folder)
            return state.folders.count == 1
        }
        if isFirst { atexit { Remains.clear() } }
    }

    static func note(_ program: Program) {
        state.withLock { state in
            state.programs.removeAll(where: \.hasEnded)
            state.programs.append(program)
        }
    }

    private static func clear() {
        let (folders, programs) = state.withLock { $0 }
        for program in programs { program.signal(SIGKILL) }
        // They write until they are dead: two seconds at most.
        for _ in 0..<200 where programs.contains(where: { !$0.hasEnded }) { usleep(10_000) }
        // benign: the system clears its temporary directory.
        for folder in folders { try? FileManager.default.removeItem(atPath: folder) }
    }
}
