import Foundation
import Glibc
import Testing

/// A worker that is kept running, and one that keeps its identity.
@Suite(.serialized) struct SupervisionTests {
    /// The worker that a supervisor has started, other than the one before.
    private static func worker(
        of supervisor: Program,
        after last: pid_t? = nil
    ) async throws -> pid_t {
        let deadline = ContinuousClock.now + .seconds(120)
        while ContinuousClock.now < deadline {
            if let child = children(of: supervisor.process).first(where: { $0 != last }) {
                return child
            }
            // A start of somebody else's process gives no signal.
            try await Task.sleep(for: .milliseconds(20))
        }
        throw CommandFailure("no worker came; the supervisor said: \(supervisor.errors.text)")
    }

    private static func children(of parent: pid_t) -> [pid_t] {
        let entries = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return entries.compactMap { pid_t($0) }.filter { number in
            let stat = try? String(contentsOfFile: "/proc/\(number)/stat", encoding: .utf8)
            guard let end = stat?.lastIndex(of: ")"), let stat else { return false }
            let fields = stat[end...].split(separator: " ")
            return fields.count > 2 && fields[1] != "Z" && pid_t(fields[2]) == parent
        }
    }

    @Test(arguments: [false, true])
    func `a worker that is killed twice during a run is there again each time`(
        hasDirectory: Bool
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  a: { run: 'touch a$OPERON_ATTEMPT; test $OPERON_ATTEMPT -ge 2 || sleep 1000' }
                  b: { run: 'touch b$OPERON_ATTEMPT; test $OPERON_ATTEMPT -ge 2 || sleep 1000',
                       dependencies: [a] }
                  c: { run: 'echo done > c', dependencies: [b] }
                """
            )
            let directory = ["--state-directory", workspace.path("state")]
            let options = ["--supervise"] + (hasDirectory ? directory : [])
            let supervisor = try workspace.startWorkers(1, slots: 1, options)[0]
            let run = try workspace.startRun(file, on: .broker, ["--output", "json"])
            try await workspace.waitForFile("a1")
            let first = try await Self.worker(of: supervisor)
            kill(first, SIGKILL)
            try await workspace.waitForFile("b1")
            let second = try await Self.worker(of: supervisor, after: first)
            kill(second, SIGKILL)
            let ended = try await run.end()

            #expect(ended.end == .exit(0), "\(ended.errors)")
            let report = try ended.report()
            #expect(report["a"]?.attempts.count == 2)
            #expect(report["b"]?.attempts.count == 2)
            #expect(try workspace.read("c") == "done\n")
            supervisor.signal(SIGTERM)
            let supervised = try await supervisor.end()
            #expect(supervised.end == .exit(0))
            let told = supervised.errors.matches(of: /was ended by SIGKILL; restarting it/)
            #expect(told.count == 2)
        }
    }

    @Test func `a supervisor that is asked to end has its worker drain`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { run: 'touch r; until test -e go; do sleep 0.05; done' } }"
            )
            let supervisor = try workspace.startWorkers(1, slots: 1, ["--supervise"])[0]
            let run = try workspace.startRun(file, on: .broker)
            try await workspace.waitForFile("r")
            supervisor.signal(SIGTERM)
            try await supervisor.says("draining")
            _ = try workspace.write("go", "")
            let ended = (try await run.end(), try await supervisor.end())

            #expect(ended.0.end == .exit(0))
            #expect(ended.1.end == .exit(0))
        }
    }

    @Test func `a worker whose supervisor is killed dies with all it runs`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { run: 'touch r; test $OPERON_ATTEMPT = 2 || sleep 1000' } }"
            )
            let options = ["--supervise", "--state-directory", workspace.path("state")]
            let supervisor = try workspace.startWorkers(1, slots: 1, options)[0]
            let run = try workspace.startRun(file, on: .broker)
            try await workspace.waitForFile("r")
            supervisor.signal(SIGKILL)
            try await supervisor.end()
            try await workspace.waitUntilNoProcess(named: "sleep")
            try workspace.startWorkers(1, slots: 1, options)
            let ended = try await run.end()

            #expect(ended.end == .exit(0))
        }
    }

    @Test func `a wrong call is not tried again`() async throws {
        try await Workspace.run { workspace in
            for arguments in [[], ["--broker", "http://host/"]] as [[String]] {
                let program = try workspace.start("operon-worker", ["--supervise"] + arguments)
                let ended = try await program.end()

                #expect(ended.end == .exit(2))
                #expect(!ended.errors.contains("restarting it"))
            }
        }
    }

    @Test func `a pause ends when the supervisor is asked to end`() async throws {
        try await Workspace.run { workspace in
            let url = try Workspace.testBroker().replacing(/:\/\/.*@/, with: "://nobody:wrong@")
            let supervisor = try workspace.startWorkers(1, slots: 1, broker: url, ["--supervise"])[
                0
            ]
            try await supervisor.says("ended with exit code 5; restarting it in")
            supervisor.signal(SIGTERM)
            let ended = try await supervisor.end()

            #expect([.exit(0), .exit(5), .signal(15), .exit(143)].contains(ended.end))
        }
    }

    @Test func `a second worker on the same state directory is refused`() async throws {
        try await Workspace.run { workspace in
            let directory: [String: String?] = [
                "STATE_DIRECTORY": workspace.path("state") + ":/other"
            ]
            let first = try workspace.startWorkers(1, slots: 1, environment: directory)[0]
            try await first.says("serves")
            let second = try workspace.startWorkers(1, slots: 1, environment: directory)[0]
            let ended = try await second.end()

            #expect(ended.end == .exit(8))
            #expect(ended.errors.contains("is held by process \(first.process)"))
            #expect(!first.hasEnded)
            first.signal(SIGTERM)
            #expect(try await first.end().end == .exit(0))
            let third = try workspace.startWorkers(1, slots: 1, environment: directory)[0]
            try await third.says("serves")
        }
    }

    @Test func `a state directory that cannot be made is a wrong call`() async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("file", "")
            let options = ["--state-directory", workspace.path("file/state")]
            let ended = try await workspace.startWorkers(1, slots: 1, options)[0].end()

            #expect(ended.end == .exit(2))
            #expect(ended.errors.contains("file/state"))
        }
    }
}
