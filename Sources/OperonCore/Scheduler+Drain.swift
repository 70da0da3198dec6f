package import OperonModel

// A worker that is asked to leave.
extension Scheduler {
    /// Nothing is granted to it from here on. Said again with every answer to it until it says that
    /// it drains.
    mutating func drain(_ incarnation: Incarnation, into effects: inout Effects) {
        guard let index = workerNumbers[incarnation], workers[index].isAlive else {
            effects.refusals.append(.invalid(field: "worker", why: "it is not there"))
            return
        }
        // benign: asked twice, or it drains already.
        guard workers[index].takesWork else { return }
        workers[index].isAskedToDrain = true
        let control = Control(acknowledged: workers[index].handled, orders: [.drain])
        send(.plain(.control(control)), to: index, into: &effects)
    }

    mutating func learn(isDraining: Bool, of worker: Int, into effects: inout Effects) {
        guard isDraining, !workers[worker].isDraining else { return }
        workers[worker].isDraining = true
        effects.notices.append(.workerDraining(workers[worker].identity))
    }

    /// Whether a worker takes nothing more by its own word, or has left.
    package func hasBegunToDrain(_ incarnation: Incarnation) -> Bool {
        guard let index = workerNumbers[incarnation] else { return true }
        return workers[index].isDraining || !workers[index].isAlive
    }

    /// Workers that were asked to drain and have not said that they do.
    package var areDrainsOpen: Bool {
        workers.contains { $0.isAlive && $0.isAskedToDrain && !$0.isDraining }
    }
}
