internal import OperonModel
internal import OperonRuntime

/// A kind of operation that a ``Worker`` knows how to run.
public struct OperationKind: Sendable {
    /// What graphs call it.
    public let name: String
    private let makeRegistered: @Sendable (KindRegistry?) -> RegisteredKind

    /// For a worker elsewhere.
    var registered: RegisteredKind { makeRegistered(nil) }

    /// For a worker in this process, which learns the kinds that its operations add.
    func registered(in registry: KindRegistry) -> RegisteredKind { makeRegistered(registry) }

    /// The operations of a type, whatever they return.
    init<Op: Operation>(any type: Op.Type) {
        name = Op.kind
        makeRegistered = { registry in
            RegisteredKind(name: Op.kind) { await Self.run(Op.self, $0, registry) }
        }
    }

    private static func run<Op: Operation>(
        _ type: Op.Type,
        _ invocation: Invocation,
        _ registry: KindRegistry?
    ) async -> InvocationEnd {
        if let version = invocation.input.version, !Op.supportedVersions.contains(version) {
            let known = Op.supportedVersions
            let range =
                known.count == 1
                ? "\(known.lowerBound)" : "\(known.lowerBound) to \(known.upperBound)"
            return .failed(.versionUnsupported("\(version) of \(Op.kind) (known: \(range))"))
        }
        let operation: Op
        do throws(PayloadError) {
            operation = try invocation.input.decoded(as: Op.self)
        } catch {
            let why = "the input is no \(Op.kind): \(error.message)"
            return .failed(.undecodable(why))
        }
        return await Self.run(operation, OperationContext(invocation, registry: registry))
    }

    private static func run<Op: Operation>(
        _ operation: Op,
        _ context: OperationContext
    ) async -> InvocationEnd {
        do {
            return .returned(try Payload(output: try await operation.main(context)))
        } catch is CancellationError {
            return .stopped
        } catch {
            return .failed(OperationError(thrown: error))
        }
    }

    /// The operations of a type, whose output is sent as JSON.
    public static func on<Op: Operation>(
        _ type: Op.Type
    ) -> OperationKind where Op.Output: Codable {
        OperationKind(any: type)
    }

    /// The operations of a type that return nothing.
    @_disfavoredOverload
    public static func on<Op: Operation>(
        _ type: Op.Type
    ) -> OperationKind where Op.Output == Void {
        OperationKind(any: type)
    }
}
