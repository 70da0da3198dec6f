public import Logging
internal import OperonModel
package import OperonRuntime
public import ServiceLifecycle

/// Runs operations that a coordinator publishes: those of the kinds it is given, and commands and
/// waits.
///
/// A whole program:
///
/// ```swift
/// import Operon
///
/// @main struct Program {
///     static func main() async {
///         await Worker(broker: "amqp://broker.example/", .on(Resize.self)).main()
///     }
/// }
/// ```
///
/// **Children.** An operation whose worker died under it runs next in a process of its own, so that
/// it can take nobody else's operation with it; and so does one that holds a key, which must be
/// ended when its right to it ends. The worker starts its own program again, with the same
/// arguments, and ``run()`` serves that one operation there and ends the process. What a program
/// does before it calls `run()` happens in such a child as well: see ``isChild``. Asked to stop, a
/// child is killed after ten seconds.
public struct Worker: Service {
    enum Connection: Sendable {
        case broker(String?)
        case inProcess(InProcessHub)
    }

    var connection: Connection
    var prefix: String
    var name: String?
    var slots: Int
    var queues: [String]
    var drainTimeout: Duration
    /// How long what is asked to end when it has drained may take for it.
    var grace = Duration.seconds(10)
    var handlesSignals: Bool
    var logger: Logger
    var kinds: [OperationKind]
    var child: ChildProgram?

    /// A worker that serves when it is run.
    ///
    /// - Parameters:
    ///   - broker: Where the broker is: `amqp://user:password@host:5672/vhost`, or `amqps://` for
    ///     TLS. `nil`: what the variable `OPERON_BROKER` says, where nobody sees a password.
    ///   - prefix: Begins the names of all queues and exchanges: that of its coordinator.
    ///   - name: What people call it, 1 to 256 bytes. `nil`: the host's name and the process id.
    ///   - slots: How many operations it runs at once, 1 to 4,096. `nil`: one per processor.
    ///   - queues: The operation queues it serves; empty: all.
    ///   - drainTimeout: How long running operations have to finish when it drains.
    ///   - handlesSignals: Whether SIGTERM and SIGINT drain it, and a second one of them ends the
    ///     process at once. Not wanted in a `ServiceGroup`, which handles signals itself.
    ///   - logger: Gets what an operator wants to know.
    ///   - kinds: What it knows besides commands and waits: `.on(Resize.self)` for each type.
    public init(
        broker: String? = nil,
        prefix: String = "operon.",
        name: String? = nil,
        slots: Int? = nil,
        queues: [String] = [],
        drainTimeout: Duration = .seconds(30),
        handlesSignals: Bool = true,
        logger: Logger = Logger(label: "operon.worker"),
        _ kinds: OperationKind...
    ) {
        connection = .broker(broker)
        self.prefix = prefix
        self.name = name
        self.slots = slots ?? OwnProcess.processorCount
        self.queues = queues
        self.drainTimeout = drainTimeout
        self.handlesSignals = handlesSignals
        self.logger = logger
        self.kinds = kinds
    }

    /// Any worker, for tests.
    ///
    /// - Parameters:
    ///   - hub: What it shares with its coordinator; `nil`: the broker.
    ///   - child: What it starts for an operation that needs a process of its own; `nil`: this
    ///     program.
    package init(
        hub: InProcessHub?,
        broker: String? = nil,
        prefix: String = "",
        name: String,
        slots: Int,
        drainTimeout: Duration = .seconds(30),
        grace: Duration = .seconds(10),
        logger: Logger,
        child: ChildProgram? = nil,
        kinds: [OperationKind]
    ) {
        connection = hub.map { .inProcess($0) } ?? .broker(broker)
        self.prefix = prefix
        self.name = name
        self.slots = slots
        queues = []
        self.drainTimeout = drainTimeout
        self.grace = grace
        handlesSignals = false
        self.logger = logger
        self.kinds = kinds
        self.child = child
    }

    /// Whether a worker started this process to run one operation. A program that does more than
    /// work asks before it does what must not be done twice, listening on a port for example, and
    /// goes straight to ``run()`` in a child.
    public static var isChild: Bool { ChildWorker.isChild }

    /// Serves until it has drained.
    ///
    /// Draining, it takes nothing more, gives back what has not started, and finishes what runs
    /// within the `drainTimeout`; what is not finished then is asked to stop and given back to run
    /// elsewhere. Code that ignores that is left behind after another quarter of a minute. It
    /// drains on graceful shutdown, as a service of a `ServiceGroup`, and on the first signal. It
    /// waits for a broker or coordinator that is away, for ever.
    ///
    /// From its start on no other process of the same user can read this program's memory and
    /// environment, and no core file has them. If the URL of the broker is taken from
    /// `OPERON_BROKER`, the variable is empty afterwards, so that operations cannot read it.
    ///
    /// Cancelling the task ends everything at once. Code that ignores that its task is cancelled
    /// goes on behind it until the process ends.
    ///
    /// - Throws: ``OperonError`` if it cannot be used as it was made, or the broker refuses it;
    ///   `CancellationError` if its task was cancelled.
    public func run() async throws {
        if Worker.isChild { try await serveAsChild() }
        try check()
        try await serve()
    }

    /// The `main` of a program that is nothing but a worker: ``run()``; and where that throws, the
    /// reason goes to standard error, as one line, and the process ends with code 1.
    public func main() async {
        do {
            try await run()
        } catch {
            OwnProcess.end(failed: "\(OwnProcess.programName): \(error)")
        }
    }
}
