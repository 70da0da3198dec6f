internal import DequeModule
internal import Logging
internal import OperonCore
internal import OperonModel
internal import OperonPorts
internal import OperonRuntime
internal import Synchronization

/// A program's relation to its coordinator: the graphs that its operations go into, and the handles
/// that wait for outcomes.
///
/// Operations that are added at the same time are sent together. They go into one graph after
/// another, so that finished operations need not be kept because of later ones.
final class Session: Sendable {
    let backend: any ClusterBackend
    /// The running blocks of this program.
    let localRuns = LocalRuns()
    private let state = Mutex(State())

    private struct State {
        var waiting = Deque<Addition>()
        var isSending = false
        var isClosed = false
        /// Set when no more requests are sent.
        var hasEnded = false
        var graph: OpenGraph?
        var graphs: [GraphID: FollowedGraph] = [:]
        /// Graphs with outcomes of unknown operations, which may still be in the process of being
        /// added.
        var graphsWithEarly: Set<GraphID> = []
        var lastNumber: UInt32 = 0
        /// The type of each kind that was added.
        var types: [String: ObjectIdentifier] = [:]
        /// What was logged as missing on all workers.
        var missing: Set<String> = []
        /// The names that were chosen for operations of the open graph.
        var labels: Set<String> = []
        /// Starts of external operations that are still being added.
        var earlyStarts: [OperationID: AttemptID?] = [:]

        /// Nothing is being added any more: discards early reports, which concern operations of
        /// others.
        mutating func becomeIdle() {
            isSending = false
            earlyStarts = [:]
            for id in graphsWithEarly {
                graphs[id]?.dropEarly()
                if graphs[id]?.isOver(isOpen: graph?.id == id) == true { graphs[id] = nil }
            }
            graphsWithEarly = []
        }
    }

    private struct OpenGraph {
        let id: GraphID
        var fill: GraphRollover
    }

    /// The most operations that are sent together.
    static let operationsPerAddition = 10_000

    init(_ backend: any ClusterBackend) { self.backend = backend }

    func start() async throws {
        let sink = EndedSink { [weak self] ended in
            self?.deliver(ended)
        } started: { [weak self] operation, attempt in
            self?.started(operation, attempt)
        } unfinished: { [weak self] graph in
            self.map { $0.unfinished(in: graph) } ?? []
        } gone: { [weak self] graph, why in
            self?.abandon(graph, why)
        }
        try await backend.start(sink)
    }

    func close(within time: Duration) async {
        let (waiting, graph) = state.withLock { state in
            state.isClosed = true
            defer { state.waiting = [] }
            return (state.waiting, state.graph)
        }
        for addition in waiting { addition.end(with: Self.closed) }
        let end = ContinuousClock.now + time
        if let graph { await close(graph.id, within: max(time, Self.answerTime)) }
        let rest = max(.zero, end - .now)
        await backend.close(within: rest) { [localRuns] in await localRuns.close(by: end) }
        state.withLock { $0.hasEnded = true }
        abandon(nil)
    }

    /// How long a reachable coordinator may take to answer.
    private static let answerTime = Duration.seconds(1)

