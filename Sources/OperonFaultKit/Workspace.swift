import Foundation
import Glibc
package import OperonTrust

/// Where a graph runs.
package enum Place: String, CaseIterable, Sendable {
    case inProcess
    case broker
}

/// A directory, a prefix on the broker and the programs of one test. When the test is over, however
/// it went, its programs are killed, and no process and no temporary file of theirs may be left.
package final class Workspace {
    /// Every process of this workspace has it in its environment, as a part of `TMPDIR`.
    package let directory: String
    package let prefix: String
    private let broker: String?
    /// Whether the programs seal what they send over the broker.
    private let isSealed: Bool
    private var programs: [Program] = []
    private var workerCount = 0

    private var temporary: String { directory + "/tmp" }
    /// The keys of its coordinators. Beside it, because tests look at what is in it.
    private var trust: String { directory + ".trust" }
    package var keys: TrustDirectory { TrustDirectory(path: trust) }

    /// `broker`: its URL; the one of all tests if there is none.
    ///
    /// - Throws: what `body` throws, or what was left.
    package static func run(
        broker: String? = nil,
        isSealed: Bool = true,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (Workspace) async throws -> Void
    ) async throws {
        let workspace = try Workspace(broker: broker, isSealed: isSealed)
        do {
            try await body(workspace)
        } catch {
            let left = await workspace.clear()
            guard left.isEmpty else { throw CommandFailure("\(error)\n\(left)") }
            throw error
        }
        let left = await workspace.clear()
        if !left.isEmpty { throw CommandFailure(left.joined(separator: "\n")) }
    }

    private init(broker: String?, isSealed: Bool) throws {
        self.broker = broker
        self.isSealed = isSealed
        let name = UUID().uuidString.prefix(13).lowercased()
        // Resolved: it is looked for in environments as it is written there.
        let parent = FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path
        directory = "\(parent)/operon-workspace-\(name)"
        prefix = "test.\(name)."
        try FileManager.default.createDirectory(
            atPath: temporary,
            withIntermediateDirectories: true
        )
        if isSealed { _ = try keys.create() }
    }

    // MARK: - Files

    /// Writes a file and returns its path.
    package func write(_ name: String, _ text: String) throws -> String {
        let path = self.path(name)
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        // As a file has to be that has a secret.
        chmod(path, 0o600)
        return path
    }

    package func path(_ name: String) -> String { "\(directory)/\(name)" }

    package func read(_ name: String) throws -> String {
        try String(contentsOfFile: path(name), encoding: .utf8)
    }

    /// The lines that operations appended to a file of the workspace; none, if it is not there.
    package func lines(of name: String) -> [String] {
        let text = try? String(contentsOfFile: path(name), encoding: .utf8)
        return (text ?? "").split(separator: "\n").map(String.init)
    }

    /// Returns when an operation has made this file, whatever is in it yet.
    package func waitForFile(_ name: String, within limit: Duration = .seconds(120)) async throws {
        try await wait("\(name) did not come", within: limit) {
            FileManager.default.fileExists(atPath: path(name))
        }
    }

    /// Returns when operations have appended so many lines to this file.
    package func waitForLines(
        _ count: Int,
        of name: String,
        within limit: Duration = .seconds(120)
    ) async throws {
        try await wait("\(name) has fewer than \(count) lines", within: limit) {
            lines(of: name).count >= count
        }
    }

    private func wait(
        _ failure: String,
        within limit: Duration,
        until isDone: () -> Bool
    ) async throws {
        let deadline = ContinuousClock.now + limit
        while !isDone() {
            guard ContinuousClock.now < deadline else {
                let said = programs.map { "\($0.name): \($0.errors.text)" }
                throw CommandFailure("\(failure); \(said.joined(separator: "\n"))")
            }
            // What an operation does gives no signal.
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    // MARK: - Programs

    /// What a program is given, and nothing else of the test runner's own.
    private func environment(_ additions: [String: String?]) -> [String: String] {
        let own = ProcessInfo.processInfo.environment
        var environment = [
            "PATH": own["PATH"] ?? "/usr/bin:/bin", "HOME": directory, "LANG": "C.UTF-8",
            "TMPDIR": temporary, "TERM": "xterm-256color", "USER": "somebody",
            "OPERON_TRUST": isSealed ? trust : "none",
        ]
        for (name, value) in additions { environment[name] = value }
        return environment
    }

    /// Starts a program in the workspace's directory; `nil` takes a variable away.
    package func start(
        _ name: String,
        _ arguments: [String],
        environment additions: [String: String?] = [:],
        streams: Program.Streams = .pipes
    ) throws -> Program {
        let program = try Program(
            name,
            arguments,
            environment: environment(additions),
            directory: directory,
            streams: streams
        )
        programs.append(program)
        return program
    }

    /// Runs `operon` to its end.
    package func operon(
        _ arguments: [String],
        environment: [String: String?] = [:],
        streams: Program.Streams = .pipes
    ) async throws -> Ended {
        try await start("operon", arguments, environment: environment, streams: streams).end()
    }

    /// Starts `operon run` of a file: in process on so many slots, or on the workspace's workers.
    package func startRun(
        _ file: String,
        on place: Place,
        slots: Int = 4,
        broker: String? = nil,
        _ options: [String] = [],
        environment: [String: String?] = [:],
        streams: Program.Streams = .pipes
    ) throws -> Program {
        var arguments = ["run", file] + options
        switch place {
        case .inProcess: arguments += ["--slots", "\(slots)"]
        case .broker:
            let url = try BrokerUsers(broker ?? self.broker).coordinator
            arguments += ["--broker", url, "--prefix", prefix]
        }
        return try start("operon", arguments, environment: environment, streams: streams)
    }

    /// Runs a graph to its end on four slots: of this process, or of two workers that are started
    /// for it if there are none yet.
    package func run(
        _ file: String,
        on place: Place,
        slots: Int = 4,
        _ options: [String] = [],
        environment: [String: String?] = [:]
    ) async throws -> Ended {
        if place == .broker, workerCount == 0 { try startWorkers(2, slots: slots / 2) }
        return try await startRun(
            file,
            on: place,
            slots: slots,
            options,
            environment: environment
        ).end()
    }

    /// Starts workers called w1, w2, …
    @discardableResult
    package func startWorkers(
        _ count: Int,
        slots: Int,
        broker: String? = nil,
        environment: [String: String?] = [:],
        _ options: [String] = []
    ) throws -> [Program] {
        let url = try BrokerUsers(broker ?? self.broker).worker
        return try (0..<count).map { _ in
            workerCount += 1
            let arguments = [
                "--broker", url, "--prefix", prefix, "--name", "w\(workerCount)",
                "--slots", "\(slots)",
            ]
            return try start(
                "operon-worker",
                arguments + options,
                environment: environment.merging([Ledger.workerVariable: "w\(workerCount)"]) {
                    given,
                    _ in given
                }
            )
        }
    }

    /// The broker of all tests, as the coordinator's user.
    package static func testBroker() throws -> String { try BrokerUsers().coordinator }

    // MARK: - The end

    /// The ids of all processes with the workspace's directory in their environment or, because
    /// they hide that, in their command line; with a name: of those that have it in their command
    /// line.
    package func processes(named name: String = "") -> [Int32] {
        let marker = Data(directory.utf8)
        let entries = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return entries.compactMap { entry in
            guard let number = Int32(entry),
                ["environ", "cmdline"].contains(where: { file in
                    Self.contents("/proc/\(number)/\(file)").range(of: marker) != nil
                }),
                name.isEmpty || Self.describe(number).contains(name)
            else { return nil }
            return number
        }
    }

    /// A zombie's are empty: it is dead, and holds nothing.
    private static func contents(_ path: String) -> Data {
        guard let file = FileHandle(forReadingAtPath: path) else { return Data() }
        defer { file.closeFile() }
        // benign: a process that has ended meanwhile.
        return (try? file.readToEnd()) ?? Data()
    }

    /// Returns when none of its processes is left; with a name: none with that in its command line.
    package func waitUntilNoProcess(
        named name: String = "",
        within limit: Duration = .seconds(60)
    ) async throws {
        let deadline = ContinuousClock.now + limit
        while true {
            let left = processes(named: name)
            if left.isEmpty { return }
            guard ContinuousClock.now < deadline else {
                throw CommandFailure("still there: \(left.map(Self.describe))")
            }
            // The end of somebody else's process gives no signal.
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Returns when this process of the workspace has ended.
    package func waitUntilGone(
        _ process: Int32,
        within limit: Duration = .seconds(60)
    ) async throws {
        let deadline = ContinuousClock.now + limit
        while processes().contains(process) {
            guard ContinuousClock.now < deadline else {
                throw CommandFailure("still there: \(Self.describe(process))")
            }
            // The end of somebody else's process gives no signal.
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private static func describe(_ process: Int32) -> String {
        let line = (try? String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)) ?? ""
        return "\(process) \(line.replacingOccurrences(of: "\0", with: " "))"
    }

    /// What its programs and operations have in their folder for temporary files.
    package func temporaryFiles() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: temporary).sorted()
    }

    /// Kills its programs, and tells what they left.
    private func clear() async -> [String] {
        var left: [String] = []
        for program in programs {
            program.signal(SIGCONT)
            program.signal(SIGKILL)
        }
        for program in programs {
            do {
                try await program.end(within: .seconds(60))
            } catch {
                left.append("\(error)")
            }
        }
        do {
            try await waitUntilNoProcess()
            let files = try temporaryFiles()
            if !files.isEmpty { left.append("temporary files are left: \(files)") }
        } catch {
            left.append("\(error)")
            for process in processes() { kill(process, SIGKILL) }
        }
        // benign: the system clears its temporary directory.
        try? FileManager.default.removeItem(atPath: directory)
        // benign: the system clears its temporary directory.
        try? FileManager.default.removeItem(atPath: trust)
        return left
    }
}
