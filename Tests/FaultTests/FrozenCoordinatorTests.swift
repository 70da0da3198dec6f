import Foundation
import Glibc
import OperonFaultKit
import Testing

/// A coordinator that stands still, as if its host had been suspended, and comes back to a world
/// that went on.
@Suite struct FrozenCoordinatorTests {
    /// Layers 0 and 1 run under the first coordinator; the second layer from the end waits until
    /// the test lets it go on.
    private static func graph(_ workspace: Workspace) throws -> (file: String, graph: LayeredGraph)
    {
        try workspace.writeGraph(
            layers: 6,
            width: 3,
            milliseconds: 20...60,
            gates: [1: "taken", 4: "back"]
        )
    }

    @Test func `one that finds another in its place changes nothing`() async throws {
        try await FaultProxy.withProxy(to: Workspace.testBroker()) { proxy in
            try await Workspace.run { workspace in
                let (file, graph) = try Self.graph(workspace)
                try workspace.startWorkers(2, slots: 2)
                let old = try await Ruler(workspace, "old.db", broker: proxy.clientURL)
                try await old.submit(file)
                try await workspace.waitForStarts(6)
                let new = try await Self.takeOver(old, proxy, workspace)
                _ = try workspace.write("taken", "")
                try await workspace.waitForStarts(15)

                old.program.signal(SIGCONT)
                let ended = try await old.program.end()
                #expect(ended.end == .exit(8), "\(ended.errors)")
                let sentence = try #require(ended.errorLines.last)
                #expect(sentence.contains("Another coordinator"), "\(sentence)")
                _ = try workspace.write("back", "")
                try await new.waitForEnd()
                try workspace.expectEachOnce(graph)
            }
        }
    }

    @Test func `one whose successor has come and gone changes nothing`() async throws {
        try await FaultProxy.withProxy(to: Workspace.testBroker()) { proxy in
            try await Workspace.run { workspace in
                let (file, graph) = try Self.graph(workspace)
                let workers = try workspace.startWorkers(2, slots: 2)
                let old = try await Ruler(workspace, "old.db", broker: proxy.clientURL)
                try await old.submit(file)
                try await workspace.waitForStarts(6)
                let new = try await Self.takeOver(old, proxy, workspace)
                _ = try workspace.write("taken", "")
                _ = try workspace.write("back", "")
                try await new.waitForEnd()
                new.program.signal(SIGTERM)
                #expect(try await new.program.end().end == .exit(0))

                // Nobody is in its place: only the workers know that somebody was.
                old.program.signal(SIGCONT)
                let ended = try await old.program.end()
                #expect(ended.end == .exit(8), "\(ended.errors)")
                let sentence = try #require(ended.errorLines.last)
                #expect(sentence.contains("A newer coordinator rules (epoch 2)"), "\(sentence)")
                try workspace.expectEachOnce(graph)
                #expect(workers.allSatisfy { !$0.hasEnded })
            }
        }
    }

    @Test func `one that is frozen keeps its file, and a short time costs nobody a lease`()
        async throws
    {
        try await Workspace.run { workspace in
            let (file, graph) = try Self.graph(workspace)
            try workspace.startWorkers(2, slots: 2)
            let ruler = try await Ruler(workspace, "graphs.db")
            try await ruler.submit(file)
            try await workspace.waitForStarts(6)
            try await ruler.program.freeze()
            let frozenAt = ContinuousClock.now
            // What runs ends, and nobody hears it.
            _ = try workspace.write("taken", "")
            let second = try await workspace.operon(
                try Ruler.arguments(workspace, "graphs.db", broker: Workspace.testBroker())
            )
            #expect(second.end == .exit(8))
            #expect(second.errors.contains("graphs.db"), "\(second.errors)")
            #expect(second.errorLines.count == 1, "\(second.errors)")
            // Longer than a lease of six seconds, shorter than the broker waits for a heartbeat.
            try await Task.sleep(until: frozenAt + .seconds(8), clock: .continuous)
            ruler.program.signal(SIGCONT)
            _ = try workspace.write("back", "")
            try await ruler.waitForEnd()

            try workspace.expectEachOnce(graph)
            for name in graph.dependencies.keys.sorted() {
                #expect(try workspace.ledger().starts(of: name).map(\.attempt) == [1])
            }
        }
    }

