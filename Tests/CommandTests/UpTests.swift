import Foundation
import Glibc
import OperonFaultKit
import OperonGraphFile
import OperonHTTP
import OperonModel
import OperonPorts
import Testing

/// `operon up`, from submission to the next life.
@Suite struct UpTests {
    @Test func `its own worker is a part of it, and cannot be drained`() async throws {
        try await Workspace.run { workspace in
            let up = try await Up(workspace)
            let drain = try await up.operon("drain", "local")
            #expect(drain.end == .exit(2))
            #expect(drain.errors.contains("is part of the coordinator"), "\(drain.errors)")
            let status = try await up.operon("status")
            #expect(status.output.contains("none: operations run in the coordinator’s process"))
        }
    }

    @Test func `a graph that was cancelled is listed as that`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "hold.yaml",
                "operations: { hold: { external: true }, after: { run: 'true' } }"
            )
            let up = try await Up(workspace)
            try await up.act("submit", file)
            try await up.act("cancel", "hold")
            #expect(try await up.operon("wait", "hold").end == .exit(3))
            for (status, listed) in [("cancelled", "0\n"), ("finished", "0\n"), ("failed", "")] {
                let list = try await up.operon("list", "--status", status, "--output", "quiet")
                #expect(list.output == listed, "\(status)")
            }
            #expect(try await up.operon("list").output.contains("cancelled"))
            let retry = try await up.operon("retry", "hold")
            #expect(retry.errors.contains("again: operon retry hold --cancelled"), "\(retry)")
        }
    }

    @Test func `what failed runs again with its inputs, and graphs grow, whoever died meanwhile`()
        async throws
    {
        try await Workspace.run { workspace in
            let demo = try workspace.write(
                "demo.yaml",
                """
                name: demo
                operations:
                  a: { run: 'echo "\\"A\\"" > $OPERON_OUTPUT' }
                  bad: { run: 'test -e fixed && cat $OPERON_INPUTS > bad.in', dependencies: [a] }
                  after: { run: touch after, dependencies: [bad] }
                """
            )
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", demo, "--wait").end == .exit(1))
            #expect(!FileManager.default.fileExists(atPath: workspace.path("after")))

            _ = try workspace.write("fixed", "")
            #expect(try await up.operon("retry", "demo", "--failed").end == .exit(0))
            #expect(try await up.operon("wait", "demo").end == .exit(0))
            #expect(try workspace.read("bad.in").contains(#""a":"A""#))
            #expect(FileManager.default.fileExists(atPath: workspace.path("after")))

            try await up.restart()
            let base = try workspace.write(
                "base.yaml",
                """
                name: base
                operations:
                  one: { run: 'echo 1 > $OPERON_OUTPUT', dependencies: [demo/after] }
                """
            )
            #expect(try await up.operon("submit", base, "--open").end == .exit(0))
            let more = try workspace.write(
                "more.yaml",
                """
                operations:
                  two: { run: 'cat $OPERON_INPUTS > two.in', dependencies: [one] }
                """
            )
            let added = try await up.operon("submit", more, "--graph", "base")
            #expect(added.end == .exit(0), "\(added.errors)")

            try await up.restart()
            let three = try workspace.write(
                "three.yaml",
                """
                operations:
                  three: { run: 'cat $OPERON_INPUTS > three.in', dependencies: [one, two] }
                """
            )
            #expect(try await up.operon("submit", three, "--graph", "base").end == .exit(0))
            #expect(try await up.operon("graph", "close", "base").end == .exit(0))
            let late = try await up.operon("submit", more, "--graph", "base")
            #expect(late.end == .exit(2), "\(late.errors)")
            let ended = try await up.operon("wait", "base")
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(try workspace.read("two.in").contains(#""one":1"#))
            #expect(try workspace.read("three.in").contains(#""one":1"#))
        }
    }

    @Test func `what a second Ctrl-C ends is given back, and runs again`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "long.yaml",
                """
                name: long
                operations:
                  a:
                    run: trap '' TERM; echo $$ >> runs; until test -e go; do sleep 0.05; done
                    retry: { limit: 0 }
                """
            )
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", file).end == .exit(0))
            try await workspace.waitForFile("runs")
            let ended = try await up.interruptTwice()
            #expect(ended.end == .exit(0), "\(ended.errors)")
            let said = "running operations have 30 s to finish; a second signal"
            #expect(ended.errors.contains(said), "\(ended.errors)")
            #expect(workspace.lines(of: "runs").count == 1)
            let first = try #require(workspace.lines(of: "runs").first.flatMap { pid_t($0) })
            #expect(!workspace.processes().contains(first), "it was ended with its coordinator")

            try await up.begin()
            _ = try workspace.write("go", "")
            let waited = try await up.operon("wait", "long")
            #expect(waited.end == .exit(0), "\(waited.errors)")
            let shown = try await up.operon("show", "long/a", "--output", "json")
            let detail = try JSONDecoder().decode(
                OperationDetail.self,
                from: Data(shown.output.utf8)
            )
            #expect(detail.attempts.map(\.ending) == ["returned", "succeeded"])
            #expect(workspace.lines(of: "runs").count == 2)
        }
    }

    @Test func `outputs cross graphs, and rounds that another graph opens, whoever died meanwhile`()
        async throws
    {
        try await Workspace.run { workspace in
            let first = try workspace.write(
                "first.yaml",
                """
                name: first
                operations:
                  source: { run: 'echo "\\"S\\"" > $OPERON_OUTPUT' }
                  bad: { run: 'test -e fixed && echo 7 > $OPERON_OUTPUT', dependencies: [source] }
                """
            )
            let second = try workspace.write(
                "second.yaml",
                """
                name: second
                operations:
                  own: { run: 'echo 5 > $OPERON_OUTPUT', dependencies: [first/source] }
                  follow:
                    run: cat $OPERON_INPUTS > follow.in
                    dependencies: [first/source, own, first/bad]
                """
            )
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", first, "--wait").end == .exit(1))
            try await up.restart()
            // What has finished, and nobody was known to ask for, is read from the store.
            let submitted = try await up.operon("submit", second, "--wait")
            #expect(submitted.end == .exit(7), "\(submitted.errors)")
            try await up.restart()
            // A newer graph of the same name is not what was meant.
            #expect(try await up.operon("submit", first, "--wait").end == .exit(1))

            _ = try workspace.write("fixed", "")
            let retried = try await up.operon("retry", "0", "--failed")
            #expect(retried.end == .exit(0), "\(retried.errors)")
            try await up.restart()
            let ended = try await up.operon("wait", "second")
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(
                try workspace.read("follow.in").filter { !$0.isWhitespace }
                    == #"{"first/source":"S","own":5,"first/bad":7}"#
            )
        }
    }

    @Test func `the name of a group runs the elements again that failed`() async throws {
        try await Workspace.run { workspace in
            let sweep = try workspace.write(
                "sweep.yaml",
                """
                name: sweep
                operations:
                  r: { run: 'echo $item >> ledger; test -e fixed -o $item = a', forEach: [a, b, c] }
                  other: { run: 'false' }
                """
            )
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", sweep, "--wait").end == .exit(1))

            _ = try workspace.write("fixed", "")
            let retried = try await up.operon("retry", "sweep/r")
            #expect(retried.end == .exit(0), "\(retried.errors)")
            // “other” failed, and was not named.
            #expect(try await up.operon("wait", "sweep").end == .exit(1))
            #expect(workspace.lines(of: "ledger").sorted() == ["a", "b", "b", "c", "c"])
        }
    }

    @Test func `dependencies, priorities and suspensions are as they were made, after each death`()
        async throws
    {
        try await Workspace.run { workspace in
            let gate = try workspace.write(
                "gate.yaml",
                """
                name: gate
                operations:
                  gate: { run: 'until test -e open; do sleep 0.1; done; echo 1 > $OPERON_OUTPUT' }
                """
            )
            let chain = try workspace.write(
                "chain.yaml",
                """
                name: chain
                operations:
                  freed: { run: touch freed, dependencies: [gate/gate] }
                  held: { run: 'test -e freed && touch held' }
                """
            )
            let up = try await Up(workspace)
            #expect(try await up.operon("suspend", "--queue", "default").end == .exit(0))
            #expect(try await up.operon("submit", gate).end == .exit(0))
            #expect(try await up.operon("submit", chain, "--open").end == .exit(0))
            try await up.restart()
            let adding = ["dependency", "add", "chain/held", "--on", "chain/freed"]
            let added = try await up.operon(adding + ["--when", "succeeded"])
            #expect(added.end == .exit(0))
            let fact = "1/held now depends on 1/freed. It is pending."
            #expect(added.errors == "\(fact) To see why: operon explain 1/held\n")
            #expect(try await up.operon(adding + ["--when", "succeeded"]).end == .exit(0))
            let other = try await up.operon(adding)
            #expect(other.end == .exit(2) && other.errors.contains("with the condition succeeded"))
            try await up.restart()
            let more = try workspace.write(
                "last.yaml",
                """
                operations:
                  last: { run: 'cat $OPERON_INPUTS > last.in', dependencies: [gate/gate, held] }
                """
            )
            #expect(try await up.operon("submit", more, "--graph", "chain").end == .exit(0))
            try await up.restart()
            let removing = ["dependency", "remove", "chain/freed", "--on", "gate/gate"]
            let removed = try await up.operon(removing + ["--output", "quiet"])
            #expect(removed.end == .exit(0) && removed.output == "1/freed\n")
            #expect(try await up.operon(removing).end == .exit(6))
            #expect(try await up.operon("graph", "close", "chain").end == .exit(0))
            try await up.restart()
            #expect(try await up.operon("resume", "--queue", "default").end == .exit(0))
            // It waits for the gate no more, and what waits for it goes on.
            try await workspace.waitForFile("held")
            try await up.restart()
            _ = try workspace.write("open", "")
            let ended = try await up.operon("wait", "chain")
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(try workspace.read("last.in").contains(#""gate/gate":1"#))
        }
    }
}

/// `operon up` in a workspace, from life to life.
final class Up {
    private let workspace: Workspace
    private(set) var program: Program
    /// The same in every life: a socket.
    let address: String

    private let options: [String]

    init(_ workspace: Workspace, _ options: String...) async throws {
        self.workspace = workspace
        self.options = options
        address = "unix:\(workspace.path("operon.sock"))"
        program = try Self.start(in: workspace, address, options)
        try await program.says("answers at \(address)")
    }

    private static func start(
        in workspace: Workspace,
        _ address: String,
        _ options: [String]
    ) throws -> Program {
        let arguments = ["up", "--store", workspace.path("graphs.db"), "--listen", address]
        return try workspace.start("operon", arguments + ["--slots", "2"] + options)
    }

    func restart() async throws {
        program.signal(SIGKILL)
        #expect(try await program.end().end == .signal(SIGKILL))
        try await begin()
    }

    func interruptTwice() async throws -> Ended {
        program.signal(SIGINT)
        try await program.says("stopping; unfinished graphs continue at the next start")
        program.signal(SIGINT)
        return try await program.end()
    }

    /// Its next life.
    func begin() async throws {
        program = try Self.start(in: workspace, address, options)
        try await program.says("answers at \(address)")
    }

    /// Asks for something that there is no command for.
    func client<Answer: Sendable>(
        _ ask: (HTTPCoordinatorClient) async throws -> Answer
    ) async throws -> Answer {
        let client = try HTTPCoordinatorClient(
            HTTPCoordinatorClient.Configuration(url: address),
            codec: GraphFileCodec()
        )
        do {
            let answer = try await ask(client)
            await client.shutDown()
            return answer
        } catch {
            await client.shutDown()
            throw error
        }
    }

    func operon(_ arguments: String...) async throws -> Ended { try await operon(arguments) }

    /// Runs a command that succeeds.
    func act(_ arguments: String...) async throws {
        let acted = try await operon(arguments)
        #expect(acted.end == .exit(0), "\(arguments): \(acted.errors)")
    }

    func operon(_ arguments: [String]) async throws -> Ended {
        try await workspace.operon(
            arguments,
            environment: ["OPERON_COORDINATOR": address]
        )
    }
}
