import OperonArguments
import OperonCore
import OperonModel
import OperonRuntime
import OperonTerminal
import Synchronization

/// Asks the person at the terminal to complete the external operations of an `operon run`: nobody
/// else can, because a run has no API.
final class RunQuestions: Sendable {
    private let graph: GrowingGraph
    private let screen: RunScreen
    /// The external operations that were submitted.
    private let external: Set<UInt32>
    private let waiting: AsyncStream<Asked>
    private let continuation: AsyncStream<Asked>.Continuation
    private let open = Mutex<Open?>(nil)

    private struct Asked: Sendable {
        let operation: OperationID
        /// `nil`: the one that waits.
        let attempt: AttemptID?
    }

    /// The question that somebody reads now.
    private struct Open {
        let operation: OperationID
        /// Opened when no answer is needed any more.
        let isOver: Latch
    }

    private enum Reply {
        case answer(OperonModel.Completion)
        /// Standard input has ended.
        case none
        /// The operation was cancelled, or its time is over.
        case notNeeded
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
        for notice in notices {
            switch notice {
            case .started(let operation, let attempt, _) where isExternal(operation.index):
                continuation.yield(Asked(operation: operation, attempt: attempt))
            case .attemptEnded(let operation, _, _, _, _), .finished(let operation, _):
                let isOver = open.withLock { $0?.operation == operation ? $0?.isOver : nil }
                isOver?.open()
            default: continue
            }
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
            // Before the look at the operation, so that its end is not missed.
            let isOver = Latch()
            open.withLock { $0 = Open(operation: operation, isOver: isOver) }
            let isWaiting = await coordinator.query { $0.state(of: operation) == .executing }
            guard isWaiting, !Task.isCancelled else { continue }
            let description = graph.operation(operation.index)
            let completion: OperonModel.Completion
            switch await ask(description, until: isOver) {
            case .answer(let answer): completion = answer
            case .none: completion = .cancelled(reason: "there was no answer")
            case .notNeeded: continue
            }
            if Task.isCancelled { return }
            do {
                try await coordinator.command(
                    .completionRequested(operation, attempt: asked.attempt, completion)
                )
            } catch {
                screen.say("“\(description.name)” was not completed: \(error)")
            }
        }
    }

    private func ask(_ operation: OperationDescription, until isOver: Latch) async -> Reply {
        await screen.pause()
        screen.show(Question(operation).lines(screen.style))
        let reply = await withTaskGroup(of: Reply.self) { group in
            group.addTask { [screen] in
                await Question(operation).answer { screen.ask($0) }.map { .answer($0) } ?? .none
            }
            group.addTask {
                await isOver.wait()
                return .notNeeded
            }
            defer { group.cancelAll() }
            return await group.next() ?? .none
        }
        let isAnswered = if case .answer = reply { true } else { false }
        screen.resume(isAnswered: isAnswered)
        return reply
    }
}

/// A question to the person at the terminal: the input of an external operation.
struct Question: Sendable {
    /// So that the prompt fits a line of 80 columns.
    private static let nameWidth = 20

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
    func answer(_ prompt: @Sendable (String) -> Void) async -> OperonModel.Completion? {
        let name = TerminalText.elided(TerminalText.line(name), to: Self.nameWidth, mark: "…")
        while true {
            prompt("Complete “\(name)”? y: succeeds, n: fails, c: cancelled [y/n/c] ")
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
