/// What a client may not do in the graphs that it submits, and what runs in them neither.
package struct SubmitterBounds: Hashable, Sendable {
    /// The queues to which it may submit; `nil`: to all. With queues, a graph has no settings of
    /// others, and none of keys, which all graphs have in common.
    package let queues: [String]?
    /// Whether it may cancel what others have submitted.
    package let mayCancelOthers: Bool

    package static let none = SubmitterBounds(queues: nil, mayCancelOthers: true)

    package init(queues: [String]?, mayCancelOthers: Bool) {
        self.queues = queues
        self.mayCancelOthers = mayCancelOthers
    }

    /// Why the client may not submit a graph or an addition, as a clause; `nil`: it may.
    ///
    /// - Parameter owns: Whether the client has submitted a graph that an operation depends on.
    package func objection(
        to description: GraphDescription,
        owns: (GraphID) -> Bool
    ) -> String? {
        if let queues, let objection = Self.objection(to: description, unlessIn: queues) {
            return objection
        }
        guard !mayCancelOthers else { return nil }
        for operation in description.operations where operation.cancelSiblings {
            let other = operation.dependencies.first { dependency in
                dependency.resolvedID.map { !owns($0.graph) } ?? false
            }
            guard let other else { continue }
            return "“\(operation.name)” has “cancelSiblings”, which could cancel “\(other.name)”, "
                + "and that is not its own"
        }
        return nil
    }

    private static func objection(
        to description: GraphDescription,
        unlessIn queues: [String]
    ) -> String? {
        let list = queues.map { "“\($0)”" }.joined(separator: ", ")
        for operation in description.operations where !queues.contains(operation.queue) {
            return "it may submit to \(list), and “\(operation.name)” is in the queue "
                + "“\(operation.queue)”"
        }
        for queue in description.queues where !queues.contains(queue.name) {
            return "it may submit to \(list), and there are settings of the queue “\(queue.name)”"
        }
        if let key = description.keys.first {
            return "it may submit to \(list), and there are settings of the key “\(key.name)”, "
                + "which counts in all queues"
        }
        return nil
    }
}
