import ArgumentParser
import OperonArguments
import OperonGraphFile
import OperonModel
import OperonPorts
import OperonTerminal

struct IdempotencyArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A key of your choice: repeated calls with the same key submit the graph once.",
            valueName: "key"
        )
    )
    var idempotencyKey: String?

    func validate() throws {
        if idempotencyKey == "" { throw ValidationError("the key of --idempotency-key is empty") }
    }
}

/// How a command that continues a graph with a new one ends.
struct ContinuingArguments: ParsableArguments {
    @Flag(help: "Print what would run and why; submit nothing.")
    var dryRun = false

    @Flag(help: "With --dry-run: print each element of repeated operations.")
    var elements = false

    @Flag(help: "Show progress until the graph has finished. Ctrl-C ends only the command.")
    var watch = false

    @Flag(help: "Wait, without progress, until the graph has finished.")
    var wait = false

    @OptionGroup var key: IdempotencyArguments

    func validate() throws {
        guard [dryRun, watch, wait].count(where: { $0 }) <= 1 else {
            throw ValidationError("--dry-run, --watch and --wait cannot be combined")
        }
        if elements, !dryRun { throw ValidationError("--elements needs --dry-run") }
    }

    func request(_ operations: [String]) -> RerunRequest {
        var request = RerunRequest(operations)
        request.isDryRun = dryRun
        request.idempotencyKey = key.idempotencyKey
        request.traceParent = Environment.traceParent(in: Environment.current)
        return request
    }

    /// Prints what the new graph does, or would do, and follows it if that was asked for.
    func report(_ first: ContinuationView, _ session: ClientSession) async throws {
        var view = first
        guard let new = view.graph else {
            let running = view.operations.filter { $0.stays == nil }.map(\.name)
            return try session.console.show(view, names: running) {
                ContinuationText(view, $0.style).plan(folds: !elements)
            }
        }
        let id = String(new.id)
        switch session.console.format {
        case .text, .quiet: session.console.write([id])
        case .json:
            if wait { view.graph = try await Waiting(session).end(of: id) }
            try session.console.show(view) { _ in [] }
        }
        let speech = session.console.speech
        session.console.say(ContinuationText(view, speech.style).summary())
        session.console.say(speech.submitted(new, isAddition: false, isFollowed: watch || wait))
        session.console.warn(speech.warnings(new))
        if watch {
            throw ExitCode(try await Watching(session, output: session.console.errors).run(id))
        }
        if wait { throw ExitCode(try await Waiting(session).run(new, within: nil)) }
    }
}

extension ClientSession {
    /// Submits the edited file of a graph. A refusal is reported with its position in the file.
    func resubmit(
        _ file: GraphFile,
        of graph: String,
        again: [String] = [],
        _ ending: ContinuingArguments
    ) async throws -> ContinuationView {
        var options = ResubmitOptions()
        options.again = again
        options.isDryRun = ending.dryRun
        var submission = Submission(graph: file.graph)
        submission.idempotencyKey = ending.key.idempotencyKey
        submission.traceParent = Environment.traceParent(in: Environment.current)
        do throws(ClientError) {
            return try await change { () async throws(ClientError) in
                try await client.resubmit(submission, of: graph, options)
            }
        } catch {
            guard let refusal = error.refusal, error.code != .unreachable, error.code != .conflict
            else { throw error }
            throw Failure(file.located(refusal))
        }
    }
}
