import Foundation
import OperonFaultKit
import Testing

/// `operon map`: what it prints, its exit codes and its joblog. scripts/check-map compares it with
/// GNU parallel.
@Suite(.serialized) struct MapTests {
    @Test func `each operation has its own output, in the order of the values`() async throws {
        try await Workspace.run { workspace in
            let ended = try await workspace.operon([
                "map", "-k", "-j3", "echo {}-out; echo {}-err >&2; sleep 0.{}; echo {#}", "3", "2",
                "1",
            ])

            #expect(ended.end == .exit(0))
            #expect(ended.output == "3-out\n1\n2-out\n2\n1-out\n3\n")
            #expect(ended.errors == "3-err\n2-err\n1-err\n")
        }
    }

    @Test func `commands have the environment and the directory of the shell`() async throws {
        try await Workspace.run { workspace in
            let ended = try await workspace.operon(
                ["map", "echo $MAP_TEST; touch {}", "here"],
                environment: ["MAP_TEST": "inherited"]
            )

            #expect(ended.output == "inherited\n")
            #expect(FileManager.default.fileExists(atPath: workspace.path("here")))
        }
    }

    @Test func `the exit code counts failures, and other errors are 255`() async throws {
        try await Workspace.run { workspace in
            let codes: [([String], Int32)] = [
                (["exit {}", "0", "1", "2"], 2), (["-j4", "--fail-fast", "exit {}", "1"], 1),
                (["--dry-run", "exit {}", "1"], 0), (["--bogus", "x"], 255),
                (["-j", "0", "x"], 255),
                (["--resume", "x", "y"], 255), (["echo {2}", "a"], 255),
                (["--joblog", ".", "x", "y"], 255), (["--broker", "nohost", "x", "y"], 255),
                (["--help"], 0),
            ]
            for (arguments, code) in codes {
                let ended = try await workspace.operon(["map"] + arguments)
                #expect(ended.end == .exit(code), "\(arguments): \(ended.errors)")
            }
        }
    }

    @Test func `output that cannot be written is no success`() async throws {
        try await Workspace.run { workspace in
            let full = try await workspace.operon(
                ["map", "--joblog", "log", "echo {}", "1", "2"],
                streams: .fullOutput
            )
            #expect(full.end == .exit(255))
            let sentence = "Standard output cannot be written: No space left on device.\n"
            #expect(full.errors == sentence)
            #expect(workspace.lines(of: "log").count == 1, "a line for an output that is lost")
        }
    }

    @Test func `a reader that leaves ends the run`() async throws {
        try await Workspace.run { workspace in
            let script = """
                { "$0" map -j1 'echo {}; echo {} >>ran' $(seq 5000); echo $? >code; } | head -n 1
                """
            let ended = try await workspace.start(
                "/bin/sh",
                ["-c", script, try Program.executable("operon")]
            ).end()
            #expect(ended.output == "1\n")
            #expect(workspace.lines(of: "code") == ["141"])
            #expect(workspace.lines(of: "ran").count < 5_000)
        }
    }

