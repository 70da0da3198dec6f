#if Cluster
internal import Logging
internal import OperonGraphFile
internal import OperonHTTP
internal import OperonModel
internal import OperonPorts
internal import OperonRuntime
internal import Synchronization

/// A remote coordinator, over HTTP.
final class RemoteBackend: ClusterBackend {
    let patience: Duration
    private let http: HTTPCoordinatorClient
    let logger: Logger
    private let state = Mutex(State())

    private struct State {
        var sink: EndedSink?
        var followers: [GraphID: Task<Void, Never>] = [:]
        /// Whether it was said that the coordinator does not answer, and not yet that it does.
        var isSilent = false
    }

    /// A coordinator that is restarted answers within this time.
    private static let silenceBeforeWarning = Duration.seconds(2)

    init(
        url: String?,
        token: String?,
        certificateAuthority: String?,
        patience: Duration,
        logger: Logger
    ) throws {
        do {
            var configuration = try HTTPCoordinatorClient.Configuration(
                url: url,
                token: token,
                environment: OwnProcess.environment
            )
            configuration.certificateAuthority = certificateAuthority
            configuration.patience = nil
            configuration.onLink = { link in
                switch link {
                case .cut(let why):
                    logger.warning("lost sight of the coordinator", metadata: ["reason": "\(why)"])
                // As loud as the loss: whoever read of that reads of this, too.
                case .restored: logger.warning("the coordinator is back")
                }
            }
            http = try HTTPCoordinatorClient(configuration, codec: GraphFileCodec())
        } catch {
            throw OperonError.from(error)
        }
        self.patience = patience
        self.logger = logger
    }

    var client: any CoordinatorClient { http }

    func start(_ sink: EndedSink) async throws {
        state.withLock { $0.sink = sink }
    }

    /// Not needed: remote workers have their own kinds.
    func register(_ kind: OperationKind) {}

    /// Not needed: the client checks what it sends.
    func check(_ graph: GraphDescription) {}

    func position() async throws -> UInt64? {
        let warning = Task {
            try await Task.sleep(for: Self.silenceBeforeWarning)
            warnOfSilence()
        }
        defer { warning.cancel() }
        let position = try await asked { try await $0.status().lastEvent ?? 0 }
        let wasSilent = state.withLock { state in
            defer { state.isSilent = false }
            return state.isSilent
        }
        if wasSilent { logger.warning("the coordinator answers") }
        return position
    }

    private func warnOfSilence() {
        let isNew = state.withLock { state in
            defer { state.isSilent = true }
            return !state.isSilent
        }
        guard isNew else { return }
        logger.warning(
            "the coordinator does not answer",
            metadata: ["tries": "for \(patience.components.seconds) s"]
        )
    }

    func follow(graph: GraphID, after position: UInt64?) {
        state.withLock { state in
            guard let sink = state.sink, state.followers[graph] == nil else { return }
            state.followers[graph] = Task {
                await self.listen(to: graph, after: position, sink)
                self.state.withLock { $0.followers[graph] = nil }
            }
        }
    }

    /// The events that a session needs.
    private static let kinds: Set<ClusterEvent.Kind> = [
        .finished, .rangeFinished, .started, .graphFinished,
    ]

    /// A stream that lasts this long was accepted; refusals arrive sooner.
    private static let steady = Duration.seconds(1)

    /// Listens until the graph has finished. A failed stream is reopened where it ended, and missed
    /// outcomes are fetched, for as long as the coordinator does not answer. If it answers with
    /// refusals, this gives up after the same time as a call.
    private func listen(to graph: GraphID, after position: UInt64?, _ sink: EndedSink) async {
        var position = position
        var backoff = Backoff()
        var refused: ContinuousClock.Instant?
        var isFirst = true
        while !Task.isCancelled {
            var opened: ContinuousClock.Instant?
            do {
                if !isFirst { try await lookAgain(at: graph, sink) }
                isFirst = false
                let events = try await client.events(
                    after: position,
                    graph: "\(graph)",
                    kinds: Self.kinds
                )
                opened = .now
                for try await event in events {
                    // Set afterwards: an event that cannot be delivered now is delivered again.
                    position = try await tell(event, of: graph, sink)
                    backoff.reset()
                    refused = nil
                    if case .event(let event) = event, event.kind.known == .graphFinished { return }
                }
            } catch let error as ClientError {
                // An accepted stream ends the series of refusals before it.
                if let opened, .now - opened >= Self.steady { refused = nil }
                let since = refused ?? .now
                refused = error.isPassing ? nil : since
                if error.code == .notFound || !error.isPassing && .now - since >= patience {
                    return giveUp(graph, error, sink)
                }
            } catch {
                // Any other error leads to another try, unless the task is cancelled.
            }
            do { try await backoff.wait() } catch { return }
        }
    }

