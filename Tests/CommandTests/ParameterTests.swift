import OperonFaultKit
import Testing

/// `--set` and `--parameters` of the commands that take a graph file.
@Suite(.timeLimit(.minutes(5))) struct ParameterTests {
    private static let graph = """
        name: report-${day}
        parameters:
          day: { description: The day of the report. }
          width: { type: integer, default: 640, values: [320, 640, 1280] }
          files: [a.csv]
        operations:
          fetch: { command: [echo, "${day}", "${files}"] }
          draw: { run: 'echo "$day" "$width"', dependencies: [fetch] }

        """

    @Test func `values reach the arguments and the variables of processes`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            let values = try workspace.write("v.json", #"{"day": "mon", "files": ["x y", "z"]}"#)
            let given = ["--parameters", values, "--set", "width=1280", "--set", "day=a b"]
            let logs = workspace.path("logs")
            let ended = try await workspace.run(
                file,
                on: .inProcess,
                given + ["--logs", logs, "--output", "json"]
            )
            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(ended.output.contains("\"report-a b\""))
            #expect(workspace.lines(of: "logs/0-fetch.1.log") == ["a b x y z"])
            #expect(workspace.lines(of: "logs/1-draw.1.log") == ["a b 1280"])
        }
    }

    @Test(arguments: Place.allCases)
    func `elements run with their values, and the group after them`(place: Place) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  r: { run: 'echo "$item" >> ledger', forEach: { lines: list } }
                  m: { run: 'test $a -lt 2', matrix: { a: 1..2, b: [x] } }
                  each: { run: 'echo "each $a" >> ledger', matrix: { a: 1..2, b: [x] },
                    dependencies: ["m[*]"] }
                  all: { run: echo all >> ledger, dependencies: [r] }
                  never: { run: echo never >> ledger, dependencies: [m] }

                """
            )
            _ = try workspace.write("list", "b c\na\n")
            if place == .broker { try workspace.startWorkers(1, slots: 2) }
            let ended = try await workspace.run(file, on: place, ["--output", "json"])

            let outcomes = try ended.report().outcomes
            #expect(ended.end == .exit(1))
            #expect(
                outcomes == [
                    "r[b c]": "succeeded", "r[a]": "succeeded", "r": "succeeded",
                    "m[a=1,b=x]": "succeeded", "m[a=2,b=x]": "failed", "m": "skipped",
                    "each[a=1,b=x]": "succeeded", "each[a=2,b=x]": "skipped", "each": "skipped",
                    "all": "succeeded", "never": "skipped",
                ]
            )
            let ledger = workspace.lines(of: "ledger")
            #expect(Set(ledger) == ["b c", "a", "each 1", "all"])
            let last = ledger.lastIndex(of: "all") ?? 0
            #expect(["b c", "a"].allSatisfy { ledger.firstIndex(of: $0) ?? .max < last })
        }
    }

    @Test(arguments: [
        (
            [],
            "report-needs.yaml:3:3: parameter “day” has no default and needs a value "
                + "(on the command line: --set day=VALUE)"
        ),
        (
            ["--set", "day=x", "--set", "width=641"],
            "--set width: “width” must be one of “320”, “640”, “1280”, not “641”"
        ),
        (
            ["--set", "day=x", "--set", "widht=640"],
            "--set widht: the graph has no parameter “widht”; did you mean “width”?"
        ),
        (
            ["--set", "day"],
            "The value “day” is invalid for “--set <name=value>”: it needs NAME=VALUE"
        ),
        (
            ["--parameters", "none.json"],
            "none.json: the file cannot be read: No such file or directory"
        ),
    ])
    func `a wrong value is one sentence, and nothing runs`(
        given: [String],
        wanted: String
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("report-needs.yaml", Self.graph)
            for command in ["run", "validate", "graph"] {
                let ended = try await workspace.operon([command, file] + given)
                #expect(ended.end == .exit(2))
                #expect(ended.errors.contains(wanted), "\(ended.errors)")
                #expect(ended.output == "")
            }
        }
    }

    @Test func `a submitted graph has the values, and an added one`() async throws {
        try await LiveServer.run { server in
            let file = try server.workspace.write(
                "open.yaml",
                "name: n-${day}\nparameters: { day: }\noperations: { a: { external: true } }\n"
            )
            try await server.run("submit \(file) --open --set day=mon")
            let more = try server.workspace.write(
                "more.yaml",
                "parameters: { x: b }\noperations: { '${x}': { external: true } }\n"
            )
            try await server.run("submit \(more) --graph n-mon --set x=c")
            let names = try await server.run("operations n-mon --output quiet")
            #expect(names == "0/a\n0/c\n")
        }
    }
}
