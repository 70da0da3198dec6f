import OperonModel
import OperonPorts
import OperonRuntime
import OperonTerminal
import Synchronization

/// Tells what goes wrong in a watched graph the moment it does: what failed, what was skipped
/// because of it, and what is tried again. It reads the events of that alone, and asks for the
/// details of the first ones: after some lines the display tells no more.
final class Troubles: Sendable {
    private let session: ClientSession
    private let graph: UInt32
    private let display: ProgressDisplay
    private let group: Int
    private let asks = Mutex(0)
    /// Opened when the end of the graph was read, after everything that went wrong before it.
    private let isOver = Latch()

    /// The most operations whose details are asked for.
    private static let asksMax = 150
    /// The most retries that a coordinator may name.
    private static let retriesMax = 1_000_000

    init(_ session: ClientSession, _ graph: UInt32, _ display: ProgressDisplay, in group: Int) {
        self.session = session
        self.graph = graph
        self.display = display
        self.group = group
    }

    /// Returns when the task is cancelled, or the events end. Whoever reads the counts tells why.
    ///
    /// - Parameter first: The number of the event before the first one that is told.
    func tell(after first: UInt64?) async {
        try? await Following(session).run(
            after: first,
            graph: String(graph),
            kinds: [.finished, .rangeFinished, .retry, .graphFinished],
            outcomes: [.failed, .skipped],
            isSilent: true
        ) { batch in
            var skipped: [(operation: OperationName, count: UInt32)] = []
            var hasEnded = false
            for case .event(let event) in batch {
                if event.kind.known == .graphFinished { hasEnded = true }
                guard let operation = event.operation else { continue }
                switch event.outcome {
                case .failed: await tellFailure(of: operation, event.error?.message ?? "")
                case .skipped: skipped.append((operation, event.count ?? 1))
                case .succeeded, .cancelled: continue
                case nil: await tellRetry(of: operation, decidedAt: event.at)
                }
            }
            await tell(skipped)
            if hasEnded { isOver.open() }
            return false
        }
        isOver.open()
    }

    /// Returns when everything is told that went wrong before the end of the graph, or when that
    /// takes too long: the summary names it as well.
    func waitForEnd() async { await isOver.wait(within: .seconds(2)) }

    private func detail(of operation: OperationName) async -> OperationDetail? {
        let mayAsk = asks.withLock { asks in
            asks += 1
            return asks <= Self.asksMax
        }
        guard mayAsk else { return nil }
        let id = OperationID(graph: GraphID(rawValue: graph), index: operation.index)
        return try? await session.client.operation(OperationSelector(id))
    }

    private func tellFailure(of operation: OperationName, _ why: String) async {
        let last = await detail(of: operation)?.attempts.last
        var duration: Duration?
        if let start = last?.startedAt?.time, let end = last?.endedAt?.time {
            duration = max(.zero, end - start)
        }
        let move = ProgressDisplay.Move(
            operation.name,
            from: .executing,
            to: .failed,
            work: 0,
            duration: duration,
            detail: why
        )
        await display.tell([move], at: SystemClock.now())
    }

    /// In the order of the graph, which is not that in which operations are skipped.
    private func tell(_ skipped: [(operation: OperationName, count: UInt32)]) async {
        guard !skipped.isEmpty else { return }
        var moves: [ProgressDisplay.Move] = []
        for (operation, count) in skipped.sorted(by: { $0.operation.index < $1.operation.index }) {
            let cause = await cause(of: operation)
            moves.append(
                ProgressDisplay.Move(
                    count > 1 ? "\(count) operations" : operation.name,
                    from: .pending,
                    to: .skipped,
                    work: 0,
                    detail: cause ?? ""
                )
            )
        }
        await display.tell(moves, at: SystemClock.now())
    }

    /// Why an operation was skipped; `nil`: too many were asked for.
    func cause(of operation: OperationName) async -> String? {
        await detail(of: operation)?.operation.skippedFor.map { "because of “\($0.name)”" }
    }

    /// - Parameter decidedAt: The time of the event.
    func tellRetry(of operation: OperationName, decidedAt: TimeText) async {
        guard let detail = await detail(of: operation) else { return }
        // The next attempts may have begun, or ended, by now. When an attempt ended is the worker's
        // word, and may be later than when the coordinator heard of it.
        let made =
            detail.attempts.last { $0.grantedAt < decidedAt }
            ?? detail.attempts.first { $0.error != nil }
        // Without a failure, it cannot do its work yet, which is nothing wrong.
        guard let made, let error = made.error else { return }
        let due = detail.reasons.first { $0.code == "retryAt" }?.until?.time
        let next = NextAttempt(
            number: Int(made.number) + 1,
            of: min(max(0, detail.retry?.limit ?? 0), Self.retriesMax) + 1,
            pause: due.map { $0 - SystemClock.wall() },
            why: error.message
        )
        await display.retried(operation.name, next, in: group, at: SystemClock.now())
    }
}
