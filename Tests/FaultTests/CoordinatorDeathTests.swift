import Foundation
import OperonCore
import OperonFaultKit
import OperonRuntime
import Testing

/// A coordinator that keeps its graphs is killed, and started again on the same file.
@Suite(.serialized) struct CoordinatorDeathTests {
    @Test(arguments: FailPoint.allCases)
    func `a coordinator that dies between two steps loses nothing and repeats nothing`(
        point: FailPoint
    ) async throws {
        try await Scene.play { scene in
            let (file, graph) = try scene.writeGraph(layers: 4, width: 3, milliseconds: 50...150)
            try scene.startWorkers(2, slots: 2)
            let keeper = Keeper(scene)
            // Early enough for everything to be in the middle, late enough for workers to be there.
            try await keeper.start(killAt: "\(point.rawValue):4")
            try await keeper.submit(file, key: "once")
            try await keeper.restartUntilFinished()

            #expect(keeper.deaths == 1, "it came to \(point) at all")
            try expectOnce(scene, graph)
        }
    }

    @Test func `twenty deaths in a graph of two thousand operations`() async throws {
        try await Scene.play { scene in
            let (file, graph) = try scene.writeGraph(
                layers: 100,
                width: 20,
                milliseconds: 10...30
            )
            try scene.startWorkers(3, slots: 2)
            let keeper = Keeper(scene)
            var generator = faultGenerator(4)
            try await keeper.start()
            try await keeper.submit(file, key: "once")
            for _ in 0..<20 {
                // Some more have started or ended: anywhere between two of them.
                try await keeper.waitForLedger(toGrowBy: Int(generator.next() % 120) + 1)
                try await keeper.kill()
                try await keeper.start()
            }
            try await keeper.restartUntilFinished()

            #expect(keeper.deaths == 20)
            try expectOnce(scene, graph)
        }
    }

    @Test func `a second coordinator on the same file says who has it`() async throws {
        try await Scene.play { scene in
            let keeper = Keeper(scene)
            try await keeper.start()
            let second = try await keeper.second()
            #expect(second.end == .exit(8))
            #expect(second.errors.contains("graphs.db"), "\(second.errors)")
            #expect(second.errorLines.count == 1, "\(second.errors)")
        }
    }

    /// Every operation ran once, each behind the ends of what it depends on.
    private func expectOnce(_ scene: Scene, _ graph: LayeredGraph) throws {
        let ledger = try scene.ledger()
        #expect(ledger.unreadable == [])
        var ended: Set<String> = []
        var started: Set<String> = []
        for entry in ledger.entries {
            switch entry.kind {
            case .start:
                #expect(started.insert(entry.operation).inserted, "\(entry.operation) ran twice")
                let waits = graph.dependencies[entry.operation] ?? []
                #expect(ended.isSuperset(of: waits), "\(entry.operation) started early")
            case .end: ended.insert(entry.operation)
            }
        }
        #expect(ended == Set(graph.dependencies.keys))
    }
}

/// A coordinator with its file, from life to life.
private final class Keeper {
    private let scene: Scene
    private var program: Program?
    /// Taken by the first life that comes so far; clients find the later ones there.
    private var address = "127.0.0.1:0"
    private(set) var deaths = 0

    init(_ scene: Scene) { self.scene = scene }

    private func arguments() throws -> [String] {
        [
            "coordinator", "--broker", try Scene.testBroker(), "--prefix", scene.prefix,
            "--store", scene.path("graphs.db"), "--listen", address,
        ]
    }

    func start(killAt: String? = nil) async throws {
        let program = try scene.start(
            "operon",
            try arguments(),
            environment: ["OPERON_KILL_AT": killAt]
        )
        self.program = program
        do {
            try await program.says("answers at ")
        } catch {
            guard program.hasEnded else { throw error }
        }
        let line = program.errors.text.split(separator: "\n").last { $0.contains("answers at ") }
        address = line?.split(separator: " ").last.map(String.init) ?? address
    }

    func second() async throws -> Ended { try await scene.operon(try arguments()) }

    func kill() async throws {
        program?.signal(SIGKILL)
        try await died()
    }

    private func died() async throws {
        let ended = try await program?.end()
        #expect(ended?.end == .signal(SIGKILL), "\(ended?.errors ?? "")")
        deaths += 1
    }

    private var environment: [String: String?] { ["OPERON_COORDINATOR": "http://\(address)"] }

    /// Until somebody says that it is kept: with a key, twice is once.
    func submit(_ file: String, key: String) async throws {
        for _ in 0..<3 {
            let ended = try await scene.operon(
                ["submit", file, "--idempotency-key", key],
                environment: environment
            )
            if ended.end == .exit(0) { return }
            try #require(ended.end == .exit(5), "\(ended.errors)")
            try await died()
            try await start()
        }
        throw CommandFailure("nobody took the graph")
    }

    /// One client waits through all lives, if there is a coordinator when it comes.
    func restartUntilFinished() async throws {
        var ended = try await waitOnce()
        for _ in 0..<3 where ended.end == .exit(5) { ended = try await waitOnce() }
        #expect(ended.end == .exit(0), "\(ended.errors)")
        // What it still came to.
        if program?.hasEnded == true {
            try await died()
            try await start()
        }
        let list = try await scene.operon(
            ["list", "--output", "quiet"],
            environment: environment
        )
        #expect(list.outputLines == ["0"], "\(list.errors)")
    }

    private func waitOnce() async throws -> Ended {
        if program?.hasEnded == true {
            try await died()
            try await start()
        }
        let client = try scene.start(
            "operon",
            ["wait", "@latest", "--timeout", "120s"],
            environment: environment
        )
        while !client.hasEnded {
            if program?.hasEnded == true {
                try await died()
                try await start()
            }
            // Which of both ends first gives no signal.
            try await Task.sleep(for: .milliseconds(10))
        }
        return try await client.end()
    }

    func waitForLedger(toGrowBy count: Int) async throws {
        let before = scene.lines(of: "ledger").count
        let deadline = ContinuousClock.now + .seconds(60)
        while scene.lines(of: "ledger").count < before + count {
            guard ContinuousClock.now < deadline else {
                throw CommandFailure("nothing runs: \(program?.errors.text ?? "")")
            }
            // What an operation does gives no signal.
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}
