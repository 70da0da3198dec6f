/// The queues and registered kinds to which a worker is limited; empty: none.
package struct SenderRights: Hashable, Sendable {
    package let queues: [String]
    package let kinds: [String]

    package init(queues: [String], kinds: [String]) {
        self.queues = queues
        self.kinds = kinds
    }

    package func allows(queue: String) -> Bool { queues.isEmpty || queues.contains(queue) }

    package func allows(kind: String) -> Bool { kinds.isEmpty || kinds.contains(kind) }

    /// - Throws: A refusal of operations and settings that such a worker may not add.
    package func check(addition: GraphDescription) throws(Refusal) {
        if let queue = addition.queues.first(where: { !allows(queue: $0.name) }) {
            throw .invalid(
                field: "queues",
                why: "the worker's join token does not allow the queue “\(queue.name)”"
            )
        }
        // A key counts in all queues.
        if !queues.isEmpty, let key = addition.keys.first {
            throw .invalid(
                field: "keys",
                why: "the worker's join token does not allow settings of the key “\(key.name)”"
            )
        }
        for operation in addition.operations {
            guard allows(queue: operation.queue) else {
                throw .invalid(
                    field: "queue of “\(operation.name)”",
                    why: "the worker's join token does not allow the queue “\(operation.queue)”"
                )
            }
            guard case .registered(let kind, _) = operation.work, !allows(kind: kind) else {
                continue
            }
            throw .invalid(
                field: "kind of “\(operation.name)”",
                why: "the worker's join token does not allow the kind “\(kind)”"
            )
        }
    }
}