    /// If the coordinator does not answer in this time or refuses, it closes the graph by itself
    /// after some days.
    private func close(_ graph: GraphID, within limit: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [backend] in
                _ = try? await backend.client.close(graph: "\(graph)")
            }
            group.addTask { try? await Task.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Nothing more will be known of the graph, or of any graph if it is `nil`.
    private func abandon(_ graph: GraphID?, _ why: OperonError? = nil) {
        let graphs = state.withLock { state in
            if let graph {
                if state.graph?.id == graph { state.graph = nil }
                return [state.graphs.removeValue(forKey: graph)].compactMap { $0 }
            }
            state.isClosed = true
            defer { state.graphs = [:] }
            return Array(state.graphs.values)
        }
        for graph in graphs {
            graph.forEach { handle in
                handle.abandon(why)
                if handle.outcomeIfKnown == nil { handle.queue?.forget() }
            }
        }
    }

    private static var closed: OperonError { OperonError(.closed, "The cluster was closed.") }

    /// The number of reports about operations that are unknown and may still be in the process of
    /// being added.
    var earlyCount: Int {
        state.withLock { state in
            state.graphsWithEarly.reduce(state.earlyStarts.count) {
                $0 + (state.graphs[$1]?.earlyCount ?? 0)
            }
        }
    }

    // MARK: - Adding

    /// Queues operations for sending: they are added in the order of the calls. `Addition.wait`
    /// gives the result.
    ///
    /// - Parameter undo: Called if nothing is added in the end, but not if this call throws.
    /// - Throws: `Refusal` or `OperonError`; nothing was done then.
    func enqueue(
        _ handles: [AnyOperationHandle],
        in queue: OperationQueue,
        undo: @escaping @Sendable () -> Void = {}
    ) throws -> Addition {
        let first = state.withLock { state in
            defer { state.lastNumber &+= UInt32(truncatingIfNeeded: handles.count) }
            return state.lastNumber &+ 1
        }
        guard !state.withLock({ $0.isClosed }) else { throw Self.closed }
        let addition = try Addition(
            handles,
            in: queue,
            firstNumber: first,
            self,
            undo: undo
        )
        let isFirst = state.withLock { state -> Bool? in
            guard !state.isClosed else { return nil }
            state.waiting.append(addition)
            defer { state.isSending = true }
            return !state.isSending
        }
        guard let isFirst else {
            // The session was closed just now. Waiting tasks get the error.
            Task { addition.end(with: Self.closed) }
            return addition
        }
        // Not a child of the caller's task: others wait for it as well.
        if isFirst { Task { await sendAll() } }
        return addition
    }

    /// Checks that a kind has one type only, because workers find code by the name of its kind.
    func note(_ type: ObjectIdentifier, as kind: String) throws(OperonError) {
        let known = state.withLock { state in
            let known = state.types[kind] ?? type
            state.types[kind] = known
            return known
        }
        guard known == type else {
            let why = "Two types are called “\(kind)”: give one of them another name by “kind”."
            throw OperonError(.invalid, why)
        }
    }

    private func sendAll() async {
        while let batch = nextBatch() { await send(batch) }
    }

    private func nextBatch() -> [Addition]? {
        state.withLock { state in
            guard let first = state.waiting.popFirst() else {
                state.becomeIdle()
                return nil
            }
            var batch = [first]
            var count = first.handles.count
            while let next = state.waiting.first,
                count + next.handles.count <= Self.operationsPerAddition
            {
                count += next.handles.count
                batch.append(next)
                state.waiting.removeFirst()
            }
            return batch
        }
    }

    private func send(_ batch: [Addition]) async {
        do {
            try await add(batch)
        } catch {
            // Additions that have reported a failure must not be sent again.
            let left = batch.filter { !$0.isOver }
            guard left.count > 1, Self.isTheirOwn(error) else {
                for addition in left { end(addition, with: error) }
                return
            }
            // One of them is invalid: sends the halves separately, so that the others are added.
            let middle = left.count / 2
            await send(Array(left[..<middle]))
            await send(Array(left[middle...]))
        }
    }

    /// Ends a refused addition and frees its names.
    private func end(_ addition: Addition, with error: any Error) {
        state.withLock { $0.labels.subtract(addition.chosenNames) }
        addition.end(with: error)
    }

    /// Whether the error concerns the operations that were sent, rather than the connection.
    private static func isTheirOwn(_ error: any Error) -> Bool {
        guard let error = error as? OperonError else { return error is Refusal }
        return error.code == .invalid || error.code == .refused
    }

    private func add(_ all: [Addition]) async throws {
        let graph = try await graph(forMore: all.reduce(0) { $0 + $1.handles.count })
        var batch: [Addition] = []
        var operations: [OperationDescription] = []
        for addition in all {
            do {
                let described = try describe(addition, in: graph)
                // Usually the first: appending would copy the descriptions, which are large.
                if operations.isEmpty { operations = described } else { operations += described }
                batch.append(addition)
            } catch {
                end(addition, with: error)
            }
        }
        guard !operations.isEmpty else {
            for addition in batch { addition.end(with: nil) }
            return
        }
        let first: UInt32
        let id: GraphID
        if let graph {
            id = graph
            do {
                first = try await extend(graph, by: operations)
            } catch {
                guard Self.isGone(error) else { throw error }
                // The graph was closed by somebody else, or after days without work: use a new one.
                state.withLock { state in
                    state.graph = nil
                    state.labels = []
                }
                return try await add(batch)
            }
        } else {
            let position = try await backend.position()
            id = try await open(with: operations)
            first = 0
            backend.follow(graph: id, after: position)
        }
        let ended = register(batch, from: first, in: id)
        await cancelEarly(batch)
        for addition in batch { addition.end(with: nil) }
        deliver(ended)
        let turns = state.withLock { state in
            defer { state.earlyStarts = [:] }
            return state.earlyStarts.sorted { $0.key < $1.key }
        }
        for (id, attempt) in turns { started(id, attempt) }
    }

    /// Whether the open graph accepts nothing any more.
    private static func isGone(_ error: any Error) -> Bool {
        if case Refusal.graphClosed = error { return true }
        return (error as? OperonError)?.code == .notFound
    }

    /// The open graph, if this many operations fit into it; `nil`: a new one has to be opened.
    private func graph(forMore count: Int) async throws -> GraphID? {
        let (graph, isFull) = state.withLock { state in
            guard let graph = state.graph else { return (GraphID?.none, false) }
            let waiting = state.graphs[graph.id]?.waiting ?? 0
            let isFull = graph.fill.isFull(for: count, waiting: waiting, at: backend.time.now())
            if isFull {
                state.graph = nil
                state.labels = []
                if state.graphs[graph.id]?.isOver(isOpen: false) == true {
                    state.graphs[graph.id] = nil
                }
            }
            return (graph.id, isFull)
        }
        guard let graph, isFull else { return graph }
        do {
            _ = try await backend.asked { try await $0.close(graph: "\(graph)") }
        } catch {
            // Somebody else has closed it already.
            guard Self.isGone(error) else { throw error }
        }
        return nil
    }

    private func open(with operations: [OperationDescription]) async throws -> GraphID {
        let openedAt = backend.time.now()
        var description = GraphDescription(name: "\(OwnProcess.programName)-\(OwnProcess.id)")
        description.order = .submission
        description.operations = operations
        var submission = Submission(graph: description)
        submission.isOpen = true
        submission.idempotencyKey = Self.newKey()
        let sent = submission
        let view = try await backend.asked { try await $0.submit(sent) }
        warn(view)
        let id = GraphID(rawValue: view.id)
        state.withLock { state in
            let fill = GraphRollover(
                operationCount: operations.count,
                bytes: Self.bytes(operations),
                openedAt: openedAt
            )
            state.graph = OpenGraph(id: id, fill: fill)
        }
        return id
    }

    private func extend(
        _ graph: GraphID,
        by operations: [OperationDescription]
    ) async throws -> UInt32 {
        var description = GraphDescription(name: "added", operations: operations)
        description.order = .submission
        var submission = Submission(graph: description)
        submission.idempotencyKey = Self.newKey()
        let sent = submission
        let view = try await backend.asked { try await $0.add(sent, to: "\(graph)") }
        warn(view)
        state.withLock { state in
            state.graph?.fill.operationCount = view.counts.total
            state.graph?.fill.bytes += Self.bytes(operations)
        }
        guard let first = view.firstAdded else {
            throw OperonError(.system, "The coordinator is too old for this library.")
        }
        guard operations.count <= view.counts.total, first <= view.counts.total - operations.count
        else { throw OperonError(.system, "The coordinator's answer makes no sense.") }
        return first
    }

    /// Logs what no worker could run: once for each thing that is missing, because a program may
    /// add such operations for ever.
    private func warn(_ view: GraphView) {
        for warning in view.warnings ?? [] {
            let isNew = state.withLock { state in
                state.missing.count < Self.missingMax
                    && state.missing.insert("\(warning.code) \(warning.missing)").inserted
            }
            guard isNew else { continue }
            backend.logger.warning(
                "operations wait for a worker",
                metadata: ["reason": "\(warning.text)"]
            )
        }
    }

    /// The most things that are logged as missing.
    private static let missingMax = 100

    private static func bytes(_ operations: [OperationDescription]) -> Int {
        operations.reduce(0) { $0 + $1.work.byteCount }
    }

    /// A key that nobody has used before.
    static func newKey() -> String {
        var random = SystemRandomNumberGenerator()
        return Incarnation(rawValue: random.next()).description
            + Incarnation(rawValue: random.next()).description
    }

    /// The descriptions with names that are unique in the graph, and with dependencies by name.
    private func describe(
        _ addition: Addition,
        in graph: GraphID?
    ) throws -> [OperationDescription] {
        var operations = addition.operations
        let names = addition.names(in: graph) {
            addition.handles.indices.map { place in
                let handle = addition.handles[place]
                guard handle.hasLabel else { return handle.name }
                let name = unused(handle.name, addition.number(at: place))
                handle.relabel(name)
                return name
            }
        }
        for place in operations.indices {
            operations[place].name = names[place]
            var waited = addition.dependencies[place].all
            let listed = Set(waited.map { ObjectIdentifier($0.0) })
            for handle in Self.present(addition.orders[place])
            where !listed.contains(ObjectIdentifier(handle)) {
                waited.append((handle, .finished))
            }
            for (handle, condition) in waited {
                let name = try handle.nameAsDependency(
                    of: names[place],
                    in: graph,
                    addition.queue.cluster
                )
                operations[place].dependencies.append(DependencyDescription(name, condition))
            }
        }
        return operations
    }

    /// The handles to wait for: refused ones are replaced by the handles that they were to wait
    /// for, and finished ones are left out.
    private static func present(_ handles: [AnyOperationHandle]) -> [AnyOperationHandle] {
        var present: [AnyOperationHandle] = []
        var seen: Set<ObjectIdentifier> = []
        var rest = handles
        while let handle = rest.popLast() {
            guard seen.insert(ObjectIdentifier(handle)).inserted,
                handle.outcomeIfKnown == nil
            else { continue }
            if let substitutes = handle.substitutes {
                rest += substitutes
            } else {
                present.append(handle)
            }
        }
        return present.reversed()
    }

    /// The label, made unique: labels may repeat, but names in a graph may not.
    private func unused(_ label: String, _ number: UInt32) -> String {
        state.withLock { state in
            // A label must look neither like a generated name nor like a number, which would select
            // an operation by its index.
            guard !label.contains("~"), UInt32(label) == nil,
                state.labels.insert(label).inserted
            else {
                let suffix = "~\(number)"
                return label.cut(to: Limits().nameBytes - suffix.utf8.count) + suffix
            }
            return label
        }
    }

    private func register(
        _ batch: [Addition],
        from first: UInt32,
        in graph: GraphID
    ) -> [EndedOperation] {
        let (ended, isClosed) = state.withLock { state in
            var followed = state.graphs.removeValue(forKey: graph) ?? FollowedGraph()
            var index = first
            for addition in batch {
                for handle in addition.handles {
                    handle.submitted(as: OperationID(graph: graph, index: index))
                    followed.append(handle, at: index)
                    index += 1
                }
            }
            let ended = followed.takeEarly(from: first, to: index)
            state.graphs[graph] = followed
            return (ended, state.isClosed)
        }
        if isClosed { abandon(nil) }
        return ended
    }

    /// Cancels operations that were cancelled before they were added: a delay holds them back until
    /// the coordinator knows.
    private func cancelEarly(_ batch: [Addition]) async {
        for addition in batch {
            for handle in addition.handles where handle.wasCancelledEarly {
                let cancel = handle.earlyCancel
                do {
                    try await backend.asked(cancel)
                } catch {
                    addition.end(with: error, isAdded: true)
                    // Dependents may be waiting for the operation, which nothing else would end.
                    Task { try await insist(cancel) }
                }
            }
        }
    }

    // MARK: - Following

    /// Follows an existing operation for this handle, until it has finished.
    func follow(_ handle: AnyOperationHandle, _ id: OperationID) async throws {
        // The position first: everything that finishes after it is reported.
        let position = try await backend.position()
        try state.withLock { state in
            guard !state.isClosed else { throw Self.closed }
            state.graphs[id.graph, default: FollowedGraph()].append(handle, at: id.index)
        }
        // Does nothing if the graph is followed already.
        backend.follow(graph: id.graph, after: position)
    }

    func deliver(_ ended: [EndedOperation]) {
        let finished: [(AnyOperationHandle, EndedOperation)] = state.withLock { state in
            var finished: [(AnyOperationHandle, EndedOperation)] = []
            finished.reserveCapacity(ended.count)
            var place = ended.startIndex
            while place < ended.endIndex {
                let graph = ended[place].id.graph
                var followed = state.graphs.removeValue(forKey: graph) ?? FollowedGraph()
                // While nothing is being added, unknown operations are ones that running operations
                // added.
                let mayBeOurs =
                    state.isSending && (state.graph == nil || state.graph?.id == graph)
                var bytes = 0
                while place < ended.endIndex, ended[place].id.graph == graph {
                    followed.take(ended[place], isEarly: mayBeOurs) {
                        finished.append(($0, ended[place]))
                    }
                    bytes += ended[place].output?.bytes.count ?? 0
                    place += 1
                }
                if bytes > 0, state.graph?.id == graph { state.graph?.fill.bytes += bytes }
                if followed.earlyCount > 0 { state.graphsWithEarly.insert(graph) }
                if !followed.isOver(isOpen: mayBeOurs || state.graph?.id == graph) {
                    state.graphs[graph] = followed
                }
            }
            return finished
        }
        for (handle, ended) in finished { handle.finish(ended.outcome, output: ended.output) }
    }

    /// An external operation started to execute.
    private func started(_ id: OperationID, _ attempt: AttemptID?) {
        let handle: AnyOperationHandle? = state.withLock { state in
            guard let handle = state.graphs[id.graph]?.handle(at: id.index) else {
                // The answer that gives the operation its index has not arrived yet.
                if state.isSending { state.earlyStarts[id] = attempt }
                return nil
            }
            return handle
        }
        if let handle, handle.runsHere { handle.execute(attempt, self) }
    }

    private func unfinished(in graph: GraphID) -> [UInt32]? {
        state.withLock { state in
            if state.isSending, state.graph == nil || state.graph?.id == graph { return nil }
            return state.graphs[graph]?.unfinished ?? []
        }
    }
}

extension Session {
    /// Repeats a request until the coordinator answers, however long that takes, because operations
    /// or people wait for its effect.
    ///
    /// - Throws: `CancellationError`, `Refusal`, or ``OperonError``.
    func insist<Answer: Sendable>(
        _ question: (any CoordinatorClient) async throws -> Answer
    ) async throws -> Answer {
        var backoff = Backoff()
        while true {
            do {
                return try await backend.asked(question)
            } catch let error as OperonError
                where error.code == .unreachable || error.code == .timedOut
            {
                guard !state.withLock({ $0.hasEnded }) else { throw Self.closed }
                // The request may have been carried out; it is safe to repeat.
                try await backoff.wait()
            }
        }
    }
}
