import OperonArguments
import OperonCore
import OperonModel
import OperonRuntime
import OperonTerminal

/// Asks the person at the terminal to complete the external operations of an `operon run`: nobody
/// else can, because a run has no API.
struct RunQuestions: Sendable {
    private let graph: GrowingGraph
    private let screen: RunScreen
    /// The external operations that were submitted.
    private let external: Set<UInt32>
    private let waiting: AsyncStream<Asked>
    private let continuation: AsyncStream<Asked>.Continuation

    private struct Asked: Sendable {
        let operation: OperationID
        /// `nil`: the one that waits.
        let attempt: AttemptID?
    }

    init(_ graph: GrowingGraph, _ screen: RunScreen) {
        self.graph = graph
        self.screen = screen
        let operations = graph.submitted.description.operations.enumerated()
        external = Set(operations.lazy.filter { $1.work.isExternal }.map { UInt32($0.offset) })
        (waiting, continuation) = AsyncStream.makeStream()
    }

    /// Refuses a graph whose external operations nobody could complete, before anything starts.
    ///
    /// - Parameter staying: The operations that do not run.
    static func refuse(_ graph: LoadedGraph, except staying: Set<UInt32> = []) throws(Failure) {
        let operations = graph.description.operations.enumerated()
        guard
            let first = operations.first(where: { index, operation in
                operation.work.isExternal && !staying.contains(UInt32(index))
            })?.element
        else { return }
        throw Failure(
            ExitStatus.failed,
            "“\(TerminalText.line(first.name))” waits for a person, and operon run can only ask on "
                + "a terminal. Nothing was started. To answer elsewhere: operon up, operon submit, "
                + "operon complete"
        )
    }

    /// Called on the coordinator's executor, so it returns at once.
    func note(_ notices: [Scheduler.Notice]) {
        for case .started(let operation, let attempt, _) in notices
        where isExternal(operation.index) {
            continuation.yield(Asked(operation: operation, attempt: attempt))
        }
    }

    /// Asks again what a previous run asked without getting an answer.
    func askAgain(_ coordinator: CoordinatorService) async {
        let operations = external.sorted().map { OperationID(graph: graph.id, index: $0) }
        let open = await coordinator.query { scheduler in
            operations.filter { scheduler.state(of: $0) == .executing }
        }
        for operation in open { continuation.yield(Asked(operation: operation, attempt: nil)) }
    }

    private func isExternal(_ index: UInt32) -> Bool {
        // Of those that were added, each is looked up.
        let isAdded = Int(index) >= graph.submitted.description.operations.count
        return isAdded ? graph.operation(index).work.isExternal : external.contains(index)
    }

    /// Asks one question after the other, until the task is cancelled.
    func run(_ coordinator: CoordinatorService) async {
        for await asked in waiting {
            let operation = asked.operation
            let isOpen = await coordinator.query { $0.state(of: operation) == .executing }
            guard isOpen, !Task.isCancelled else { continue }
            let description = graph.operation(operation.index)
            await screen.pause()
            screen.print(Question(description).lines(screen.style))
            let answer = await Question.answer { screen.printPrompt($0) }
            screen.resume(isAnswered: answer != nil)
            if Task.isCancelled { return }
            // Standard input has ended: nobody will answer.
            let completion = answer ?? .cancelled(reason: "there was no answer")
            do {
                try await coordinator.command(
                    .completionRequested(operation, attempt: asked.attempt, completion)
                )
            } catch {
                screen.say("“\(description.name)” was not completed: \(error)")
            }
        }
    }
}

/// A question to the person at the terminal: the input of an external operation.
struct Question: Sendable {
    private let name: String
    private let summary: String
    private let input: String?

    init(_ operation: OperationDescription) {
        name = operation.name
        summary = operation.summary
        guard case .external(let payload) = operation.work, !payload.isEmpty else {
            input = nil
            return
        }
        input = String(decoding: payload.bytes, as: UTF8.self)
    }

    init(_ detail: OperationDetail) {
        name = "\(detail.operation.graph)/\(detail.operation.name)"
        summary = detail.summary ?? ""
        input = detail.input
    }

    func lines(_ style: TerminalStyle) -> [String] {
        let lines = QuestionText.lines(summary: summary, input: input)
        let head = "“\(TerminalText.line(name))” waits for you" + (lines.isEmpty ? "." : ":")
        return ([head] + lines.map { "  " + $0 }).map { style.spelled($0) }
    }

    /// Asks until there is an answer; `nil`: there is none, because standard input has ended.
    static func answer(_ prompt: @Sendable (String) -> Void) async -> OperonModel.Completion? {
        while true {
            prompt("Complete it? y: it succeeds, n: it fails, c: it is cancelled [y/n/c] ")
            guard let line = await OwnProcess.readInputLine() else { return nil }
            switch line.trimmed.lowercased() {
            case "y", "yes": return .succeeded(.empty)
            case "n", "no":
                return .failed(.thrown(type: "Failure", message: "refused", payload: []))
            case "c", "cancel": return .cancelled(reason: "")
            default: continue
            }
        }
    }
}

extension String {
    fileprivate var trimmed: String {
        String(drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
    }
}