    @Test func `a value that is too long for Linux is refused`() async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("values", "a\n" + String(repeating: "x", count: 400_000))
            let ended = try await workspace.operon(["map", "-a", "values", "echo"])
            #expect(ended.end == .exit(255))
            #expect(ended.errors.contains("value 2 has more than 131071 bytes"))
        }
    }

    @Test func `failed attempts are repeated, and only the last output is shown`() async throws {
        try await Workspace.run { workspace in
            let ended = try await workspace.operon([
                "map", "--retry", "1", "echo $OPERON_ATTEMPT; test -e {} || { touch {}; exit 1; }",
                "done",
            ])

            #expect(ended.end == .exit(0))
            #expect(ended.output == "2\n")
        }
    }

    @Test func `an operation that takes too long fails, and its output is shown`() async throws {
        try await Workspace.run { workspace in
            let command = "echo begun; sleep {}"
            let ended = try await workspace.operon(["map", "--timeout", "0.2s", command, "60"])

            #expect(ended.end == .exit(1))
            #expect(ended.output == "begun\n")
            #expect(ended.errors == "operon: timed out: echo begun; sleep 60\n")
        }
    }

    @Test func `a run is resumed from its joblog`() async throws {
        try await Workspace.run { workspace in
            let arguments = ["map", "-k", "--joblog", "log"]
            let command = ["echo {}; test -e {}", "a", "b"]
            _ = try workspace.write("a", "")
            let first = try await workspace.operon(arguments + command)
            #expect(first.end == .exit(1))
            // Its end is missing, as after a kill.
            let log = try String(contentsOfFile: workspace.path("log"), encoding: .utf8)
            _ = try workspace.write("log", log + "3\t:\t179")

            let second = try await workspace.operon(arguments + ["--resume"] + command + ["c"])
            let third = try await workspace.operon(
                arguments + ["--resume-failed"] + command + ["c"]
            )
            let other = try await workspace.operon(arguments + ["--resume", "echo {}", "a"])

            #expect(second.output == "c\n")
            #expect(third.output == "b\nc\n")
            let rows = workspace.lines(of: "log").map { $0.split(separator: "\t") }
            #expect(rows.map { $0[0] } == ["Seq", "1", "2", "3", "2", "3"])
            #expect(rows.map { $0[6] } == ["Exitval", "0", "1", "1", "1", "1"])
            #expect(rows.dropFirst().allSatisfy { $0.count == 9 && $0[5] == "2" })
            #expect(other.end == .exit(255))
            #expect(
                other.errors == "log is the log of other commands: number 1 was"
                    + " echo a; test -e a, and is now echo a\n"
            )
        }
    }

    @Test func `a value with line ends is one line of the joblog`() async throws {
        try await Workspace.run { workspace in
            let value = "a\r\n7\t:\t0\t0\t0\t0\t0\t0\techo x"
            _ = try workspace.write("values", value + "\0")
            let arguments = ["-0", "-a", "values", "echo"]
            let first = try await workspace.operon(["map", "--joblog", "log"] + arguments)
            let second = try await workspace.operon(
                ["map", "--joblog", "log", "--resume"] + arguments
            )
            let log = try workspace.read("log")

            #expect(first.end == .exit(0), "\(first.errors)")
            #expect(log.utf8.count { $0 == UInt8(ascii: "\n") } == 2)
            #expect(second.end == .exit(0) && second.output.isEmpty, "\(second.errors)")
        }
    }

    @Test(arguments: ["buy milk\n", "buy milk"])
    func `a file that is no joblog is left as it is`(text: String) async throws {
        try await Workspace.run { workspace in
            _ = try workspace.write("notes", text)
            let ended = try await workspace.operon([
                "map", "--joblog", "notes", "--resume", "echo", "a",
            ])

            #expect(ended.end == .exit(255))
            #expect(
                ended.errors
                    == (text.hasSuffix("\n")
                        ? "notes:1: this is no line of a joblog; to begin anew, remove the file\n"
                        : "notes is no joblog; to begin one, remove the file.\n")
            )
            #expect(try workspace.read("notes") == text)
        }
    }

    // MARK: - On workers

    private static let both = "echo {}-out; echo {}-err >&2; exit {}"

    @Test func `outputs come from the workers of a broker`() async throws {
        try await Workspace.run { workspace in
            try workspace.startWorkers(2, slots: 2)
            let broker = try Workspace.testBroker()
            let options = ["map", "--broker", broker, "--prefix", workspace.prefix, "-k"]

            let ended = try await workspace.operon(
                options + ["--joblog", "log", Self.both, "0", "2", "0"]
            )
            #expect(ended.end == .exit(1))
            #expect(ended.output == "0-out\n2-out\n0-out\n")
            #expect(ended.errors == "0-err\n2-err\n0-err\n")
            let rows = workspace.lines(of: "log").dropFirst().map { $0.split(separator: "\t") }
            #expect(Set(rows.map { $0[0] + $0[6] }) == ["10", "22", "30"])
            #expect(rows.allSatisfy { $0[1] == "w1" || $0[1] == "w2" })

            let bare = try await workspace.operon(options + ["printf '\\n{}'; false", "a", "b"])
            #expect(bare.end == .exit(2))
            #expect(bare.output == "\na\nb")
        }
    }

    @Test func `outputs come from a coordinator, and a failure cancels the others`() async throws {
        try await Workspace.run { workspace in
            let options = ["map", "--coordinator", try await Up(workspace).address]
            let all = try await workspace.operon(options + ["-k", Self.both, "0", "2", "0"])
            #expect(all.end == .exit(1))
            #expect(all.output == "0-out\n2-out\n0-out\n")
            #expect(all.errors == "0-err\n2-err\n0-err\n")

            let stopped = try await workspace.operon(
                options + ["--fail-fast", "test {} != 1 || exit 1; sleep 600", "0", "1"]
            )
            #expect(stopped.end == .exit(1))

            let large = try await workspace.operon(
                options + ["head -c 2000000 /dev/zero | tr '\\0' {}", "x"]
            )
            #expect(large.end == .exit(255))
            #expect(large.output.utf8.count > 900_000 && large.output.allSatisfy { $0 == "x" })
            #expect(
                large.errors.contains("the first bytes of the output of map[1] are missing")
            )
        }
    }
}
