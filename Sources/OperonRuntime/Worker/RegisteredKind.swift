package import OperonCore
package import OperonModel

/// Code that a worker runs for a kind of operation.
package struct RegisteredKind: Sendable {
    /// What operations name it by; 1…256 bytes.
    package let name: String
    /// Runs one attempt to its end. How that went is a value: it never throws.
    package let run: @Sendable (Invocation) async -> InvocationEnd

    package init(name: String, run: @escaping @Sendable (Invocation) async -> InvocationEnd) {
        self.name = name
        self.run = run
    }
}

/// What the code of a kind is given for one attempt.
package struct Invocation: Sendable {
    /// Which operation, which attempt, and the outputs of its dependencies.
    package let operation: DispatchedOperation
    /// The operation's own input.
    package let input: Payload
    /// Whether it was asked to stop.
    package let isCancelled: @Sendable () -> Bool
    /// Asks it to stop, by its own wish.
    package let cancel: @Sendable () -> Void
    /// Appends to the operation's log.
    package let log: @Sendable (String) -> Void
    /// Says how far it is; costs little, however often.
    package let report: @Sendable (ReportedProgress) -> Void
    /// Asks the coordinator something; returns when the answer has come.
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
    /// It says that it stopped because it was cancelled. Believed only if it was.
    case stopped
    case failed(OperationError)
    /// What it needs does not hold yet: its slot is given back, and it is run again when this has
    /// passed, or later. That is no failure, and `retry` does not count it.
    case notYet(after: Duration)
}

/// The kinds of a worker, and what it takes to run them.
package struct RegisteredKinds: Sendable {
    /// Of a worker that runs commands and waits only.
    package static let none = RegisteredKinds([], threads: nil, program: nil)

    /// Only looked up.
    private let byName: [String: RegisteredKind]
    private let lookUp: (@Sendable (String) -> RegisteredKind?)?
    /// Where their code runs; `nil`: on the cooperative threads, where it must not block.
    let threads: OperationThreads?
    /// Runs one operation in a process of its own; `nil`: nothing is ever run so.
    let program: ChildProgram?

    /// What waits and timeouts are told by.
    package var time = TimeSource.system

    /// Of two kinds with one name, the last counts.
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

    /// Of a worker that runs any kind: `lookUp` is asked when an operation of it starts, on any
    /// thread, and must answer at once; `nil` fails the operation as `kindUnknown`.
    ///
    /// - Parameter program: runs one operation in a process of its own, where nothing is looked up.
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

    subscript(name: String) -> RegisteredKind? { byName[name] ?? lookUp?(name) }

    /// Whether a kind may be known that is not among `names`.
    package var areLookedUp: Bool { lookUp != nil }

    /// Theirs and the built-in ones, sorted.
    package var names: [String] { (Work.builtInKinds + byName.keys).sorted() }
}
