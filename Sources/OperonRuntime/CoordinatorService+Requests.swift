import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonWire

// What running operations add, and what they wait for: looked at here, where names are known, and
// between two events of the scheduler, so that everything is kept in the order it was said.
extension CoordinatorService {
    /// Judges until nothing is left to be: what a worker said behind one request may hold the next.
    func judgeRequests(at now: Moment) {
        while !(effects.additions.isEmpty && effects.waits.isEmpty && effects.reads.isEmpty) {
            judgeAdditions(at: now)
            judgeWaits(at: now)
            judgeReads(at: now)
        }
    }

    private func judgeWaits(at now: Moment) {
        while !effects.waits.isEmpty {
            let order = effects.waits.removeFirst()
            let judgement = judge(order)
            scheduler.handle(.waitJudged(order, judgement), at: now, into: &effects)
        }
    }

    private func judge(_ order: Scheduler.WaitOrder) -> Scheduler.WaitJudgement {
        let graph = order.held.operation.graph
        var awaited: [OperationID] = []
        awaited.reserveCapacity(order.request.names.count)
        for name in order.request.names {
            guard let operation = resolve(name, in: graph) else {
                let waiter = self.name(of: order.held.operation).name
                return .refused(.unknownOperation(name: name, namedBy: waiter))
            }
            awaited.append(operation)
        }
        // The scheduler would refuse it as well, by numbers.
        if let path = scheduler.waitPath(from: awaited, to: order.held.operation) {
            let cycle = [order.held.operation] + path
            return .refused(.dependencyCycle(path: cycle.map { name(of: $0).name }))
        }
        return .operations(awaited)
    }

    /// Gives every addition that was ordered back to the scheduler, and keeps what was taken.
    private func judgeAdditions(at now: Moment) {
        while !effects.additions.isEmpty {
            let order = effects.additions.removeFirst()
            let graph = order.held.operation.graph
            let judged: (kept: StoredContents, part: GraphDescription, CompiledAddition)?
            do throws(Refusal) {
                judged = try compile(order)
            } catch {
                scheduler.handle(.additionJudged(order, .refused(error)), at: now, into: &effects)
                continue
            }
            guard let (kept, part, addition) = judged else {
                scheduler.handle(.additionJudged(order, .known), at: now, into: &effects)
                continue
            }
            let count = scheduler.operationCount(of: graph)
            scheduler.handle(
                .additionJudged(order, .fits(addition)),
                at: now,
                into: &effects
            )
            guard scheduler.operationCount(of: graph) > count else { continue }
            let number = Int(graph.rawValue)
            let first = contents[number].operations.count
            do throws(WireError) {
                let parent = order.held.operation.index
                try contents[number].append(part.operations, kept.body, by: parent)
            } catch {
                preconditionFailure("these bytes were written from what they are: \(error)")
            }
            contents.began(graph, from: first)
            for id in contents.wanted(by: part.operations, of: graph) {
                guard let output = loadedOutputs[id] else { continue }
                contents[Int(id.graph.rawValue)].keep(output, of: id.index)
            }
            keeping?.submitted.append(kept)
            growthObserver(graph, part.operations)
        }
    }

    /// `nil`: all of it was added before.
    private func compile(
        _ order: Scheduler.AdditionOrder
    ) throws(Refusal) -> (StoredContents, GraphDescription, CompiledAddition)? {
        let graph = order.held.operation.graph
        let parent = order.held.operation.index
        let number = Int(graph.rawValue)
        let description = found(try Self.read(order.request, limits), in: graph)
        let new = try CompiledAddition.compile(
            description,
            addedBy: parent,
            to: scheduler.additionBase(inside: graph),
            limits: limits
        ) { name in
            contents[number].known(name)
        } resolve: { name in
            resolve(name, in: graph)
        }
        guard let new else { return nil }
        let gone = contents.wanted(by: new.description.operations, of: graph).first {
            contents[Int($0.graph.rawValue)].isGone($0.index)
        }
        if let gone {
            let name = self.name(of: gone).name
            let why = "the output of “\(name)” is not kept any more: nobody was known to want it"
            throw .invalid(field: "dependencies", why: why)
        }
        let body: [UInt8]
        do throws(WireError) {
            body = try StoreFormat.encode(new.description, failFast: false, parent: parent)
        } catch {
            throw .invalid(field: "operations", why: error.message)
        }
        var kept = StoredContents(
            graph: graph,
            name: register[graph].name,
            first: new.addition.first,
            operationCount: new.description.operations.count,
            body: body
        )
        kept.needs = Self.needs(new.addition.graph.outer, of: graph)
        return (kept, new.description, new.addition)
    }

