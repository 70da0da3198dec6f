import ArgumentParser
import OperonArguments
import OperonRuntime

/// The command line: parses the arguments and runs the command.
@main
struct Operon: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "operon",
        abstract: "Run graphs of operations, on this machine or on a cluster.",
        discussion: """
            Exit codes: 0 everything succeeded; 1 an operation failed; 2 the input or the call \
            was wrong; 3 cancelled; 4 a wait timed out; 5 the broker or the coordinator cannot \
            be reached; 6 no such object; \
            7 no failure, but operations were skipped for want of a success; 8 another \
            coordinator holds the prefix; 130 and 143 this process got the signal.
            """,
        version: Version.text,
        groupedSubcommands: [
            CommandGroup(
                name: "Local",
                subcommands: [
                    Run.self, Validate.self, Graph.self, Doctor.self, Completion.self,
                ]
            ),
            CommandGroup(
                name: "Graph",
                subcommands: [
                    Submit.self, List.self, Status.self, Watch.self, Wait.self, Cancel.self,
                    Suspend.self, Resume.self, Retry.self, Dead.self,
                ]
            ),
            CommandGroup(
                name: "Operation",
                subcommands: [
                    Operations.self, Show.self, Explain.self, Logs.self, Output.self,
                    Complete.self, Priority.self, Dependency.self, Add.self, Await.self,
                ]
            ),
            CommandGroup(
                name: "Cluster",
                subcommands: [
                    Coordinator.self, Up.self, Queue.self, Key.self, Workers.self, Drain.self,
                    Events.self, Store.self, Backup.self,
                ]
            ),
        ]
    )

    static func main() async {
        await Program<Operon>.run { arguments throws(Failure) in
            try CommandNames.check(arguments)
        }
    }
}
