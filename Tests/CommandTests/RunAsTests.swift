import Foundation
import OperonFaultKit
import Testing

/// `operon-worker --run-as`, as a user sees it. Only root can start such a worker.
@Suite(.timeLimit(.minutes(5)), .enabled(if: geteuid() == 0)) struct RunAsTests {
    @Test func `commands run as the users of their queues`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                defaults: { directory: / }
                operations:
                  plain:
                    run: |
                      id -un; echo again >/dev/stderr; echo "\\"$USER\\"" > $OPERON_OUTPUT
                  other:
                    run: 'id -un; cat $OPERON_INPUTS; echo home=$HOME'
                    queue: other
                    dependencies: [plain]
                """
            )
            chmod(file, 0o644)
            let options = ["--run-as", "nobody", "--run-as", "other=daemon"]
            try workspace.startWorkers(1, slots: 2, options)
            let ended = try await workspace.startRun(file, on: .broker, ["--show-output"]).end()
            #expect(ended.end == .exit(0), "\(ended.errors)")
            let said = ended.output + ended.errors
            for part in [
                "nobody\n", "again\n", "daemon\n", #"{"plain":"nobody""#, "home=/usr/sbin",
            ] {
                #expect(said.contains(part), "\(part) in \(said)")
            }
        }
    }

    @Test(arguments: [
        (["--run-as", "no-such-user"], "There is no user “no-such-user”."),
        (["--run-as", "root"], "operations do not run as root"),
        (["--run-as", "other=nobody"], "no user for other queues"),
        (["--run-as", "=nobody"], "USER or QUEUE=USER"),
    ])
    func `a worker that cannot run as the user does not start`(
        options: [String],
        why: String
    ) async throws {
        try await Workspace.run { workspace in
            let worker = try workspace.startWorkers(1, slots: 1, options)[0]
            let ended = try await worker.end()
            #expect(ended.end == .exit(2))
            #expect(ended.errors.contains(why), "\(ended.errors)")
        }
    }
}
