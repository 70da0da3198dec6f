import Foundation
import Glibc
import Testing

/// A run in which nothing happens says why.
@Suite(.serialized) struct WaitingTests {
    /// Where the sentence is read.
    enum Reader: String, CaseIterable, CustomTestStringConvertible {
        case pipe
        case terminal

        var streams: Program.Streams {
            switch self {
            case .pipe: .pipes
            // Wider than any sentence, so that none is wrapped.
            case .terminal: .terminal(columns: 240, rows: 24)
            }
        }

        var testDescription: String { "on a \(rawValue)" }
    }

    /// The lines that a person sees at the end.
    private static func lines(_ ended: Ended, _ reader: Reader) -> [String] {
        switch reader {
        case .pipe: ended.errorLines.map(String.init)
        case .terminal: TerminalScreen(columns: 240, ended.output).lines
        }
    }

    @Test(arguments: Reader.allCases)
    func `an operation of a kind that this program does not know is named at once`(
        reader: Reader
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  a: { run: 'true' }
                  b: { operation: Foo, dependencies: [a] }
                  c: { operation: Foo, dependencies: [a] }
                """
            )
            let run = try workspace.startRun(file, on: .inProcess, streams: reader.streams)
            let sentence =
                "warning: 2 operations cannot run here: without a broker, there is no worker that "
                + "knows “Foo”. Start a worker of your own that does, and run with --broker."
            try await run.says(sentence)
            run.signal(SIGINT)
            let ended = try await run.end()

            #expect(ended.end == .exit(130))
            #expect(Self.lines(ended, reader).count { $0 == sentence } == 1)
        }
    }

    @Test(arguments: Reader.allCases)
    func `a kind that no worker knows is told once, with how much waits for it`(
        reader: Reader
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  a: { operation: Foo }
                  b: { operation: Foo }
                  c: { operation: Bar }
                  d: { run: 'true', delay: 5s }
                """
            )
            try workspace.startWorkers(1, slots: 1)
            let run = try workspace.startRun(file, on: .broker, streams: reader.streams)
            let foo =
                "2 operations wait for a worker that knows the kind “Foo”: start a worker of your "
                + "own that does."
            let bar = foo.replacing("2 operations wait", with: "1 operation waits")
                .replacing("Foo", with: "Bar")
            try await run.says(foo)
            try await run.says(bar)
            // It has asked again meanwhile, and was told the same.
            try await run.says(reader == .pipe ? "succeeded d" : "1/4")
            run.signal(SIGINT)
            let ended = try await run.end()

            #expect(ended.end == .exit(130))
            let lines = Self.lines(ended, reader)
            #expect(lines.count { $0 == foo } == 1)
            #expect(lines.count { $0 == bar } == 1)
            // Of the last, and of nothing else but a worker that took its time to come.
            let waits = lines.filter { $0.hasPrefix("Waiting for ") }
            #expect(waits.count { !$0.hasPrefix("Waiting for a worker") } == 1, "\(waits)")
        }
    }

    @Test(arguments: [
        ("isSuspended: true", "2 operations wait in queue “slow”, which the graph file suspends."),
        (
            "maxConcurrentOperationCount: 0",
            "2 operations wait in queue “slow”, whose limit is 0."
        ),
    ])
    func `a queue that starts nothing is told`(setting: String, sentence: String) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                queues: { slow: { \(setting) } }
                operations:
                  a: { run: 'true', queue: slow }
                  b: { run: 'true', queue: slow }
                  c: { run: 'true' }
                """
            )
            let run = try workspace.startRun(file, on: .inProcess)
            try await run.says(sentence)
            run.signal(SIGINT)
            let ended = try await run.end()

            #expect(ended.end == .exit(130))
            #expect(ended.errorLines.count { $0.hasPrefix("Waiting") } == 0)
        }
    }

    @Test func `a queue that no worker serves is told`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { run: 'true', queue: special } }"
            )
            try workspace.startWorkers(1, slots: 1, ["--queues", "other"])
            let run = try workspace.startRun(file, on: .broker)
            try await run.says(
                "1 operation waits in queue “special”, which no worker serves: "
                    + "start one with --queues."
            )
            try workspace.startWorkers(1, slots: 1, ["--queues", "special"])
            let ended = try await run.end()

            #expect(ended.end == .exit(0))
        }
    }

    @Test func `workers that all drain are told`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  a: { run: 'touch r; until test -e go; do sleep 0.1; done', priority: high }
                  b: { run: 'true' }
                """
            )
            let worker = try workspace.startWorkers(1, slots: 1, ["--drain-timeout", "1000"])[0]
            let run = try workspace.startRun(file, on: .broker)
            try await workspace.waitForFile("r")
            worker.signal(SIGTERM)
            try await run.says("Waiting for a worker: all workers are draining.")
            _ = try workspace.write("go", "")
            try await worker.end()
            try workspace.startWorkers(1, slots: 1)
            let ended = try await run.end()

            #expect(ended.end == .exit(0))
        }
    }

    @Test func `a time that has not come is told, and quiet says nothing of it`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { wait: 0s, delay: 4s } }"
            )
            let loud = try workspace.startRun(file, on: .inProcess)
            let quiet = try workspace.startRun(file, on: .inProcess, ["--output", "quiet"])
            let ended = (try await loud.end(), try await quiet.end())

            #expect(ended.0.end == .exit(0))
            let sentence = /Waiting for \d[\d.]*m?s: “a” may not start earlier\./
            #expect(ended.0.errorLines.count { $0.wholeMatch(of: sentence) != nil } == 1)
            #expect(ended.1.end == .exit(0))
            #expect(ended.1.errors == "")
        }
    }
}