    /// - Returns: The position after the event.
    private func tell(
        _ event: ClientEvent,
        of graph: GraphID,
        _ sink: EndedSink
    ) async throws -> UInt64 {
        switch event {
        case .event(let event):
            let ended = try await ended(event)
            if !ended.isEmpty { sink.deliver(ended) }
            if event.kind.known == .started, let operation = event.operation {
                sink.started(
                    OperationID(
                        graph: GraphID(rawValue: operation.graph),
                        index: operation.index
                    ),
                    event.attempt.flatMap { AttemptID($0) }
                )
            }
            return event.sequence
        case .gap(_, let last):
            try await lookAgain(at: graph, sink)
            return last
        }
    }

    /// Called when the graph was dropped or the coordinator refuses to report on it.
    private func giveUp(_ graph: GraphID, _ error: ClientError, _ sink: EndedSink) {
        logger.error(
            "nothing will be heard of a graph any more",
            metadata: ["graph": "\(graph)", "reason": "\(error)"]
        )
        sink.gone(
            graph,
            OperonError.from(error) as? OperonError ?? OperonError(.refused, "\(error)")
        )
    }

    /// The outcomes in an event. For a skipped operation it asks for the cause, which the event
    /// does not contain.
    private func ended(_ event: EventView) async throws -> [EndedOperation] {
        guard event.outcome == .skipped, let operation = event.operation else {
            return EndedOperation.all(of: event)
        }
        let id = OperationID(graph: GraphID(rawValue: operation.graph), index: operation.index)
        do throws(ClientError) {
            let view = try await client.operation(OperationSelector(id)).operation
            return [EndedOperation(view)].compactMap(\.self)
        } catch {
            guard error.code == .notFound else { throw error }
            // The operation was dropped, so its cause cannot be known.
            return [EndedOperation(id: id, outcome: .skipped(cause: id), output: .empty)]
        }
    }

    /// Asks for the outcomes that are not known yet, and for external operations that are
    /// executing.
    private func lookAgain(at graph: GraphID, _ sink: EndedSink) async throws(ClientError) {
        let unfinished = sink.unfinished(graph).map { Set($0) }
        guard unfinished?.isEmpty != true else { return }
        try await look(at: unfinished, of: graph, sink)
    }

    /// - Parameter unfinished: The indices of the operations; `nil`: not known.
    private func look(
        at unfinished: Set<UInt32>?,
        of graph: GraphID,
        _ sink: EndedSink
    ) async throws(ClientError) {
        var query = OperationQuery()
        query.state = .finished
        query.limit = 1_000
        repeat {
            let page = try await client.operations(of: "\(graph)", query)
            sink.deliver(
                page.operations.filter { unfinished?.contains($0.index) ?? true }
                    .compactMap(EndedOperation.init)
            )
            query.after = page.next
        } while query.after != nil
        query.state = .executing
        repeat {
            let page = try await client.operations(of: "\(graph)", query)
            for operation in page.operations
            where operation.kind == Work.externalKind
                && unfinished?.contains(operation.index) ?? true
            {
                let id = OperationID(graph: graph, index: operation.index)
                let attempts = try await client.operation(OperationSelector(id)).attempts
                guard let last = attempts.last, last.ending == nil else { continue }
                sink.started(id, AttemptID(last.id))
            }
            query.after = page.next
        } while query.after != nil
    }

    func close(within time: Duration, behind others: () async -> Void) async {
        await others()
        let followers = state.withLock { state in
            defer { state.followers = [:] }
            // No graph is followed any more.
            state.sink = nil
            return state.followers
        }
        for follower in followers.values { follower.cancel() }
        for follower in followers.values { await follower.value }
        await http.shutDown()
    }
}

extension ClientError {
    /// Whether the same request may succeed a moment later without any intervention.
    fileprivate var isPassing: Bool {
        code == .unreachable || code == .unavailable || code == .timedOut
    }
}
#endif
