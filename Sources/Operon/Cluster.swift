public import Logging
public import OperonModel
internal import OperonPorts
package import OperonRuntime
internal import Synchronization

/// The place where operations run: this process, this process with a database, or the workers of a
/// remote coordinator.
///
/// ```swift
/// let cluster = Cluster.inProcess
/// let cluster = Cluster.embedded(store: "jobs.db")
/// let cluster = Cluster.remote()
/// ```
///
/// The rest of the program stays the same. A cluster connects when it is first used.
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
        // Nobody can use the cluster any more; operations of a remote cluster keep running.
        let session: Session? = connection.withLock { connection in
            guard case .connected(let session) = connection else { return nil }
            return session
        }
        if let session { Task { await session.close(within: .zero) } }
    }

    // MARK: - Scopes

    /// The default logger: warnings and errors only.
    public static var warnings: Logger {
        var logger = Logger(label: "operon")
        logger.logLevel = .warning
        return logger
    }

    /// A cluster in this process that all code in it shares. It runs as many operations at once as
    /// the machine has processors. Waiting operations are lost when the process ends.
    public static let inProcess = Cluster.inProcess()

    /// A separate cluster in this process: for a part of a program, or for a test.
    ///
    /// - Parameters:
    ///   - slots: How many operations run at once, 1 to 4,096; `nil`: one per processor.
    ///   - keep: The retention of finished operations. Handles keep their outcomes and values
    ///     themselves.
    ///   - resources: What it offers to operations that ask for resources, besides the processors,
    ///     memory and graphics processors that its machine lets it use, or instead of them.
    ///   - labels: Its labels by name, besides `arch`, `host`, `name` and `os`, or instead of them.
    ///   - logger: Receives messages for operators.
    public static func inProcess(
        slots: Int? = nil,
        keep: Retention = .inMemory,
        resources: ResourceAmounts = [],
        labels: [String: String] = [:],
        logger: Logger = Cluster.warnings
    ) -> Cluster {
        let offer = LocalBackend.Offer(resources: resources, labels: labels)
        return Cluster {
            LocalBackend(store: nil, slots: slots, offer: offer, keep: keep, logger: logger)
        }
    }

    /// A cluster in this process with a clock that the caller moves, for tests of programs.
    package static func local(
        store: String? = nil,
        slots: Int,
        keep: Retention,
        time: TimeSource,
        logger: Logger
    ) -> Cluster {
        Cluster { LocalBackend(store: store, slots: slots, keep: keep, time: time, logger: logger) }
    }

    /// The coordinator in this process, and its client.
    package struct EmbeddedCoordinator: Sendable {
        package let host: CoordinatorHost
        package let client: LocalCoordinator
        package var service: CoordinatorService { host.service }
    }

    /// `nil` if the cluster is remote.
    package var embedded: EmbeddedCoordinator? {
        get async throws { (try await session().backend as? LocalBackend)?.embedded }
    }

    /// See `Session.earlyCount`.
    package var earlyCount: Int { get async throws { try await session().earlyCount } }

    // MARK: - Kinds

    /// Makes operation types known to the worker in this process. This is needed to resume the
    /// operations that an embedded database has from an earlier run, for operations that running
    /// operations add, and for operations that are added by name. A type that this program adds is
    /// registered automatically. Workers elsewhere have their own types: see ``Worker``.
    ///
    /// - Throws: ``OperonError`` if the cluster cannot connect.
    public func register(_ kinds: OperationKind...) async throws {
        let session = try await session()
        for kind in kinds { session.backend.register(kind) }
    }

    // MARK: - Closing

    /// Connects, if the cluster is not connected yet.
    ///
    /// - Throws: ``OperonError`` if the database is in use or damaged, or the address is invalid.
    public func connect() async throws { _ = try await session() }

    /// Closes the cluster: no further call reaches it. Waiting operations in a process without a
    /// database are lost; those of a remote cluster go on without this program.
    ///
    /// - Parameter time: How long operations and blocks that run in this process have to finish;
    ///   then they are asked to stop. Code that ignores the request is abandoned after another
    ///   fifteen seconds. A block that calls this method waits for itself that long.
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

    // MARK: - Programs

    /// The `main` of a program that uses this cluster. Runs `body`, then closes the cluster. If
    /// `body` throws, writes the reason to standard error as one line and ends the process at once,
    /// with code 1. Swift itself would show a backtrace of an error that leaves `main`.
    public func main(_ body: () async throws -> Void) async {
        do {
            try await body()
        } catch {
            OwnProcess.end(failed: "\(OwnProcess.programName): \(error)")
        }
        await close()
    }

    func session() async throws -> Session {
        let task: Task<Session, any Error> = try connection.withLock { connection in
            switch connection {
            case .closed: throw OperonError(.closed, "The cluster was closed.")
            case .connected(let session): return Task { session }
            case .connecting(let task): return task
            case .none:
                let makeBackend = makeBackend
                // Not a child of the caller's task: others may wait for it as well.
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
                // The next call connects again.
                if case .connecting(let current) = connection, current == task {
                    connection = .none
                }
            }
            throw error
        }
    }

    /// The session, if the cluster is connected. Never suspends.
    var sessionIfConnected: Session? {
        connection.withLock { connection in
            guard case .connected(let session) = connection else { return nil }
            return session
        }
    }

    /// Sends a request to the coordinator.
    func ask<Answer: Sendable>(
        _ question: (any CoordinatorClient) async throws -> Answer
    ) async throws -> Answer {
        try await session().backend.asked(question)
    }
}

extension Cluster {
    /// Returns a handle for an existing operation, added by this program or another one.
    ///
    /// - Parameters:
    ///   - id: The operation's ``AnyOperationHandle/id``.
    ///   - type: The type of the operation.
    /// - Throws: ``OperonError`` with the code `notFound` (it was dropped), `invalid` (it is of
    ///   another kind) or `undecodable`; or if the request to the coordinator fails.
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

    /// Notifies the handle of an existing operation of its outcome.
    func follow(_ handle: AnyOperationHandle, _ id: OperationID) async throws {
        let selector = OperationSelector(id)
        let before = try await ask { try await $0.operation(selector) }.operation
        if let ended = EndedOperation(before) {
            handle.finish(ended.outcome, output: ended.output)
            return
        }
        let session = try await session()
        try await session.follow(handle, id)
        // Asked again once it is followed: it may have finished in between.
        let after = try await ask { try await $0.operation(selector) }.operation
        if let ended = EndedOperation(after) { session.deliver([ended]) }
    }
}
