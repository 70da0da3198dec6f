import Foundation
import Glibc
import OperonModel
import OperonPorts
import OperonTesting
import Testing

/// What docs/COMMANDS.md shows is what the commands print.
@Suite(.serialized) struct CommandTourTests {
    @Test func `every example of the documentation is as it stands there`() async throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let page = root.appendingPathComponent("docs/COMMANDS.md")
        let documented = (try? String(contentsOf: page, encoding: .utf8)) ?? ""
        let clock = ManualClock()
        try await LiveServer.run(clock: clock, holdsAll: true) { server in
            var tour = Tour(server, clock)
            try await tour.submit()
            try await tour.look()
            try await tour.steer()
            try await tour.manage()
            try await tour.mend()
            try await tour.extend()
            try await tour.stray()
            // What differs is put where it can be copied from.
            if let path = ProcessInfo.processInfo.environment["OPERON_TOUR"] {
                try tour.examples.joined(separator: "\n").write(
                    toFile: path,
                    atomically: true,
                    encoding: .utf8
                )
            }
            for example in tour.examples {
                #expect(documented.contains(example), "docs/COMMANDS.md lacks:\n\(example)")
            }
            let shown = documented.split(separator: "\n").count { $0.hasPrefix("$ operon ") }
            #expect(shown == tour.examples.count, "docs/COMMANDS.md shows what is not tried")
        }
    }
}

/// Uses the commands one after the other, as somebody would.
private struct Tour {
    private let server: LiveServer
    private let clock: ManualClock
    private(set) var examples: [String] = []

    init(_ server: LiveServer, _ clock: ManualClock) {
        self.server = server
        self.clock = clock
    }

    /// Runs a command line and keeps what it printed: data first, then sentences.
    private mutating func run(_ line: String, code: Int32 = 0) async throws {
        let ended = try await server.operon(line)
        #expect(ended.end == .exit(code), "\(line): \(ended.end)\n\(ended.errors)")
        var text = "$ operon \(line)\n" + ended.output + ended.errors
        if code != 0 { text += "$ echo $?\n\(code)\n" }
        examples.append(text.replacing(server.workspace.directory, with: "/home/ann/books"))
        guard code == 0, !ended.output.isEmpty, Self.looks.contains(where: { line.hasPrefix($0) }),
            !line.contains("--retry")
        else { return }
        // Whoever reads must learn that the disk took nothing of it.
        let lost = try await server.operon(line, streams: .fullOutput)
        #expect(lost.end == .exit(74), "\(line) on a full disk: \(lost.end)")
        #expect(lost.errors.contains("Standard output cannot be written"), "\(lost.errors)")
        // Who has stopped reading is told nothing.
        let unread = try await server.operon(line, streams: .closedOutput)
        #expect(unread.end == .signal(SIGPIPE), "\(line) without a reader: \(unread.end)")
        #expect(!unread.errors.contains("tandard output"), "\(unread.errors)")
    }

    /// The commands that change nothing, and so can be repeated.
    private static let looks = [
        "list", "status", "operations", "show", "explain", "logs", "output ", "queue list",
        "queue show", "key list", "key show", "workers", "dead", "events", "validate", "graph ",
        "approvals", "trigger list", "trigger show", "trigger next", "trigger history", "doctor",
        "audit", "token list", "store", "report", "wait ",
    ]

    /// Ends an operation that has run for this long.
    private func finish(
        _ operation: String,
        after seconds: Int,
        _ failure: OperationError? = nil,
        output: String = ""
    ) async throws {
        try await server.wait(for: operation, .executing)
        clock.advance(by: .seconds(seconds))
        try await server.finish(operation, failure, output: output)
    }

    mutating func submit() async throws {
        try await server.cluster.join(
            "worker-1",
            slots: 8,
            host: "node-1",
            queues: ["default"],
            kinds: [],
            offer: WorkerOffer(
                resources: [.cpus(8), .memory(bytes: 16 << 30)],
                labels: [WorkerLabel("region", "eu")]
            )
        )
        _ = try server.workspace.write("wordcount.yaml", LiveServer.wordcount)
        try await run("submit wordcount.yaml --idempotency-key monday")
        try await run("submit wordcount.yaml --idempotency-key monday --output quiet")
    }

