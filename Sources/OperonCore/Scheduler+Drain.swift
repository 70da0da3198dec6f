package import OperonModel

// Draining a worker on request.
extension Scheduler {
    /// From here on the worker is granted nothing. Every answer to it repeats the order until it
    /// reports that it drains.
    mutating func drain(
        _ incarnation: Incarnation,
        by client: String,
        into effects: inout Effects
    ) {
        guard let index = workerNumbers[incarnation], workers[index].isAlive else {
            effects.refusals.append(.worded(.invalid(field: "worker", why: "it is not there")))
            return
        }
        // benign: it was asked before, or it drains already.
        guard workers[index].takesWork else { return }
        workers[index].isAskedToDrain = true
        if configuration.violation != .forgetsClients { workers[index].drainedBy = client }
        let control = Control(acknowledged: workers[index].handled, orders: [.drain])
        send(.plain(.control(control)), to: index, into: &effects)
    }

    mutating func learn(isDraining: Bool, of worker: Int, into effects: inout Effects) {
        guard isDraining, !workers[worker].isDraining else { return }
        workers[worker].isDraining = true
        effects.notices.append(
            .workerDraining(workers[worker].identity, by: workers[worker].drainedBy)
        )
    }

    /// Whether a worker has reported that it takes nothing more, or has left.
    package func hasBegunToDrain(_ incarnation: Incarnation) -> Bool {
        guard let index = workerNumbers[incarnation] else { return true }
        return workers[index].isDraining || !workers[index].isAlive
    }

    /// Whether a worker that was asked to drain has not reported yet that it drains.
    package var areDrainsOpen: Bool {
        workers.contains { $0.isAlive && $0.isAskedToDrain && !$0.isDraining }
    }
}
