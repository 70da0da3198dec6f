import Glibc
package import Operon

/// What most rows run: it says in a journal that it has started, does as it is told, and says how
/// it ended. The same code runs on a worker, in this process and under Foundation.
package struct Play: Operon.Operation, Hashable {
    package static let errors: [any (Error & Codable).Type] = [Sorry.self]

    /// What the test calls it.
    package var name: String
    /// The path of the journal.
    package var journal: String
    /// Holds it until there is a file at this path, or it is asked to stop. A gate that was opened
    /// stays open, for a later attempt too.
    package var gate: String?
    /// Milliseconds for which it gives its thread back before it does anything.
    package var doze = 0
    /// Cancels itself.
    package var givesUp = false
    /// What it throws, instead of ending well.
    package var failure: Sorry?
    /// What it returns.
    package var result = ""

    package init(name: String, journal: String) {
        self.name = name
        self.journal = journal
    }

    package func main(_ context: OperationContext) async throws -> String {
        if doze > 0 { try await Task.sleep(for: .milliseconds(doze)) }
        if givesUp {
            try JournalLine(name, .started, queue: context.queueName).write(to: journal)
            context.cancel()
            try context.checkCancellation()
        }
        return try act(queue: context.queueName) { context.isCancelled }
    }

    /// The work itself, on the calling thread.
    package func act(queue: String, isCancelled: () -> Bool) throws -> String {
        func say(_ event: JournalLine.Event) throws {
            try JournalLine(name, event, queue: queue).write(to: journal)
        }
        try say(.started)
        while let gate, access(gate, F_OK) != 0 {
            if isCancelled() {
                try say(.stopped)
                throw CancellationError()
            }
            // Two things are waited for, and one of them is a flag.
            usleep(2_000)
        }
        if let failure {
            try say(.threw)
            throw failure
        }
        try say(.finished)
        return result
    }
}

/// An error of the tests.
package struct Sorry: Error, Codable, Hashable {
    package var reason: String

    package init(reason: String) { self.reason = reason }
}

/// Returns a number.
package struct Square: Operon.Operation, Hashable {
    package var number: Int

    package init(number: Int) { self.number = number }

    package func main(_ context: OperationContext) async throws -> Int { number * number }
}

/// Returns so much text.
package struct Text: Operon.Operation, Hashable {
    package var text: String
    package var count: Int

    package init(_ text: String, count: Int) {
        self.text = text
        self.count = count
    }

    package func main(_ context: OperationContext) async throws -> String {
        String(repeating: text, count: count)
    }
}

/// Adds an operation to its own graph.
package struct Produce: Operon.Operation, Hashable {
    package var play: Play
    package var child: Play

    package init(_ play: Play, child: Play) {
        self.play = play
        self.child = child
    }

    package func main(_ context: OperationContext) async throws -> String {
        try await context.addOperation(child, named: child.name)
        return try play.act(queue: context.queueName) { context.isCancelled }
    }
}

/// Plays, if something holds.
package struct Conditional: Operon.Operation, Hashable {
    /// How its condition is put.
    package enum Form: String, Codable, Sendable {
        case plain
        case negated
        case silent
    }

    package var play: Play
    package var condition: Says
    package var form: Form

    package init(_ play: Play, _ condition: Says, _ form: Form = .plain) {
        self.play = play
        self.condition = condition
        self.form = form
    }

    package var conditions: [any Condition] {
        switch form {
        case .plain: [condition]
        case .negated: [Not(condition)]
        case .silent: [Silent(condition)]
        }
    }

    package func main(_ context: OperationContext) async throws -> String {
        try play.act(queue: context.queueName) { context.isCancelled }
    }
}

/// A condition that answers as it was told, and notes that it was asked.
package struct Says: Condition, Codable, Hashable {
    package var answer: Bool
    package var asked: Play
    /// The operation that it brings along.
    package var brings: Play?

    package init(_ answer: Bool, asked: Play, brings: Play? = nil) {
        self.answer = answer
        self.asked = asked
        self.brings = brings
    }

    package func dependency() -> AnyOperationHandle? { brings.map { OperationHandle($0) } }

    package func evaluate(_ context: OperationContext) async throws -> ConditionResult {
        _ = try asked.act(queue: context.queueName) { context.isCancelled }
        return answer ? .satisfied : .failed
    }
}

/// A block that is known by its name.
package let shout = OperationKind.block("shout") { (text: String, _: OperationContext) in
    text.uppercased()
}
