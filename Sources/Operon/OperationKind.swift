internal import OperonModel
internal import OperonRuntime

/// A kind of operation that a ``Worker`` knows how to run.
public struct OperationKind: Sendable {
    /// What graphs call it.
    public let name: String
    let registered: RegisteredKind

    private init<Op: Operation>(
        _ type: Op.Type,
        encode: @escaping @Sendable (Op.Output) throws -> Payload
    ) {
        name = Op.kind
        registered = RegisteredKind(name: Op.kind) { invocation in
            let operation: Op
            do throws(PayloadError) {
                operation = try invocation.input.decoded(as: Op.self)
            } catch {
                let why = "the input is no \(Op.kind): \(error.message)"
                return .failed(.undecodable(why))
            }
            do {
                let output = try await operation.main(OperationContext(invocation))
                return .returned(try encode(output))
            } catch is CancellationError {
                return .stopped
            } catch {
                return .failed(OperationError(thrown: error))
            }
        }
    }

    /// The operations of a type, whose output is sent as JSON.
    public static func on<Op: Operation>(
        _ type: Op.Type
    ) -> OperationKind where Op.Output: Codable {
        OperationKind(type) { try Payload(encoding: $0) }
    }

    /// The operations of a type that return nothing.
    @_disfavoredOverload
    public static func on<Op: Operation>(
        _ type: Op.Type
    ) -> OperationKind where Op.Output == Void {
        OperationKind(type) { _ in .empty }
    }
}
