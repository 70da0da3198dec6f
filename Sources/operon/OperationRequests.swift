import OperonArguments
import OperonModel
import OperonRuntime
import OperonTerminal
import OperonWire

/// The client of the operation socket, for commands that run inside an operation. It sends
/// operation requests to the worker and turns the answers into results or messages.
struct OperationRequests {
    private let client: OperationSocketClient

    /// - Throws: `Failure` with the text of `outside`, if this process does not run inside an
    ///   operation.
    init(_ environment: [String: String], outside: () -> String) throws(Failure) {
        guard let client = OperationSocketClient(environment: environment) else {
            throw Failure(ExitStatus.usage, outside())
        }
        self.client = client
    }

    /// Adds operations. Returns how many of them are new.
    func add(_ operations: [UInt8], _ sentence: (Refusal) -> String) throws(Failure) -> Int {
        let lead = "Nothing was added"
        switch try ask(.add(operations), lead: lead) {
        case .added(let count): return Int(count)
        case .refused(let refusal): throw Failure(ExitStatus.usage, sentence(refusal))
        case let other: throw Self.failure(other, lead: lead)
        }
    }

    /// Waits for operations. Returns their outcomes, in the order of the names.
    func wait(for names: [String]) throws(Failure) -> [OutcomeKind] {
        let lead = "The wait was not started"
        switch try ask(.wait(names), lead: lead) {
        case .awaited(let outcomes) where outcomes.count == names.count: return outcomes
        case .refused(let refusal): throw Failure(ExitStatus.usage, Self.sentence(refusal))
        case let other: throw Self.failure(other, lead: lead)
        }
    }

    private static func sentence(_ refusal: Refusal) -> String {
        switch refusal {
        case .unknownOperation(let name, _):
            "There is no operation “\(TerminalText.line(name))” to wait for."
                + (RepeatedNames.group(ofEach: name)
                    .map { " To wait for all elements, name “\(TerminalText.line($0))”." } ?? "")
        case .dependencyCycle(let path):
            "This operation cannot wait for an operation that waits for it: "
                + path.map(TerminalText.line).joined(separator: " → ") + "."
        case .duplicateOperation, .alreadySubmitted, .alreadyStarted, .alreadyFinished,
            .graphClosed, .invalid, .limitExceeded, .unreachable:
            TerminalText.line(refusal.sentence)
        }
    }

    /// The most names in one line.
    private static let namesMax = 5

    /// A line for each outcome but success: `failed: a, b, … and 3 more`.
    static func unsuccessful(_ names: [String], _ outcomes: [OutcomeKind]) -> [String] {
        [OutcomeKind.failed, .cancelled, .skipped].compactMap { kind in
            let ended = zip(names, outcomes).filter { $1 == kind }.map(\.0)
            guard !ended.isEmpty else { return nil }
            let first = ended.prefix(namesMax).map(TerminalText.line).joined(separator: ", ")
            let more = ended.count - namesMax
            return "\(kind): \(first)" + (more > 0 ? ", … and \(more) more" : "")
        }
    }

    /// The exit code: 1 if any failed, else 3 if any was cancelled, else 7 if any was skipped.
    static func exitCode(of outcomes: [OutcomeKind]) -> Int32 {
        if outcomes.contains(.failed) { return ExitStatus.failed }
        if outcomes.contains(.cancelled) { return ExitStatus.cancelled }
        return outcomes.contains(.skipped) ? ExitStatus.skipped : ExitStatus.success
    }

    private func ask(
        _ what: OperationSocketFormat.Request.What,
        lead: String
    ) throws(Failure) -> OperationSocketFormat.Answer {
        do throws(OperationSocketError) {
            return try client.ask(what)
        } catch {
            throw Failure(ExitStatus.unreachable, "\(lead): \(error.message)")
        }
    }

    private static func failure(_ answer: OperationSocketFormat.Answer, lead: String) -> Failure {
        switch answer {
        case .unknownToken:
            Failure(
                ExitStatus.noSuchObject,
                "\(lead): the worker does not know \(OperationSocketClient.tokenVariable). "
                    + "A token is valid only during the attempt that it was made for."
            )
        case .unreadable(let why):
            Failure(ExitStatus.usage, "\(lead): the worker cannot read the request: \(why).")
        case .ended, .added, .awaited, .read, .refused:
            // The last four are not valid answers to these requests.
            Failure(
                ExitStatus.noSuchObject,
                "\(lead): this attempt has ended; the operation may run on another worker now."
            )
        }
    }
}
