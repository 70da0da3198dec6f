#if Cluster
public import Logging
internal import OperonModel
public import ServiceLifecycle

// Clusters that need a database, a coordinator elsewhere, or a service group.
extension Cluster {
    /// A cluster in this process with a database that stores every operation added. The next run of
    /// the program resumes unfinished operations as soon as it knows their types (through
    /// ``register(_:)``, or by adding another operation of the type).
    ///
    /// - Parameters:
    ///   - store: The path of the database. It is created if there is none; only one process can
    ///     open it at a time.
    ///   - slots: How many operations run at once, 1 to 4,096; `nil`: one per processor.
    ///   - keep: The retention of finished operations, in this run of the program and the next
    ///     ones.
    ///   - resources: What it offers to operations that ask for resources, besides the processors,
    ///     memory and graphics processors that its machine lets it use, or instead of them.
    ///   - labels: Its labels by name, besides `arch`, `host`, `name` and `os`, or instead of them.
    ///   - logger: Receives messages for operators.
    public static func embedded(
        store: String,
        slots: Int? = nil,
        keep: Retention = .onDisk,
        resources: ResourceAmounts = [],
        labels: [String: String] = [:],
        logger: Logger = Cluster.warnings
    ) -> Cluster {
        let offer = LocalBackend.Offer(resources: resources, labels: labels)
        return Cluster {
            LocalBackend(store: store, slots: slots, offer: offer, keep: keep, logger: logger)
        }
    }

    /// The workers of a coordinator in another process, on this machine or elsewhere.
    ///
    /// - Parameters:
    ///   - url: `https://host:7350`, `http://…` for this machine, or `unix:PATH`; `nil`: this
    ///     user's coordinator on this machine, through its socket.
    ///   - token: The access token. Sent only over HTTPS, or to this machine; `nil`: for this
    ///     machine, the token that this user's coordinators ask for, if they created one.
    ///   - certificateAuthority: A PEM file with the certificates trusted to sign the coordinator's
    ///     certificate; `nil`: those of the system.
    ///   - patience: How long a call retries while the coordinator does not answer, before it
    ///     throws.
    ///   - logger: Receives messages for operators.
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
}

extension Cluster: Service {
    /// Serves until graceful shutdown or until its task is cancelled; then closes the cluster.
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
#else
public import Logging
public import OperonModel

// What a program without the trait is told.
extension Cluster {
    @available(
        *,
        unavailable,
        message: "a database needs the trait “Cluster” of the package operon"
    )
    public static func embedded(
        store: String,
        slots: Int? = nil,
        keep: Retention = .onDisk,
        resources: ResourceAmounts = [],
        labels: [String: String] = [:],
        logger: Logger = Cluster.warnings
    ) -> Cluster { .inProcess }

    @available(
        *,
        unavailable,
        message: "other coordinators need the trait “Cluster” of the package operon"
    )
    public static func remote(
        _ url: String? = nil,
        token: String? = nil,
        certificateAuthority: String? = nil,
        patience: Duration = .seconds(60),
        logger: Logger = Cluster.warnings
    ) -> Cluster { .inProcess }
}

@available(*, unavailable, message: "a worker needs the trait “Cluster” of the package operon")
public struct Worker {
    public init(_ kinds: OperationKind...) {}
}
#endif