    mutating func look() async throws {
        try await server.cluster.print(
            OperationSelector(path: "0/split"),
            "creating file 'xaa'\ncreating file 'xab'"
        )
        try await finish("0/split", after: 3, output: #"{"parts":2}"#)
        try await server.wait(for: "0/count-a", .executing)
        try await server.cluster.join(
            "worker-2",
            slots: 4,
            host: "node-2",
            queues: ["default", "licensed"],
            kinds: ["MergeCounts"],
            offer: WorkerOffer(
                resources: [.cpus(4), .memory(bytes: 8 << 30), .gpus(1)],
                labels: [WorkerLabel("region", "us")]
            )
        )
        clock.advance(by: .seconds(1))
        try await run("list")
        try await run("list --output json")
        try await run("status")
        try await run("status wordcount")
        try await run("operations @latest")
        try await run("operations @latest --state executing --output quiet")
        try await run("show 0/count-a")
        try await run("explain 0/merge")
        try await run("logs 0/split")
        try await run("output 0/split")
        try await run("output 0/count-a", code: 6)
        try await run("wait 0 --timeout 0.1s", code: 4)
    }

    mutating func steer() async throws {
        try await run("priority 0/count-b high")
        try await run("suspend 0 --reason \"disk is full\" --until 2030-01-01T00:00:00Z")
        try await run("status 0")
        try await run("explain 0/count-b")
        try await run("resume 0")
        try await run("suspend --queue licensed")
        try await run("resume --queue licensed")
    }

    mutating func manage() async throws {
        try await run("dependency add 0/merge --on 0/split --when succeeded")
        try await run("dependency remove 0/merge --on 0/split")
        try await run("dependency add 0/split --on 0/merge", code: 2)
        try await run("dependency add 0/count-b --on 0/merge", code: 2)
        try await run("queue set licensed --max 4 --priority low")
        try await run("queue suspend licensed --reason \"license server is down\"")
        try await run("queue list")
        try await run("queue resume licensed")
        try await run("queue show licensed")
        try await run("queue list --output quiet")
        try await run("key list")
        try await run("key set db --limit 2")
        try await run("key show db")
        try await server.wait(for: "0/count-b", .executing)
        clock.advance(by: .milliseconds(800))
        try await run("workers")
        try await run("drain worker-2")
        await server.tap.answerBackup(with: [UInt8](repeating: 7, count: 4_096))
        try await run("backup monday.db")
    }

    mutating func mend() async throws {
        try await run("cancel 0/count-b --reason \"wrong input\"")
        try await server.wait(for: "0/count-b", .finished)
        try await finish("0/count-a", after: 14, .exit(code: 2))
        try await run("watch 0", code: 1)
        try await run("wait 0", code: 1)
        try await run("explain 0/merge")
        try await run("dead")
        try await run("retry 0 --failed")
        try await finish("0/count-a", after: 2)
        try await finish("0/merge", after: 1)
        try await run("wait 0", code: 3)
        try await run("show 0/count-a")
        try await run("events --after 25")
    }

    mutating func extend() async throws {
        _ = try server.workspace.write(
            "night.yaml",
            "name: night\noperations: { collect: { run: ./collect } }\n"
        )
        _ = try server.workspace.write(
            "more.yaml",
            "operations: { report: { run: ./report, dependencies: [collect] } }\n"
        )
        try await run("submit night.yaml --open")
        try await run("submit more.yaml --graph night")
        try await run("graph close night")
        try await server.wait(for: "night/collect", .executing)
        try await run("cancel night/collect")
        try await server.wait(for: "night/report", .executing)
        try await run("cancel night")
        try await server.wait(for: "night/report", .finished)
        try await run("retry night --cancelled")
        try await finish("night/collect", after: 5, .signal(name: "SIGSEGV"))
        try await run("dead night --retry")
        _ = try server.workspace.write(
            "train.yaml",
            "name: train\noperations:\n"
                + "  small: { run: ./train, resources: { cpus: 6 } }\n"
                + "  next: { run: ./train, resources: { cpus: 6 } }\n"
                + "  large: { run: ./train, resources: { cpus: 6, gpus: 4 } }\n"
                + "  far: { run: ./train, workers: { region: asia } }\n"
        )
        try await run("submit train.yaml")
        try await server.wait(for: "train/small", .executing)
        try await run("status")
        try await run("explain train/large")
    }

    mutating func stray() async throws {
        try await run("status wordcuont", code: 6)
        try await run("show 0/mrege", code: 6)
        try await run("queue show licenced", code: 6)
        _ = try server.workspace.write(
            "cycle.yaml",
            "operations:\n  a: { run: ls, dependencies: [b] }\n"
                + "  b: { run: ls, dependencies: [a] }\n"
        )
        try await run("submit cycle.yaml", code: 2)
        try await run("list --coordinator http://127.0.0.1:1", code: 5)
    }
}
