package import OperonCore
package import OperonModel
package import OperonPorts

/// Code that a worker runs for a kind of operation.
package struct RegisteredKind: Sendable {
    /// The name by which operations refer to it; 1…256 bytes.
    package let name: String
    /// Runs one attempt to its end. It never throws: the result is a value.
    package let run: @Sendable (Invocation) async -> InvocationEnd

    package init(name: String, run: @escaping @Sendable (Invocation) async -> InvocationEnd) {
        self.name = name
        self.run = run
    }
}

/// What the code of a kind receives for one attempt.
package struct Invocation: Sendable {
    /// The operation, the attempt, and the outputs of the operation's dependencies.
    package let operation: DispatchedOperation
    /// The operation's own input.
    package let input: Payload
    /// Whether the attempt was asked to stop.
    package let isCancelled: @Sendable () -> Bool
    /// Asks the attempt to stop, on behalf of its own code.
    package let cancel: @Sendable () -> Void
    /// Appends to the operation's log.
    package let log: @Sendable (String) -> Void
    /// Reports progress; cheap, however often it is called.
    package let report: @Sendable (ReportedProgress) -> Void
    /// Sends a request to the coordinator; returns when the answer has come.
    package let ask: Asker

    package typealias Asker =
        @Sendable (WorkerAgent.RequestContent) async -> WorkerAgent.RequestAnswer.Content

    package init(
        operation: DispatchedOperation,
        input: Payload,
        isCancelled: @escaping @Sendable () -> Bool,
        cancel: @escaping @Sendable () -> Void,
        log: @escaping @Sendable (String) -> Void,
        report: @escaping @Sendable (ReportedProgress) -> Void = { _ in },
        ask: @escaping Asker
    ) {
        self.operation = operation
        self.input = input
        self.isCancelled = isCancelled
        self.cancel = cancel
        self.log = log
        self.report = report
        self.ask = ask
    }
}

/// How the code of a kind ended.
package enum InvocationEnd: Hashable, Sendable {
    case returned(Payload)
    /// The code says that it stopped because it was cancelled. Believed only if it was cancelled.
    case stopped
    case failed(OperationError)
    /// A requirement of the operation is not met yet: it gives its slot back and runs again after
    /// this time or later. This is not a failure, and `retry` does not count it.
    case notYet(after: Duration)
}

/// The kinds that a worker can run, and the resources to run them.
package struct RegisteredKinds: Sendable {
    /// For a worker that runs only commands and waits.
    package static let none = RegisteredKinds([], threads: nil, program: nil)

    /// Only looked up.
    private let byName: [String: RegisteredKind]
    private let lookUp: (@Sendable (String) -> RegisteredKind?)?
    /// Where their code runs; `nil`: on the cooperative threads, which it must not block.
    let threads: OperationThreads?
    /// Runs one operation in a process of its own; `nil`: no operation is run in this way.
    let program: ChildProgram?

    /// The clock for waits and timeouts.
    package var time = TimeSource.system

    /// If two kinds have the same name, the last one counts.
    package init(
        _ kinds: [RegisteredKind],
        threads: OperationThreads?,
        program: ChildProgram?
    ) {
        byName = Dictionary(kinds.map { ($0.name, $0) }) { _, last in last }
        lookUp = nil
        self.threads = threads
        self.program = program
    }

    /// For a worker that runs any kind: `lookUp` is called on any thread when an operation starts,
    /// and must return at once; `nil` fails the operation as `kindUnknown`.
    ///
    /// - Parameter program: Runs one operation in a process of its own, where `lookUp` is not used.
    package init(
        threads: OperationThreads?,
        program: ChildProgram? = nil,
        lookUp: @escaping @Sendable (String) -> RegisteredKind?
    ) {
        byName = [:]
        self.lookUp = lookUp
        self.threads = threads
        self.program = program
    }

    /// Reads the elements of operations that are repeated for an output; `nil`: the worker adds
    /// none.
    package var elements: (any OutputElementReader)?

    subscript(name: String) -> RegisteredKind? { byName[name] ?? lookUp?(name) }

    /// Whether kinds that are not among `names` may be known.
    package var areLookedUp: Bool { lookUp != nil }

    /// The names of these kinds and of the built-in ones, sorted.
    package var names: [String] {
        let builtIn = Work.builtInKinds.filter { $0 != Work.forEachKind || elements != nil }
        return (builtIn + byName.keys).sorted()
    }
}
