import OperonArguments
import OperonModel
import OperonPorts
import OperonRuntime
import Synchronization
import UnixSignals

/// Runs the operations of `operon map` on the workers of a coordinator, and passes their ends and
/// their logs to the output.
final class MapSubmission: Sendable {
    let plan: MapPlan
    let output: MapOutput
    let failFast: Bool
    let session: ClientSession
    /// The exit code that a signal asks for.
    private let signalled = Mutex<Int32?>(nil)

    private static let pageSize = 500

    /// What has happened so far.
    private struct State {
        /// The operations that have ended. Only looked up.
        var ended: Set<UInt32> = []
        /// The start and the worker of running operations. Only looked up.
        var starts: [UInt32: WallTime] = [:]
        var hosts: [UInt32: String] = [:]
    }

    init(_ plan: MapPlan, _ output: MapOutput, failFast: Bool, _ session: ClientSession) {
        self.plan = plan
        self.output = output
        self.failFast = failFast
        self.session = session
    }

    /// Returns the exit code when all operations have ended, or when a signal comes after the one
    /// that cancelled them.
    func run() async throws -> Int32 {
        var submission = Submission(graph: plan.graph)
        submission.traceParent = Environment.traceParent(in: Environment.current)
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let view = try await session.change { () async throws(ClientError) in
            try await session.client.submit(submission)
        }
        let graph = String(view.id)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                do {
                    try await self.follow(graph)
                } catch let error where !Task.isCancelled {
                    await self.output.flush()
                    self.session.console.say([
                        "Graph \(graph) goes on. To see its end: operon watch \(graph)"
                    ])
                    throw error
                }
                await self.output.flush()
            }
            group.addTask {
                for await received in signals {
                    let isFirst = self.signalled.withLock { code in
                        defer {
                            code =
                                received == .sigterm
                                ? ExitStatus.terminated : ExitStatus.interrupted
                        }
                        return code == nil
                    }
                    guard isFirst else { return }
                    self.session.console.say([
                        "Cancelling graph \(graph). Running operations were asked to stop; press"
                            + " Ctrl-C again to wait no longer."
                    ])
                    try await self.cancel(graph, "interrupted")
                }
            }
            group.addTask {
                await self.output.unread.wait()
                guard !Task.isCancelled else { return }
                try await self.cancel(graph, "nobody reads the output")
                // The ends of the operations end the other task.
                await Latch().wait()
            }
            defer { group.cancelAll() }
            try await group.next()
        }
        // No task handles signals any more, and the reader of the output may be blocked.
        OwnProcess.endAtSignals()
        return signalled.withLock { $0 } ?? output.exitCode
    }

    private func cancel(_ graph: String, _ reason: String) async throws {
        var request = CancelRequest()
        request.reason = reason
        let asked = request
        _ = try await session.patiently {
            try await session.change { () async throws(ClientError) in
                try await session.client.cancel(.graph(graph), asked)
            }
        }
    }

    /// Returns when all operations have ended.
    private func follow(_ graph: String) async throws {
        let state = Mutex(State())
        let kinds: Set<ClusterEvent.Kind> = [.granted, .started, .finished, .rangeFinished]
        try await Following(session).run(graph: graph, kinds: kinds) {
            try await list(graph, state)
        } _: { item in
            guard case .event(let event) = item else { return try await list(graph, state) }
            guard let operation = event.operation else { return false }
            switch event.kind.known {
            case .granted:
                state.withLock { $0.hosts[operation.index] = event.worker ?? "" }
            case .started: state.withLock { $0.starts[operation.index] = event.at.time }
            case .finished:
                let outcome = Self.outcome(event.outcome, event.error, event.reason)
                return try await ended(operation.index, outcome, at: event.at.time, graph, state)
            case .rangeFinished:
                let outcome = Self.outcome(event.outcome, event.error, event.reason)
                // A count beyond the plan is no number of ours.
                let first = Int(operation.index)
                let end = min(first + Int(event.count ?? 1), plan.numbers.count)
                for index in UInt32(min(first, end))..<UInt32(end) {
                    let isLast = try await ended(
                        index,
                        outcome,
                        at: event.at.time,
                        graph,
                        state,
                        // No attempt was in flight. An earlier one has the log of a retry.
                        hasLog: state.withLock { $0.hosts[index] != nil }
                    )
                    if isLast { return true }
                }
            default: break
            }
            return false
        }
    }

    /// Reads which operations have ended, when events may be missing.
    private func list(
        _ graph: String,
        _ state: borrowing Mutex<State>
    ) async throws -> Bool {
        var query = OperationQuery()
        query.limit = Self.pageSize
        query.state = .finished
        repeat {
            let asked = query
            let page = try await session.patiently {
                try await session.client.operations(of: graph, asked)
            }
            for operation in page.operations {
                let outcome = Self.outcome(operation.outcome, operation.error, operation.reason)
                let at = operation.finishedAt?.time ?? SystemClock.wall()
                if try await ended(operation.index, outcome, at: at, graph, state) { return true }
            }
            query.after = page.next
        } while query.after != nil
        return false
    }

    private static func outcome(
        _ kind: OutcomeKind?,
        _ error: ErrorView?,
        _ reason: String?
    ) -> Outcome {
        switch kind {
        case .succeeded: .succeeded
        case .failed: .failed(error.map { OperationError($0) } ?? .exit(code: 1))
        case .cancelled, .skipped, nil: .cancelled(reason: reason ?? "")
        }
    }

    /// Passes on the end of an operation, once. Returns whether it was the last.
    private func ended(
        _ index: UInt32,
        _ outcome: Outcome,
        at time: WallTime,
        _ graph: String,
        _ state: borrowing Mutex<State>,
        hasLog: Bool = true
    ) async throws -> Bool {
        guard index < plan.numbers.count else { return false }
        guard !state.withLock({ $0.ended.contains(index) }) else { return false }
        if hasLog {
            let selector = OperationSelector(graph: graph, operation: "@\(index)")
            let logs = try await session.patiently { try await session.client.log(of: selector) }
            var last = logs[...]
            // What is before the last gap, or of an earlier attempt, is of no use.
            if let start = logs.lastIndex(where: {
                $0.missedBytes > 0 || $0.number != logs.last?.number
            }) {
                last = logs[start].missedBytes > 0 ? logs[start...] : logs[(start + 1)...]
            }
            if !last.isEmpty { output.deliver(last.flatMap(\.bytes), of: Int(index)) }
        }
        // Afterwards: if the log could not be read, it is read again when the coordinator is back.
        let (count, start, host) = state.withLock { state in
            state.ended.insert(index)
            return (
                state.ended.count, state.starts.removeValue(forKey: index),
                state.hosts.removeValue(forKey: index)
            )
        }
        output.ended(
            MapOutput.End(
                index: Int(index),
                outcome: outcome,
                host: host ?? "",
                start: start ?? time,
                duration: start.map { max(.zero, time - $0) } ?? .zero
            )
        )
        if failFast, case .failed = outcome, count < plan.numbers.count {
            try await cancel(graph, "an operation failed")
        }
        return count == plan.numbers.count
    }
}
