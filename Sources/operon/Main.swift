import ArgumentParser
import OperonArguments
import OperonGraphFile
import OperonRuntime

/// The command line: parses the arguments and runs the command.
@main
struct Operon: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "operon",
        abstract: "Run graphs of operations, on this machine or on a cluster.",
        discussion: """
            Exit codes: 0 success; 1 an operation failed; 2 the command line or the input was \
            wrong, or the request was refused; 3 none failed, but one was cancelled; 4 a wait \
            timed out; 5 the broker or the coordinator cannot be reached; 6 there is no such \
            graph, operation, queue, key, trigger or worker; 7 none failed or was cancelled, but \
            one was skipped because a dependency did not succeed; 8 another coordinator holds the \
            prefix or the store; 74 what it printed could not be written; 130, 143 ended by \
            SIGINT, SIGTERM.
            """,
        version: Version.full,
        groupedSubcommands: [
            CommandGroup(
                name: "Local",
                subcommands: [
                    Run.self, Map.self, Validate.self, Graph.self, Doctor.self, Completion.self,
                ]
            ),
            CommandGroup(
                name: "Graph",
                subcommands: [
                    Submit.self, Resubmit.self, List.self, Status.self, Watch.self, Wait.self,
                    Cancel.self,
                    Suspend.self, Resume.self, Retry.self, Dead.self, Report.self,
                ]
            ),
            CommandGroup(
                name: "Operation",
                subcommands: [
                    Operations.self, Show.self, Explain.self, Logs.self, Output.self,
                    Approvals.self, Complete.self, Priority.self, Dependency.self, Add.self,
                    Await.self,
                ]
            ),
            CommandGroup(
                name: "Cluster",
                subcommands: [
                    Coordinator.self, Up.self, Top.self, Queue.self, Key.self, Trigger.self,
                    Workers.self,
                    Drain.self, Events.self, Page.self, Store.self, Backup.self, Trust.self,
                    Token.self, Audit.self,
                ]
            ),
        ]
    )

    static func main() async {
        await Program<Operon>.run(
            rewrite: { $0.first == Run._commandName ? ShownOutput.rewritten($0) : $0 },
            usageStatus: { $0.first == Map._commandName ? MapExit.other : ExitStatus.usage },
            // The words after `map` may be those of a command of the user.
            isJSON: { $0.first != Map._commandName && ErrorReport.isJSON($0) },
            nearest: { Suggestion.nearest(to: $0, among: $1) },
            check: { arguments throws(Failure) in try CommandNames.check(arguments) }
        )
    }
}
