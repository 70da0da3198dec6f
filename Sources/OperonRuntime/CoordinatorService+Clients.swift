import OperonCore
import OperonModel
import OperonPorts
import OperonWire

// What clients ask for, in the words of the scheduler.
extension CoordinatorService {
    /// A command of the scheduler; a refusal is told as clients know it.
    func request(_ event: Scheduler.Event) throws(ClientError) {
        try mayChange()
        if let refusal = handle([event]) { throw ClientError(refusal) }
    }

    /// While nothing can be kept, nothing is promised.
    func mayChange() throws(ClientError) {
        if let trouble = keeping?.trouble { throw ClientError(.unavailable, trouble.message) }
        guard !hasEnded, fatal == nil else {
            throw ClientError(.unavailable, "The coordinator ends.")
        }
    }

    // MARK: - Submitting

    /// The same key with the same graph gives the same answer.
    func submitOnce(
        _ graph: GraphDescription,
        _ compiled: CompiledGraph,
        _ contents: StoredContents
    ) throws(ClientError) -> GraphID {
        try mayChange()
        let key = contents.idempotencyKey
        guard !key.isEmpty else { return submit(graph, compiled: compiled, kept: contents) }
        // A client's keys are its own.
        let owned = contents.submitter + "\u{0}" + key
        let hash = ContentHash(of: contents.body)
        if let use = register.use(of: owned) {
            guard use.hash == hash else {
                throw ClientError(
                    .conflict,
                    "The key “\(key)” was used for another graph, \(use.graph).",
                    refusal: .alreadySubmitted(name: key)
                )
            }
            return use.graph
        }
        let id = submit(graph, compiled: compiled, kept: contents)
        register.keepUse(of: owned, GraphRegister.Use(graph: id, hash: hash))
        return id
    }

    // MARK: - Cancelling and suspending

    /// Operations named in one answer.
    private static let namedMax = 8

    /// Performs a command and counts what it did.
    func perform(
        _ event: Scheduler.Event,
        on target: Target
    ) throws(ClientError) -> CommandView {
        let before: [OperationID]
        if case .cancelRequested(_, _, cascade: true, _) = event, case .operation(let id) = target {
            before = scheduler.withDependents(id).filter { scheduler.outcome(of: $0) == nil }
        } else {
            before = scheduler.unfinished(of: target)
        }
        try request(event)
        let finished = before.filter { scheduler.outcome(of: $0) != nil }
        let running = before.filter { scheduler.state(of: $0) == .executing }
        var view = CommandView(
            affected: before.count,
            finished: finished.count,
            running: running.count,
            released: released(by: finished, besides: Set(before)),
            isEffective: scheduler.isEffective(for: before)
        )
        view.named = running.prefix(Self.namedMax).map { name(of: $0) }
        return view
    }

    /// Dependents that were released, and are not among those acted on.
    private func released(by finished: [OperationID], besides members: Set<OperationID>) -> Int {
        var seen: Set<OperationID> = []
        for operation in finished {
            for dependent in scheduler.dependents(of: operation)
            where !members.contains(dependent) && scheduler.outcome(of: dependent) == nil {
                seen.insert(dependent)
            }
        }
        return seen.count
    }

    // MARK: - Waiting

    /// Whether no start of what is suspended is possible any more, waiting that long for it.
    func waitUntilEffective(
        _ target: Target,
        within seconds: Double
    ) async throws(ClientError) -> Bool {
        await wait(within: seconds) { scheduler in
            scheduler.isEffective(for: scheduler.unfinished(of: target))
        }
    }

    /// Whether everything has its outcome, waiting that long for it.
    func waitUntilEnded(
        _ target: Target,
        within seconds: Double
    ) async throws(ClientError) -> Bool {
        await wait(within: seconds) { $0.unfinished(of: target).isEmpty }
    }

    private func wait(
        within seconds: Double,
        until isTrue: @escaping @Sendable (Scheduler) -> Bool
    ) async -> Bool {
        let patience = Duration.seconds(min(max(0, seconds), 86_400))
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                while !Task.isCancelled {
                    let last = await self.lastEvent
                    if await self.query(isTrue) { return true }
                    guard await self.waitForEvents(after: last) > last else { return false }
                }
                return false
            }
            group.addTask {
                do { try await Task.sleep(for: patience) } catch {}
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }
}