    private static func read(
        _ request: AdditionRequest,
        _ limits: Limits
    ) throws(Refusal) -> GraphDescription {
        guard request.operations.count <= limits.additionBytes else {
            throw .limitExceeded(
                limit: .additionBytes,
                value: request.operations.count,
                maximum: limits.additionBytes
            )
        }
        do throws(WireError) {
            return try StoreFormat.decodeGraph(request.operations).graph
        } catch {
            throw .invalid(field: "operations", why: error.message)
        }
    }

    // MARK: - Reads

    private func judgeReads(at now: Moment) {
        while !effects.reads.isEmpty {
            let order = effects.reads.removeFirst()
            let judgement = judge(order)
            scheduler.handle(.readJudged(order, judgement), at: now, into: &effects)
        }
    }

    private func judge(_ order: Scheduler.ReadOrder) -> Scheduler.ReadJudgement {
        let name = order.request.name
        guard let id = resolve(name, in: order.held.operation.graph) else {
            let reader = self.name(of: order.held.operation).name
            return .refused(.unknownOperation(name: name, namedBy: reader))
        }
        let number = Int(id.graph.rawValue)
        let isDropped =
            register[id.graph].isTombstone && scheduler.outcomeKind(of: id) == .succeeded
        if !isDropped, let output = contents[number].left(id.index) ?? loadedOutputs[id] {
            return .found(id, output.isEmpty ? nil : output)
        }
        if unloadedOutputs.contains(id) {
            return .refused(.unreachable("the output of “\(name)” cannot be read from the store"))
        }
        if isDropped || contents[number].isGone(id.index) {
            let why = "what “\(name)” has left is not kept any more"
            return .refused(.invalid(field: "output", why: why))
        }
        // It ended after what the worker said had come, and before it was looked at.
        guard keeping == nil || scheduler.outcomeKind(of: id) != .succeeded else {
            return .notLoaded
        }
        return .found(id, nil)
    }

    // MARK: - Outputs

    /// What additions among these events ask for and nobody was known to want: loaded before, since
    /// what is added may start in the same step. Nothing, as a rule, and then it costs nothing.
    func loadOutputs(for events: [Scheduler.Event]) async {
        loadedOutputs = [:]
        unloadedOutputs = []
        guard keeping != nil else { return }
        // For all of them together: beats wait behind this.
        let end = SystemClock.now() + Self.loadPatience
        for case .workerMessage(let envelope) in events {
            guard case .events(let batch) = envelope.body else { continue }
            for event in batch.events {
                switch event {
                case .added(let held, let request):
                    await loadOutputs(for: request, of: held.operation.graph, by: end)
                case .read(let held, let request):
                    await loadOutput(for: request, of: held.operation.graph, by: end)
                case .started, .finished, .returned, .yielded: continue
                }
            }
        }
    }

    private func loadOutputs(
        for request: AdditionRequest,
        of graph: GraphID,
        by end: Timestamp
    ) async {
        guard let store, contents.indices.contains(Int(graph.rawValue)) else { return }
        let operations: [OperationDescription]
        do throws(Refusal) {
            operations = found(try Self.read(request, limits), in: graph).operations
        } catch {
            return  // It is refused when it is judged.
        }
        for id in contents.wanted(by: operations, of: graph) where isMissing(id) {
            await load(id, from: store, by: end)
        }
    }

    private func loadOutput(
        for request: ReadRequest,
        of graph: GraphID,
        by end: Timestamp
    ) async {
        guard let store, contents.indices.contains(Int(graph.rawValue)),
            let id = resolve(request.name, in: graph), scheduler.outcomeKind(of: id) == .succeeded,
            contents[Int(id.graph.rawValue)].left(id.index) == nil
        else { return }
        await load(id, from: store, by: end)
    }

    private func load(
        _ id: OperationID,
        from store: any OperationStore,
        by end: Timestamp
    ) async {
        // What has just finished may not be in the store yet.
        if keeping?.trouble == nil { await durable(within: max(.zero, end - SystemClock.now())) }
        do {
            loadedOutputs[id] = try await store.output(of: id) ?? .empty
        } catch {
            unloadedOutputs.insert(id)
            logger.error("output not loaded", metadata: ["reason": "\(error)"])
        }
    }

    /// As long as clients wait for a disk that takes nothing: what is not there by then is missing.
    private static let loadPatience = Duration.seconds(5)
}
