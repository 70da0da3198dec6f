import Foundation
import Glibc
import Testing

/// Operations that ask for resources and labels, on real workers.
@Suite struct ResourceTests {
    /// Together with what the machine offers, more than a worker may offer.
    private static let fifteen = "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1"

    @Test func `a process is told what it got, and runs on as many processors`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  half:
                    run: |
                      echo $OPERON_CPUS $OPERON_MEMORY $CUDA_VISIBLE_DEVICES > half
                      nproc >> half
                    resources: { cpus: 0.5, memory: 1MiB, gpus: 2 }
                  none:
                    run: echo "[$OPERON_CPUS$OPERON_MEMORY]" > none
                """
            )

            let ended = try await workspace.operon([
                "run", file, "--local", "--slots", "2", "--resources", "gpus=2",
            ])

            #expect(ended.end == .exit(0), "\(ended.errors)")
            // On a machine with one processor there is nothing to bind to.
            #expect(workspace.lines(of: "half") == ["0.5 1048576 0,1", "1"])
            #expect(workspace.lines(of: "none") == ["[]"])
        }
    }

    @Test func `a run that could never end is refused before anything starts`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  first: { run: touch started }
                  big: { run: x, resources: { licences: 2 } }
                """
            )

            let none = try await workspace.operon(["run", file, "--local"])
            let few = try await workspace.operon([
                "run", file, "--local", "--resources", "licences=1",
            ])

            #expect(none.end == .exit(1))
            #expect(
                none.errors.contains(
                    "“big” can never run here: licences: 2 needed, none offered. Nothing was "
                        + "started."
                ),
                "\(none.errors)"
            )
            #expect(few.errors.contains("licences: 2 needed, 1 offered"), "\(few.errors)")
            #expect(!FileManager.default.fileExists(atPath: workspace.path("started")))
        }
    }

    @Test(arguments: [
        ("resources: { licences: 2 }", "--resources"), ("workers: { zone: a }", "--label"),
        ("resources: { cpus: 0.001 }, enforce: true", "--control-group"),
        ("resources: { licences: 2 }, workers: { zone: a }", "--resources and --label"),
    ])
    func `a refusal names the options that offer what is missing`(
        fields: String,
        options: String
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { run: x, \(fields) } }"
            )

            let ended = try await workspace.operon(["run", file, "--local"])

            #expect(ended.end == .exit(1))
            #expect(
                ended.errors.contains("Offer it with \(options), or run with --broker"),
                "\(ended.errors)"
            )
        }
    }

    @Test(arguments: ["text", "quiet"])
    func `a run ends when only added operations are left that can never run`(
        output: String
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  list: { run: 'echo "[1, 2, 3, 4]" > $OPERON_OUTPUT' }
                  render:
                    run: touch rendered
                    forEach: { output: list }
                    resources: { licences: 2 }
                  # It is not given up for them, nor is what waits for a time.
                  other:
                    run: test $OPERON_ATTEMPT = 2 && touch other
                    retry: { limit: 1, delay: 4s }
                """
            )

            let run = ["run", file, "--local", "--output", output, "--store", "run.db"]
            let none = try await workspace.operon(run)

            #expect(none.end == .exit(1), "\(none.errors)")
            #expect(
                none.errors.contains(
                    "“render[1]”, “render[2]”, “render[3]” and 1 more can never run here: "
                        + "licences: 2 needed, none offered. The run was ended, because nothing "
                        + "else can run. Offer it with --resources, or run with --broker"
                ),
                "\(none.errors)"
            )
            #expect(FileManager.default.fileExists(atPath: workspace.path("other")))
            #expect(!FileManager.default.fileExists(atPath: workspace.path("rendered")))

            let more = try await workspace.operon(run + ["--resume", "--resources", "licences=2"])

            #expect(more.end == .exit(0), "\(more.errors)")
            #expect(FileManager.default.fileExists(atPath: workspace.path("rendered")))
        }
    }

    @Test(arguments: [
        (["--resources", "gpus=x"], "gpus=x: gpus must be a whole number from 1"),
        (["--resources", "cpus=2,cpus=3"], "cpus is there twice"),
        (["--resources", "gpu=2"], "“gpu” is not the name of a resource; did you mean “gpus”?"),
        (["--resources", "cpus"], "“cpus” must have the form NAME=AMOUNT"),
        (["--label", "=eu"], "“=eu” must have the form NAME=VALUE"),
        (["--label", "a b=eu"], "“a b” cannot be a name here"),
        (["--label", "region=eu", "--label", "region=us"], "--label region is there twice"),
        (["--resources", "gpus=4097"], "resources of the worker: gpus is over 4096"),
        (
            ["--local", "--resources", Self.fifteen],
            "resources of an operation or a worker: 17 is over the limit of 16"
        ),
        (
            ["--local", "--control-group", "relative"],
            "it must be “own” or the absolute path of a control group"
        ),
        (
            ["--local", "--control-group", "/tmp"],
            "control groups cannot be used: /tmp is no control group of version 2"
        ),
        (
            ["--local", "--control-group", "/tmp/operon-test-no-group"],
            "control groups cannot be used: /tmp/operon-test-no-group does not exist, and cannot "
                + "be made: /tmp is no control group of version 2"
        ),
        (
            ["--broker", "amqp://localhost", "--label", "a=b"],
            "--resources, --label and --control-group are of a worker: with a broker, give them to "
                + "operon-worker"
        ),
    ])
    func `wrong options are told`(options: [String], message: String) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", "operations: { a: { run: x } }")

            let ended = try await workspace.operon(["run", file] + options)

            #expect(ended.end == .exit(2))
            #expect(
                ended.errors.lowercased().contains(message.lowercased()),
                "\(ended.errors)"
            )
            #expect(!FileManager.default.fileExists(atPath: "/tmp/operon-test-no-group"))
        }
    }

    @Test(arguments: [
        (
            ["--control-group", "relative"],
            "it must be “own” or the absolute path of a control group"
        ),
        (["--control-group", "/tmp"], "/tmp is no control group of version 2"),
        (
            ["--resources", Self.fifteen],
            "17 is over the limit of 16, counting the machine's own cpus"
        ),
    ])
    func `a worker that cannot offer what it is told to ends`(options: [String], message: String)
        async throws
    {
        try await Workspace.run { workspace in
            let ended = try await workspace.start(
                "operon-worker",
                ["--broker", "amqp://127.0.0.1:1"] + options
            ).end()

            #expect(ended.end == .exit(2))
            #expect(ended.errors.contains(message), "\(ended.errors)")
        }
    }

    /// Two workers on a broker: each operation runs where it can, and no amount is given twice.
    @Test func `operations run on the workers that have what they ask for`() async throws {
        try await Workspace.run { workspace in
            let take =
                "echo $CUDA_VISIBLE_DEVICES > got.$OPERON_OPERATION; "
                // The directory of a graphics processor is taken while it is in use.
                + "for gpu in ${CUDA_VISIBLE_DEVICES//,/ }; do mkdir gpu$gpu || touch twice; done; "
                + "sleep 0.02; for gpu in ${CUDA_VISIBLE_DEVICES//,/ }; do rmdir gpu$gpu; done"
            var lines = (0..<40).map { number in
                #"{"name": "g\#(number)", "command": ["bash", "-c", "\#(take)"], "#
                    + #""resources": {"gpus": \#(1 + number % 2)}, "workers": {"region": "eu"}}"#
            }
            lines.append(
                #"{"name": "us", "run": "echo $OPERON_CPUS > us", "resources": {"cpus": 0.25}, "#
                    + #""workers": {"region": {"notIn": "eu"}}}"#
            )
            let file = try workspace.write("graph.jsonl", lines.joined(separator: "\n"))
            try workspace.startWorkers(
                1,
                slots: 4,
                ["--resources", "gpus=3", "--label", "region=eu"]
            )
            try workspace.startWorkers(1, slots: 4, ["--resources", "gpus=8"])

            let ended = try await workspace.startRun(file, on: .broker).end()

            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(!FileManager.default.fileExists(atPath: workspace.path("twice")))
            for number in 0..<40 {
                let got = try #require(workspace.lines(of: "got.g\(number)").first)
                let gpus = got.split(separator: ",")
                #expect(gpus.count == 1 + number % 2)
                #expect(gpus.allSatisfy { ["0", "1", "2"].contains($0) })
            }
            #expect(workspace.lines(of: "us") == ["0.25"])
        }
    }

    @Test func `a run on a broker waits for a worker that offers what it asks for, and says so`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { run: touch ran, resources: { licences: 2 } } }"
            )
            try workspace.startWorkers(1, slots: 1, ["--resources", "licences=1"])
            let run = try workspace.startRun(file, on: .broker)
            try await run.says(
                "“a” waits for a worker that offers licences 2: start one that does."
            )

            try workspace.startWorkers(1, slots: 1, ["--resources", "licences=2"])
            let ended = try await run.end()

            #expect(ended.end == .exit(0), "\(ended.errors)")
        }
    }
}
