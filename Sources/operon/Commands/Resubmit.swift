import ArgumentParser
import OperonArguments
import OperonGraphFile
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal

struct Resubmit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resubmit",
        abstract: "Submit the edited file of a finished graph; what succeeded stays.",
        usage: "operon resubmit <graph> <file> [<options>]",
        discussion: """
            An operation stays if it succeeded, does the same work on the same dependencies, and \
            all of those stay. Everything else runs: what is new or changed, what did not succeed, \
            and what depends on that. Another priority, timeout, retry or queue is no reason to \
            run an operation again.

            The answer is a new graph, in which operations that stay have succeeded. Their outputs \
            and logs are those of the old graph, which keeps its history. --dry-run shows what \
            would run and why, and submits nothing.
            """
    )

    @Argument(help: ArgumentHelp(Selectors.graphHelp), transform: Selectors.graph)
    var graph: String

    @OptionGroup var graphFile: GraphFileArguments

    @Flag(help: "Print what would run and why; submit nothing.")
    var dryRun = false

    @Flag(help: "Show progress until the graph has finished. Ctrl-C ends only the command.")
    var watch = false

    @Flag(help: "Wait, without progress, until the graph has finished.")
    var wait = false

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        guard [dryRun, watch, wait].count(where: { $0 }) <= 1 else {
            throw ValidationError("--dry-run, --watch and --wait cannot be combined")
        }
    }

    func run() async throws {
        let file = try graphFile.read()
        var submission = Submission(graph: file.graph)
        submission.traceParent = Environment.traceParent(in: Environment.current)
        try await ClientSession.run(coordinator, about: .graph(graph)) { session in
            let view = try await send(submission, from: file, session)
            guard let new = view.graph else {
                return try session.console.show(view, names: Self.running(view)) {
                    ContinuationText(view, $0.style).plan
                }
            }
            let id = String(new.id)
            switch session.console.format {
            case .text, .quiet: session.console.write([id])
            case .json: try session.console.show(view) { _ in [] }
            }
            let speech = session.console.speech
            session.console.say(ContinuationText(view, speech.style).summary)
            session.console.say(
                speech.submitted(new, isAddition: false, isFollowed: watch || wait)
            )
            session.console.warn(speech.warnings(new))
            if watch {
                throw ExitCode(try await Watching(session, output: session.console.errors).run(id))
            }
            if wait { throw ExitCode(try await Waiting(session).run(new, within: nil)) }
        }
    }

    /// The operations that would run.
    private static func running(_ view: ContinuationView) -> [String] {
        view.operations.filter { $0.stays == nil }.map(\.name)
    }

    /// A refusal is reported with its position in the file.
    private func send(
        _ submission: Submission,
        from file: GraphFile,
        _ session: ClientSession
    ) async throws -> ContinuationView {
        do throws(ClientError) {
            return try await session.client.resubmit(submission, of: graph, isDryRun: dryRun)
        } catch {
            guard let refusal = error.refusal, error.code != .unreachable, error.code != .conflict
            else { throw error }
            throw Failure(ExitStatus.usage, file.located(refusal).description)
        }
    }
}
