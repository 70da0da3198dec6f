#if Cluster
public import Logging
public import OperonModel
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
/// **Triggers.** It watches files, pipes, signals and processes of its machine for triggers that
/// ask for a worker with its labels (`docs/TRIGGERS.md`). A trigger on SIGHUP, SIGUSR1 or SIGUSR2
/// takes that signal from the program.
///
/// **Children.** An operation whose worker died while running it runs next in its own process, so
/// that it cannot take other operations down with it. An operation that holds a key also runs in
/// its own process, which must be ended when the right to the key ends. For this the worker starts
/// its own program again, with the same arguments; there, ``run()`` runs that one operation and
/// ends the process. Code before the call of `run()` also runs in such a child: see ``isChild``. A
/// child that is asked to stop is killed after ten seconds.
public struct Worker: Service {
    enum Connection: Sendable {
        case broker(String?)
        case inProcess(InProcessHub)
    }

    var connection: Connection
    var prefix: String
    var trust: String?
    var name: String?
    var slots: Int
    var queues: [String]
    var resources: ResourceAmounts = []
    var labels: [String: String] = [:]
    var drainTimeout: Duration
    /// How long operations may take to end once they are asked to stop after the drain timeout.
    var grace = Duration.seconds(10)
    var handlesSignals: Bool
    var logger: Logger
    var kinds: [OperationKind]
    var child: ChildProgram?

    /// Creates a worker that serves when it is run.
    ///
    /// - Parameters:
    ///   - broker: The broker's URL: `amqp://user:password@host:5672/vhost`, or `amqps://` for TLS.
    ///     `nil`: the value of the environment variable `OPERON_BROKER`, which keeps the password
    ///     hidden.
    ///   - prefix: The beginning of all queue and exchange names; must be the coordinator's prefix.
    ///   - trust: The token with which it joins, as “operon trust token” prints it, or the path of
    ///     a file with it, or “none”: then messages on the broker are neither secret nor authentic.
    ///     `nil`: the value of the environment variable `OPERON_TRUST`, else the token of this
    ///     user's own coordinator.
    ///   - name: The name that is shown to people, 1 to 256 bytes. `nil`: the host name and the
    ///     process id.
    ///   - slots: How many operations it runs at once, 1 to 4,096. `nil`: one per processor.
    ///   - queues: The operation queues it serves; empty: all.
    ///   - resources: What it offers to operations that ask for resources. It offers the
    ///     processors, memory and graphics processors that its machine lets it use by itself; an
    ///     amount given here replaces or adds to them. All together at most 16, each 1 to 2⁵⁰ in
    ///     its base unit, and at most 4,096 graphics processors.
    ///   - labels: Its labels by name, besides `arch`, `host`, `name` and `os`, which it has by
    ///     itself, or instead of them. All together at most 64; values have 1 to 256 bytes. For
    ///     resources or labels out of bounds, ``run()`` throws ``OperonError`` with the code
    ///     `invalid`.
    ///   - drainTimeout: How long running operations have to finish when the worker drains, at most
    ///     a week.
    ///   - handlesSignals: Whether SIGTERM and SIGINT drain the worker, and a second signal ends
    ///     the process at once. Turn it off in a `ServiceGroup`, which handles signals itself.
    ///   - logger: Receives messages for operators.
    ///   - kinds: The kinds it runs besides commands and waits: `.on(Resize.self)` for each type.
    public init(
        broker: String? = nil,
        prefix: String = "operon.",
        trust: String? = nil,
        name: String? = nil,
        slots: Int? = nil,
        queues: [String] = [],
        resources: ResourceAmounts = [],
        labels: [String: String] = [:],
        drainTimeout: Duration = .seconds(30),
        handlesSignals: Bool = true,
        logger: Logger = Logger(label: "operon.worker"),
        _ kinds: OperationKind...
    ) {
        connection = .broker(broker)
        self.prefix = prefix
        self.trust = trust
        self.name = name
        self.slots = slots ?? OwnProcess.processorCount
        self.queues = queues
        self.resources = resources
        self.labels = labels
        self.drainTimeout = drainTimeout
        self.handlesSignals = handlesSignals
        self.logger = logger
        self.kinds = kinds
    }

    /// Creates any worker, for tests.
    ///
    /// - Parameters:
    ///   - hub: The connection that it shares with its coordinator; `nil`: the broker.
    ///   - child: The program that it starts for an operation that needs its own process; `nil`:
    ///     this program.
    package init(
        hub: InProcessHub?,
        broker: String? = nil,
        prefix: String = "",
        trust: String? = nil,
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
        self.trust = trust
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
    /// run a worker checks this before it does anything that must not happen twice, such as
    /// listening on a port. In a child it goes straight to ``run()``.
    public static var isChild: Bool { ChildWorker.isChild }

    /// Serves until it has drained.
    ///
    /// While it drains, the worker takes no new operations, gives back operations that have not
    /// started, and gives running operations the `drainTimeout` to finish. Operations that have not
    /// finished by then are asked to stop and given back, to run elsewhere. Code that ignores this
    /// is abandoned after another fifteen seconds. The worker drains on graceful shutdown, if it is
    /// a service of a `ServiceGroup`, and on the first signal. It waits indefinitely for a broker
    /// or coordinator that does not answer.
    ///
    /// From the start of this call, no other process of the same user can read this program's
    /// memory and environment, and no core file contains them. If the URL of the broker is taken
    /// from `OPERON_BROKER`, the variable is empty afterwards, so that operations cannot read it.
    ///
    /// Cancelling the task ends everything at once. Code that ignores the cancellation of its task
    /// goes on until the process ends.
    ///
    /// - Throws: ``OperonError`` if the worker's configuration is invalid, or the broker refuses
    ///   it; `CancellationError` if the task was cancelled.
    public func run() async throws {
        if Worker.isChild { try await serveAsChild() }
        try check()
        try await serve()
    }

    /// The `main` of a program that is only a worker. Calls ``run()``; if it throws, writes the
    /// reason to standard error as one line and ends the process with code 1.
    public func main() async {
        do {
            try await run()
        } catch {
            OwnProcess.end(failed: "\(OwnProcess.programName): \(error)")
        }
    }
}
#endif
