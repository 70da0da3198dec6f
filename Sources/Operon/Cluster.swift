public import Logging
internal import OperonModel
internal import OperonPorts
package import OperonRuntime
public import ServiceLifecycle
internal import Synchronization

/// Where operations run: in this process, in this process with a database under it, or on the
/// workers of a coordinator somewhere else.
///
/// ```swift
/// let cluster = Cluster.inProcess
/// let cluster = Cluster.embedded(store: "jobs.db")
/// let cluster = Cluster.remote()
/// ```
///
/// Everything else of a program stays the same. It connects when it is first used.
public final class Cluster: Sendable {
    private enum Connection {
        case none
        case connecting(Task<Session, any Error>)
        case connected(Session)
        case closed
    }

    private let connection = Mutex(Connection.none)
    private let makeBackend: @Sendable () throws -> any ClusterBackend

    init(_ makeBackend: @escaping @Sendable () throws -> any ClusterBackend) {
        self.makeBackend = makeBackend
    }

    deinit {
        // Nobody can ask anything any more; what was added runs on where it is kept elsewhere.
        let session: Session? = connection.withLock { connection in
            guard case .connected(let session) = connection else { return nil }
            return session
        }
        if let session { Task { await session.close(within: .zero) } }
    }

    // MARK: - Scopes

    /// Says what is wrong, and nothing else.
    public static var warnings: Logger {
        var logger = Logger(label: "operon")
        logger.logLevel = .warning
        return logger
    }

    /// This process, shared by everything in it: as many operations at once as it has processors.
    /// What waits is lost with the process.
    public static let inProcess = Cluster.inProcess()

    /// This process, apart from others: for a part of a program, or a test.
    ///
    /// - Parameters:
    ///   - slots: How many operations run at once, 1 to 4,096; `nil`: one per processor.
    ///   - keep: How much of what has ended is kept. Handles keep their outcomes and values
    ///     themselves.
    ///   - logger: Gets what an operator wants to know.
    public static func inProcess(
        slots: Int? = nil,
        keep: Retention = .inMemory,
        logger: Logger = Cluster.warnings
    ) -> Cluster {
        Cluster { LocalBackend(store: nil, slots: slots, keep: keep, logger: logger) }
    }

    /// This process, with a database that has whatever was added: what has not ended goes on in
    /// the next life of the program, as soon as its types are known there (``register(_:)``, or
    /// another operation of the type).
    ///
    /// - Parameters:
    ///   - store: The path of the database. It is made if there is none, and held by one process
    ///     at a time.
    ///   - slots: How many operations run at once, 1 to 4,096; `nil`: one per processor.
    ///   - keep: How much of what has ended is kept, in this life and the next ones.
    ///   - logger: Gets what an operator wants to know.
    public static func embedded(
        store: String,
        slots: Int? = nil,
        keep: Retention = .onDisk,
        logger: Logger = Cluster.warnings
    ) -> Cluster {
        Cluster { LocalBackend(store: store, slots: slots, keep: keep, logger: logger) }
    }

    /// The workers of a coordinator.
    ///
    /// - Parameters:
    ///   - url: `https://host:7350`, `http://…` for this machine, or `unix:PATH`; `nil`: the socket of this user's
    ///     coordinator on this machine.
    ///   - token: The access token. Sent only over HTTPS, or to this machine; `nil`: for this
    ///     machine, the token that coordinators of this user ask for, if they made one.
    ///   - certificateAuthority: A file in PEM with the certificates that may vouch for the
    ///     coordinator's; `nil`: those of the system.
    ///   - patience: How long a coordinator that is away is tried again, before a call throws.
    ///   - logger: Gets what an operator wants to know.
    public static func remote(
        _ url: String? = nil,
        token: String? = nil,
        certificateAuthority: String? = nil,
        patience: Duration = .seconds(60),
        logger: Logger = Cluster.warnings
    ) -> Cluster {
        Cluster {
            try RemoteBackend(
                url: url,
                token: token,
                certificateAuthority: certificateAuthority,
                patience: patience,
                logger: logger
            )
        }
    }

    /// This process, by a clock that somebody moves: for tests of programs.
    package static func local(
        store: String? = nil,
        slots: Int,
        keep: Retention,
        time: TimeSource,
        logger: Logger
    ) -> Cluster {
        Cluster { LocalBackend(store: store, slots: slots, keep: keep, time: time, logger: logger) }
    }

    /// What is behind it; `nil`: it is elsewhere.
    package var inside: InProcessCluster? {
        get async throws { (try await session().backend as? LocalBackend)?.cluster }
    }

    /// See `Session.earlyCount`.
    package var earlyCount: Int { get async throws { try await session().earlyCount } }

    // MARK: - Kinds