    @Test func `one that is a hundred times as slow costs nobody a lease`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  long: { run: 'echo long >>ran; while ! [ -e go ]; do sleep 0.05; done' }
                  many: { forEach: 1..600, run: 'echo {element} >>ran' }
                """
            )
            try workspace.startWorkers(2, slots: 4)
            let ruler = try await Ruler(workspace, "graphs.db")
            try await ruler.submit(file)
            try await workspace.waitForLines(8, of: "ran")
            // Twice a lease of six seconds. The process runs for one hundredth of the time, and
            // never stands still for as long as a beat of two seconds.
            let end = ContinuousClock.now + .seconds(12)
            while ContinuousClock.now < end {
                ruler.program.signal(SIGSTOP)
                try await Task.sleep(for: .milliseconds(495))
                ruler.program.signal(SIGCONT)
                try await Task.sleep(for: .milliseconds(5))
            }
            _ = try workspace.write("go", "")
            try await ruler.waitForEnd()
            #expect(workspace.lines(of: "ran").count == 601, "nothing ran twice")
        }
    }

    /// Freezes a coordinator, and starts another on its disk as it was at that moment, where the
    /// first has lost its connection: a host that stands still, and one that takes over from a
    /// snapshot of its volume.
    private static func takeOver(
        _ old: Ruler,
        _ proxy: FaultProxy,
        _ workspace: Workspace
    ) async throws -> Ruler {
        try await old.program.freeze()
        for part in ["", "-wal"] {
            try FileManager.default.copyItem(
                atPath: workspace.path("old.db" + part),
                toPath: workspace.path("new.db" + part)
            )
        }
        await proxy.cutAll()
        return try await Ruler(workspace, "new.db")
    }
}

/// A coordinator with a file in its workspace, and a client of it.
private struct Ruler {
    let program: Program
    private let workspace: Workspace
    private let address: String

    /// Returns when it answers.
    init(_ workspace: Workspace, _ store: String, broker: String? = nil) async throws {
        self.workspace = workspace
        program = try workspace.start(
            "operon",
            try Self.arguments(workspace, store, broker: broker ?? Workspace.testBroker())
        )
        try await program.says("answers at ")
        let line = program.errors.text.split(separator: "\n").last { $0.contains("answers at ") }
        address = try #require(line?.split(separator: " ").last.map(String.init))
    }

    static func arguments(_ workspace: Workspace, _ store: String, broker: String) throws
        -> [String]
    {
        [
            "coordinator", "--broker", broker, "--prefix", workspace.prefix,
            "--store", workspace.path(store), "--listen", "unix:" + workspace.path(store + ".sock"),
        ]
    }

    private func operon(_ arguments: String...) async throws {
        let ended = try await workspace.operon(
            arguments,
            environment: ["OPERON_COORDINATOR": address]
        )
        #expect(ended.end == .exit(0), "\(ended.errors)")
    }

    func submit(_ file: String) async throws { try await operon("submit", file) }

    /// Returns when all of its graph succeeded.
    func waitForEnd() async throws { try await operon("wait", "@latest", "--timeout", "170s") }
}

extension Workspace {
    /// Returns when so many operations have started, by their own word.
    fileprivate func waitForStarts(_ count: Int) async throws {
        let deadline = ContinuousClock.now + .seconds(120)
        while try ledger().entries.count(where: { $0.kind == .start }) < count {
            guard ContinuousClock.now < deadline else {
                throw CommandFailure("fewer than \(count) started: \(lines(of: "ledger"))")
            }
            // What an operation does gives no signal.
            try await Task.sleep(for: .milliseconds(10))
        }
    }
}
