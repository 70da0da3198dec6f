import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonWire

// Outputs that requests of running operations need. `GraphCatalog` answers the requests.
extension CoordinatorService {
    /// Loads the outputs that the requests among these events need, then handles the events: an
    /// added operation may start in the same step.
    func serve(_ events: [Scheduler.Event]) async {
        await loadOutputs(for: events)
        // Not while something is awaited: clients use the catalog meanwhile.
        catalog.requests.rights = events.lazy.compactMap(\.rights).first
        handle(events)
        catalog.requests = GraphCatalog.Requests()
    }

    /// Loads the outputs that these events need. Another operation may end while an output is read,
    /// so the events are examined again until nothing had to be awaited.
    private func loadOutputs(for events: [Scheduler.Event]) async {
        var bytesRead = 0
        var hasWaited = true
        while hasWaited {
            hasWaited = false
            let all = outputsAsked(by: events)
            guard let store else { return }
            for asked in all where !isAtHand(asked.id) {
                // The remaining reads are told to ask again, and what is not carried runs.
                if asked.isOptional, bytesRead >= limits.messageBytes { continue }
                await load(asked.id, from: store)
                let bytes = catalog.requests.outputs[asked.id]?.bytes.count
                if asked.isOptional { bytesRead += bytes ?? 0 }
                hasWaited = true
            }
        }
    }

    private struct AskedOutput {
        let id: OperationID
        /// Whether the operation can ask again, or can do without. An addition cannot ask again.
        let isOptional: Bool
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
            catalog.requests.rights = envelope.rights
            defer {
                catalog.requests.rights = nil
                putDown(isHandled: false)
            }
            for event in batch.events {
                // Requests of attempts that the sender does not own are refused later, unread.
                guard scheduler.owns(event.held, envelope.sender) else { continue }
                switch event {
                case .added(let held, let request):
                    asked += outputsAsked(by: request, of: held)
                case .read(let held, let request):
                    let graph = held.operation.graph
                    let named = catalog.resolve(request.name, in: graph)
                    guard let id = catalog.original(of: request.name, in: graph) ?? named,
                        scheduler.outcomeKind(of: id) == .succeeded
                    else { continue }
                    asked.append(AskedOutput(id: id, isOptional: true))
                case .started, .finished, .returned, .yielded: continue
                }
            }
        }
        return asked
    }

    private func outputsAsked(
        by request: AdditionRequest,
        of held: HeldAttempt
    ) -> [AskedOutput] {
        do throws(Refusal) {
            let operations = try catalog.read(request, of: held).operations
            let wanted = catalog.wanted(by: operations, of: held.operation.graph).filter(isMissing)
            try catalog.noteCarried(by: request, of: held, scheduler)
            let key = GraphCatalog.AdditionKey(held: held, number: request.number)
            let carried = (catalog.requests.carried[key] ?? [:]).values.sorted().filter(isMissing)
            return wanted.map { AskedOutput(id: $0, isOptional: false) }
                + carried.map { AskedOutput(id: $0, isOptional: true) }
        } catch {
            return []  // It is refused when it is handled.
        }
    }

    /// Whether the output of a finished operation is in memory, or is known to be unreadable.
    ///
    /// An output that is not stored yet waits in the gate. An operation may receive it at once,
    /// because the answer waits for the same transaction.
    private func isAtHand(_ id: OperationID) -> Bool {
        if catalog.requests.unreadable.contains(id) || catalog.loadedOutput(of: id) != nil {
            return true
        }
        guard let waiting = keeping?.gate.waitingOutput(of: id) else { return false }
        catalog.requests.outputs[id] = waiting
        return true
    }

    /// Loads the output of an operation whose result was committed. If the store has none, the
    /// operation left none.
    private func load(_ id: OperationID, from store: any OperationStore) async {
        do {
            catalog.requests.outputs[id] = try await store.output(of: id) ?? .empty
        } catch {
            catalog.requests.unreadable.insert(id)
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
            // Names of other graphs, which not every worker may use.
            case .yielded: envelope.rights != nil
            case .started, .finished, .returned: false
            }
        }
    }

    /// What its sender may say; `nil`: everything.
    fileprivate var rights: SenderRights? {
        guard case .workerMessage(let envelope) = self else { return nil }
        return envelope.rights
    }
}
