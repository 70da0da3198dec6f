internal import OperonModel
internal import OperonRuntime

/// A kind of operation that a ``Worker`` knows how to run.
public struct OperationKind: Sendable {
    /// The name that graphs use for the kind.
    public let name: String
    private let makeRegistered: @Sendable (KindRegistry?) -> RegisteredKind

    /// The kind for a worker in another process.
    var registered: RegisteredKind { makeRegistered(nil) }

    /// The kind for a worker in this process, which learns the kinds that its operations add.
    func registered(in registry: KindRegistry) -> RegisteredKind { makeRegistered(registry) }

    /// The operations of a type, whatever its output is.
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
        if let obstacle = await operation.conditions.firstObstacle(context) {
            return switch obstacle.result {
            case .notYet(let pause): .notYet(after: pause)
            case .failed, .satisfied: .failed(.conditionFailed(name: obstacle.name))
            }
        }
        do {
            return .returned(try Payload(output: try await operation.main(context)))
        } catch is CancellationError {
            return .stopped
        } catch {
            return .failed(OperationError(thrown: error))
        }
    }

    /// The operations of a type whose output is sent as JSON.
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

    /// A named block. Its input and its output are sent as JSON.
    ///
    /// - Parameters:
    ///   - name: The name for adding the block:
    ///     ``OperationQueue/addOperation(_:_:after:options:)``.
    ///   - input: The type of the input.
    ///   - block: The work: see ``Operation/main(_:)``.
    public static func block<Input: Decodable & Sendable, Output: Encodable & Sendable>(
        _ name: String,
        of input: Input.Type = Input.self,
        _ block: @escaping @Sendable (Input, OperationContext) async throws -> Output
    ) -> OperationKind {
        OperationKind(block: name) { try Payload(encoding: try await block($0, $1)) }
    }

    /// A named block that returns nothing.
    @_disfavoredOverload
    public static func block<Input: Decodable & Sendable>(
        _ name: String,
        of input: Input.Type = Input.self,
        _ block: @escaping @Sendable (Input, OperationContext) async throws -> Void
    ) -> OperationKind {
        OperationKind(block: name) {
            try await block($0, $1)
            return .empty
        }
    }

    private init<Input: Decodable & Sendable>(
        block name: String,
        _ block: @escaping @Sendable (Input, OperationContext) async throws -> Payload
    ) {
        self.name = name
        makeRegistered = { registry in
            RegisteredKind(name: name) { invocation in
                let input: Input
                do throws(PayloadError) {
                    input = try invocation.input.decoded(as: Input.self)
                } catch {
                    return .failed(.undecodable("the input is no \(Input.self): \(error.message)"))
                }
                do {
                    let context = OperationContext(invocation, registry: registry)
                    return .returned(try await block(input, context))
                } catch is CancellationError {
                    return .stopped
                } catch {
                    return .failed(OperationError(thrown: error))
                }
            }
        }
    }
}
