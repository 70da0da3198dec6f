import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonWire

// What running operations add, and what they wait for. The service evaluates these requests because
// it knows the names, and it does so between two events of the scheduler, so that everything is
// stored in the order in which it was requested.
extension CoordinatorService {
    /// Evaluates requests until none is left: one request may release another that the worker sent
    /// after it.
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
        // Checked before that many names are looked up.
        do throws(Refusal) {
            let count = order.request.names.count
            try LimitName.awaitedOperations.check(count, limits.awaitedOperations)
        } catch {
            return .refused(error)
        }
        var awaited: [OperationID] = []
        awaited.reserveCapacity(order.request.names.count)
        for name in order.request.names {
            guard let operation = resolve(name, in: graph) else {
                let waiter = self.name(of: order.held.operation).name
                return .refused(.unknownOperation(name: name, namedBy: waiter))
            }
            awaited.append(operation)
        }
        return .operations(awaited)
    }

    /// Compiles every requested addition, passes it to the scheduler, and keeps what was accepted.
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
            do throws(WireError) {
                try keep(part.operations, of: kept, by: order.held.operation.index)
            } catch {
                preconditionFailure("these bytes were written from what they are: \(error)")
            }
            // The output of an operation that ends in this very step is kept after this.
            for id in contents.wanted(by: part.operations, of: graph) {
                guard let output = output(of: id) else { continue }
                contents[Int(id.graph.rawValue)].keep(output, of: id.index)
            }
            growthObserver(graph, part.operations)
        }
    }

    /// Returns `nil` if all of it was added before.
    private func compile(
        _ order: Scheduler.AdditionOrder
    ) throws(Refusal) -> (StoredContents, GraphDescription, CompiledAddition)? {
        let graph = order.held.operation.graph
        let parent = order.held.operation.index
        let number = Int(graph.rawValue)
        let description = try read(order.request, of: order.held)
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
        for id in contents.wanted(by: new.description.operations, of: graph) {
            if contents[Int(id.graph.rawValue)].isGone(id.index) {
                let name = self.name(of: id).name
                let why =
                    "the output of “\(name)” was deleted because no operation depended on it"
                throw .invalid(field: "dependencies", why: why)
            }
            if unloadedOutputs.contains(id) { throw unreadable(id) }
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

    private func unreadable(_ id: OperationID) -> Refusal {
        .unreachable("the output of “\(name(of: id).name)” cannot be read from the store")
    }

    /// The added operations, with dependencies on other graphs resolved. An addition that `serve`
    /// has decoded is not decoded again.
    private func read(
        _ request: AdditionRequest,
        of held: HeldAttempt
    ) throws(Refusal) -> GraphDescription {
        let key = AdditionKey(held: held, number: request.number)
        if let known = decoded[key] { return found(known, in: held.operation.graph) }
        let description = try StoreFormat.decodeAddition(request.operations, limits: limits)
        return found(description, in: held.operation.graph)
    }

    /// Identifies one addition of one attempt.
    struct AdditionKey: Hashable, Sendable {
        let held: HeldAttempt
        let number: UInt64
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
        if !isDropped, let output = output(of: id) {
            return .found(id, output.isEmpty ? nil : output)
        }
        if unloadedOutputs.contains(id) { return .refused(unreadable(id)) }
        if isDropped || contents[number].isGone(id.index) {
            let why = "what “\(name)” has left is not kept any more"
            return .refused(.invalid(field: "output", why: why))
        }
        // The operation ended after the outputs for this message were loaded and before it was
        // evaluated.
        guard keeping == nil || scheduler.outcomeKind(of: id) != .succeeded else {
            return .notLoaded
        }
        return .found(id, nil)
    }

    // MARK: - Outputs

    /// Loads the outputs that the requests among these events need, then handles the events: an
    /// added operation may start in the same step.
    func serve(_ events: [Scheduler.Event]) async {
        await loadOutputs(for: events)
        handle(events)
        decoded = [:]
        loadedOutputs = [:]
        unloadedOutputs = []
    }

    /// Loads the outputs that these events need. Another operation may end while an output is read,
    /// so the events are examined again until nothing had to be awaited.
    private func loadOutputs(for events: [Scheduler.Event]) async {
        guard let store else { return }
        var bytesRead = 0
        var hasWaited = true
        while hasWaited {
            hasWaited = false
            for asked in outputsAsked(by: events) where !isAtHand(asked.id) {
                // The remaining reads are told to ask again.
                if asked.isRead, bytesRead >= limits.messageBytes { continue }
                await load(asked.id, from: store)
                if asked.isRead { bytesRead += loadedOutputs[asked.id]?.bytes.count ?? 0 }
                hasWaited = true
            }
        }
    }

    private struct AskedOutput {
        let id: OperationID
        /// Whether the operation can ask again. An addition cannot.
        let isRead: Bool
    }

    /// The finished operations whose outputs are needed by requests among these events. The events
    /// count as in hand only during this call: a crash while an output is read need not be their
    /// fault.
    private func outputsAsked(by events: [Scheduler.Event]) -> [AskedOutput] {
        var asked: [AskedOutput] = []
        for event in events {
            guard case .workerMessage(let envelope) = event,
                case .events(let batch) = envelope.body
            else { continue }
            take(event)
            defer { putDown(isHandled: false) }
            for event in batch.events {
                // Requests of attempts that the sender does not own are refused later, unread.
                guard scheduler.owns(event.held, envelope.sender) else { continue }
                switch event {
                case .added(let held, let request):
                    asked += outputsAsked(by: request, of: held).map {
                        AskedOutput(id: $0, isRead: false)
                    }
                case .read(let held, let request):
                    guard let id = resolve(request.name, in: held.operation.graph),
                        scheduler.outcomeKind(of: id) == .succeeded
                    else { continue }
                    asked.append(AskedOutput(id: id, isRead: true))
                case .started, .finished, .returned, .yielded: continue
                }
            }
        }
        return asked
    }

    private func outputsAsked(
        by request: AdditionRequest,
        of held: HeldAttempt
    ) -> [OperationID] {
        let key = AdditionKey(held: held, number: request.number)
        do throws(Refusal) {
            if decoded[key] == nil {
                decoded[key] = try StoreFormat.decodeAddition(request.operations, limits: limits)
            }
            let operations = try read(request, of: held).operations
            return contents.wanted(by: operations, of: held.operation.graph).filter(isMissing)
        } catch {
            return []  // It is refused when it is judged.
        }
    }

    /// Whether the output of a finished operation is in memory, or is known to be unreadable.
    private func isAtHand(_ id: OperationID) -> Bool {
        unloadedOutputs.contains(id) || output(of: id) != nil
    }

    /// The output of a finished operation from anywhere but the store; empty if it left none.
    ///
    /// An output that is not stored yet waits in the gate. An operation may receive it at once,
    /// because the answer waits for the same transaction.
    private func output(of id: OperationID) -> Payload? {
        contents[Int(id.graph.rawValue)].left(id.index) ?? loadedOutputs[id]
            ?? keeping?.gate.waitingOutput(of: id) ?? newOutput(of: id)
    }

    /// The output of an operation that ended through the events that are being handled.
    private func newOutput(of id: OperationID) -> Payload? {
        for case .result(id, _, let result) in effects.notices.reversed() { return result.output }
        return nil
    }

    /// Loads the output of an operation whose result was committed. If the store has none, the
    /// operation left none.
    private func load(_ id: OperationID, from store: any OperationStore) async {
        do {
            loadedOutputs[id] = try await store.output(of: id) ?? .empty
        } catch {
            unloadedOutputs.insert(id)
            logger.error("output not loaded", metadata: ["reason": "\(error)"])
        }
    }
}

extension Scheduler.Event {
    /// Whether running operations request something here that may have to be loaded first.
    var hasRequests: Bool {
        guard case .workerMessage(let envelope) = self, case .events(let batch) = envelope.body
        else { return false }
        return batch.events.contains { event in
            switch event {
            case .added, .read: true
            case .started, .finished, .returned, .yielded: false
            }
        }
    }
}
