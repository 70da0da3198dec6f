// What running operations ask of their coordinator, and the answers. A request is a numbered event
// of its worker, so that it is handled in its place among starts and ends; it is open until its
// verdict has come, and every beat lists those that are open. So it survives whatever is lost.

/// Operations that a running operation adds to its graph.
///
/// Known by (parent, name of the child): whoever adds the same again, another attempt of the same
/// operation for example, has added it already.
package struct AdditionRequest: Hashable, Sendable {
    /// Counts the requests of one incarnation, from 1.
    package var number: UInt64
    /// The operations, as a coordinator keeps them.
    package var operations: [UInt8]

    package init(number: UInt64, operations: [UInt8]) {
        self.number = number
        self.operations = operations
    }
}

/// Operations that a running operation waits for. It has given its slot back, and its place in its
/// queue, and goes on when all of them have their outcomes and there is room for it again.
package struct WaitRequest: Hashable, Sendable {
    /// Counts the requests of one incarnation, from 1.
    package var number: UInt64
    /// As dependencies are named: of its graph, or `graph/operation`. At least one.
    package var names: [String]

    package init(number: UInt64, names: [String]) {
        self.number = number
        self.names = names
    }
}

/// What an operation has left, for a running one that did not depend on it.
package struct ReadRequest: Hashable, Sendable {
    /// Counts the requests of one incarnation, from 1.
    package var number: UInt64
    /// As dependencies are named.
    package var name: String

    package init(number: UInt64, name: String) {
        self.number = number
        self.name = name
    }
}

/// A request that has no verdict yet, in a beat.
package struct OpenRequest: Hashable, Sendable {
    package var number: UInt64
    /// The attempt that asks.
    package var held: HeldAttempt
    /// The number of the event that told of it last.
    package var event: UInt64

    package init(number: UInt64, held: HeldAttempt, event: UInt64) {
        self.number = number
        self.held = held
        self.event = event
    }
}

/// The answer to a request.
package struct Verdict: Hashable, Sendable {
    /// That of the request.
    package var number: UInt64
    /// The event that it answers.
    package var event: UInt64
    package var content: Content

    package enum Content: Hashable, Sendable {
        /// This many operations are new; the others were there already.
        case added(UInt32)
        /// How all that it waited for ended, in the order it named them. It goes on.
        case ended([OutcomeKind])
        /// What it asked for; `nil`: that operation has left nothing.
        case output(Payload?)
        /// Nothing of it was done.
        case refused(Refusal)
        /// The verdict was lost with whoever gave it: ask again.
        case again
    }

    package init(number: UInt64, event: UInt64, content: Content) {
        self.number = number
        self.event = event
        self.content = content
    }
}