    /// Makes types of operations known to the workers in this process: to go on with what an
    /// embedded database has of a life before, for what running operations add, and for what is
    /// added by name. A type that is added from this program is known without. Workers elsewhere
    /// have their own: see ``Worker``.
    ///
    /// - Throws: ``OperonError``, if it cannot connect.
    public func register(_ kinds: OperationKind...) async throws {
        let session = try await session()
        for kind in kinds { session.backend.register(kind) }
    }

    // MARK: - Life

    /// Connects, if that was not done before.
    ///
    /// - Throws: ``OperonError``: the store is held or damaged, the address makes no sense.
    public func connect() async throws { _ = try await session() }

    /// Ends it: nothing can be asked any more. What waits in a process without a database is lost;
    /// elsewhere it goes on without this program.
    ///
    /// - Parameter time: How long operations and blocks that run in this process have to finish;
    ///   then they are asked to stop. What ignores that is left behind after another fifteen
    ///   seconds. A block that calls this itself waits for itself as long.
    public func close(within time: Duration = .seconds(10)) async {
        let before = connection.withLock { connection in
            let before = connection
            connection = .closed
            return before
        }
        switch before {
        case .none, .closed: return
        case .connecting(let task):
            if let session = try? await task.value { await session.close(within: time) }
        case .connected(let session): await session.close(within: time)
        }
    }

    func session() async throws -> Session {
        let task: Task<Session, any Error> = try connection.withLock { connection in
            switch connection {
            case .closed: throw OperonError(.closed, "The cluster was closed.")
            case .connected(let session): return Task { session }
            case .connecting(let task): return task
            case .none:
                let makeBackend = makeBackend
                // Not the caller's child: others may wait for it as well.
                let task = Task {
                    let session = Session(try makeBackend())
                    try await session.start()
                    return session
                }
                connection = .connecting(task)
                return task
            }
        }
        do {
            let session = try await task.value
            connection.withLock { connection in
                if case .connecting(let current) = connection, current == task {
                    connection = .connected(session)
                }
            }
            return session
        } catch {
            connection.withLock { connection in
                // The next call tries again.
                if case .connecting(let current) = connection, current == task {
                    connection = .none
                }
            }
            throw error
        }
    }

    /// The session, if it was connected before: without a suspension.
    var sessionIfConnected: Session? {
        connection.withLock { connection in
            guard case .connected(let session) = connection else { return nil }
            return session
        }
    }

    /// Asks the coordinator.
    func ask<Answer: Sendable>(
        _ question: (any CoordinatorClient) async throws -> Answer
    ) async throws -> Answer {
        try await session().backend.asked(question)
    }
}

extension Cluster {
    /// An operation that is there already, added by this program or another one.
    ///
    /// - Parameters:
    ///   - id: ``AnyOperationHandle/id``.
    ///   - type: What it is.
    /// - Throws: ``OperonError`` with the code `notFound` (it is not kept any more), `invalid` (it
    ///   is of another kind) or `undecodable`; or if the coordinator cannot be asked.
    public func handle<Op: Operation>(
        _ id: OperationID,
        of type: Op.Type
    ) async throws -> OperationHandle<Op> {
        let selector = OperationSelector(id)
        let operation = try await ask { try await $0.operation(selector) }.operation
        guard operation.kind == Op.kind else {
            let message = "Operation \(id) is of the kind “\(operation.kind)”, not “\(Op.kind)”."
            throw OperonError(.invalid, message)
        }
        let input = try await ask { try await $0.input(of: selector) } ?? .empty
        let value: Op
        do throws(PayloadError) {
            value = try input.decoded(as: Op.self)
        } catch {
            let why = "The input of operation \(id) is no \(Op.kind): \(error.message)."
            throw OperonError(.undecodable, why)
        }
        let queue = OperationQueue(name: operation.queue, cluster: self)
        let handle = OperationHandle(value, id, name: operation.name, in: queue)
        try await follow(handle, id)
        return handle
    }

    /// Has the handle of an operation that is there already told of its end.
    func follow(_ handle: AnyOperationHandle, _ id: OperationID) async throws {
        let selector = OperationSelector(id)
        let before = try await ask { try await $0.operation(selector) }.operation
        if let ended = EndedOperation(before) {
            handle.finish(ended.outcome, output: ended.output)
            return
        }
        let session = try await session()
        try await session.follow(handle, id)
        // Behind that: it may have ended meanwhile.
        let after = try await ask { try await $0.operation(selector) }.operation
        if let ended = EndedOperation(after) { session.deliver([ended]) }
    }
}

extension Cluster: Service {
    /// Serves until graceful shutdown, or until its task is cancelled; then closes.
    public func run() async throws {
        try await connect()
        let ends = AsyncStream<Never>.makeStream()
        await withTaskCancellationOrGracefulShutdownHandler {
            for await _ in ends.stream {}
        } onCancelOrGracefulShutdown: {
            ends.continuation.finish()
        }
        await close()
    }
}
