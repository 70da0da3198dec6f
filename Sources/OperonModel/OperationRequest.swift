// What running operations request from their coordinator, and the answers. A request is a numbered
// event of its worker, so that it is handled in order with starts and ends. It stays open until its
// verdict arrives, and every beat lists the open requests. A request therefore survives any lost
// message.

/// Operations that a running operation adds to its graph.
///
/// An added operation is identified by its parent and its name. Adding the same operation again,
/// for example in another attempt of the parent, has no effect.
package struct AdditionRequest: Hashable, Sendable {
    /// Counts the requests of one incarnation, from 1.
    package var number: UInt64
    /// The operations, encoded as a coordinator keeps them.
    package var operations: [UInt8]

    package init(number: UInt64, operations: [UInt8]) {
        self.number = number
        self.operations = operations
    }
}

/// Operations that a running operation waits for. The waiting operation has given up its slot and
/// its place in its queue. It continues when all of them have outcomes and there is room for it
/// again.
package struct WaitRequest: Hashable, Sendable {
    /// Counts the requests of one incarnation, from 1.
    package var number: UInt64
    /// The names, as in dependencies: an operation of the same graph, or `graph/operation`. At
    /// least one.
    package var names: [String]

    package init(number: UInt64, names: [String]) {
        self.number = number
        self.names = names
    }
}

/// Asks for the output of an operation that the running operation does not depend on.
package struct ReadRequest: Hashable, Sendable {
    /// Counts the requests of one incarnation, from 1.
    package var number: UInt64
    /// The name of the operation, as in dependencies.
    package var name: String

    package init(number: UInt64, name: String) {
        self.number = number
        self.name = name
    }
}

/// A request without a verdict, as a beat lists it.
package struct OpenRequest: Hashable, Sendable {
    package var number: UInt64
    /// The attempt that made the request.
    package var held: HeldAttempt
    /// The number of the latest event that carried the request.
    package var event: UInt64

    package init(number: UInt64, held: HeldAttempt, event: UInt64) {
        self.number = number
        self.held = held
        self.event = event
    }
}

/// The answer to a request, with its refusal in words.
package typealias Verdict = VerdictOf<Refusal>

/// The answer to a request, with a refusal of this type.
package struct VerdictOf<Refused: Hashable & Sendable>: Hashable, Sendable {
    /// The number of the request.
    package var number: UInt64
    /// The number of the event that this answers.
    package var event: UInt64
    package var content: Content

    package enum Content: Hashable, Sendable {
        /// This many operations are new; the others existed already.
        case added(UInt32)
        /// The outcomes of the operations that it waited for, in the order it named them. It
        /// continues.
        case ended([OutcomeKind])
        /// The requested output; `nil`: that operation has no output.
        case output(Payload?)
        /// The request was refused and had no effect.
        case refused(Refused)
        /// The verdict was lost with the coordinator process that gave it: ask again.
        case again
    }

    package init(number: UInt64, event: UInt64, content: Content) {
        self.number = number
        self.event = event
        self.content = content
    }

    /// The same answer with its refusal in another form.
    package func mapRefusal<Other>(_ form: (Refused) -> Other) -> VerdictOf<Other> {
        let content: VerdictOf<Other>.Content
        switch self.content {
        case .added(let count): content = .added(count)
        case .ended(let outcomes): content = .ended(outcomes)
        case .output(let output): content = .output(output)
        case .refused(let refusal): content = .refused(form(refusal))
        case .again: content = .again
        }
        return VerdictOf<Other>(number: number, event: event, content: content)
    }
}
