internal import OperonModel

/// Something that has to hold for an operation to run, beside its dependencies.
///
/// An operation lists its ``Operation/conditions``. The worker that is to run it asks them in their
/// order, before ``Operation/main(_:)``, in each attempt; the first that does not hold decides. A
/// condition that has to be asked in the submitting program is a local block that the operation
/// depends on: ``LocalOperationHandle``.
public protocol Condition: Sendable {
    /// What the error of an operation says that failed for its sake.
    var name: String { get }

    /// An operation that makes it true, and that is added with the operation that has this
    /// condition, which waits for it; `nil`: none.
    func dependency() -> AnyOperationHandle?

    /// Whether it holds now. What it throws counts as that it failed.
    func evaluate(_ context: OperationContext) async throws -> ConditionResult
}

extension Condition {
    /// The name of the type.
    public var name: String { String(describing: Self.self) }

    /// None.
    public func dependency() -> AnyOperationHandle? { nil }
}

/// Whether a condition holds.
public enum ConditionResult: Hashable, Sendable, Codable {
    /// It does.
    case satisfied
    /// Not yet: the operation gives its place back and is tried again after this time, 10 ms or
    /// more.
    case notYet(recheckAfter: Duration)
    /// It does not: the operation fails with `conditionFailed`.
    case failed
}

/// Holds when another one does not.
public struct Not: Condition {
    private let condition: any Condition

    /// The opposite of a condition. “Not yet” stays “not yet”.
    public init(_ condition: some Condition) { self.condition = condition }

    /// `not …`.
    public var name: String { "not \(condition.name)" }

    /// That of the condition.
    public func dependency() -> AnyOperationHandle? { condition.dependency() }

    /// Asks the condition.
    public func evaluate(_ context: OperationContext) async throws -> ConditionResult {
        switch try await condition.evaluate(context) {
        case .satisfied: .failed
        case .failed: .satisfied
        case .notYet(let pause): .notYet(recheckAfter: pause)
        }
    }
}

/// Holds when all of several do: the first that does not decides.
public struct All: Condition {
    private let conditions: [any Condition]

    /// All of these.
    public init(_ conditions: any Condition...) { self.conditions = conditions }

    /// `all of …, …`.
    public var name: String { "all of " + conditions.map(\.name).joined(separator: ", ") }

    /// Those of all.
    public func dependency() -> AnyOperationHandle? { conditions.dependency() }

    /// Asks one after the other.
    public func evaluate(_ context: OperationContext) async throws -> ConditionResult {
        for condition in conditions {
            let result = try await condition.evaluate(context)
            if result != .satisfied { return result }
        }
        return .satisfied
    }
}

/// Holds when one of several does.
public struct AnyOf: Condition {
    private let conditions: [any Condition]

    /// One of these.
    public init(_ conditions: any Condition...) { self.conditions = conditions }

    /// `any of …, …`.
    public var name: String { "any of " + conditions.map(\.name).joined(separator: ", ") }

    /// Those of all.
    public func dependency() -> AnyOperationHandle? { conditions.dependency() }

    /// Asks one after the other. If none holds, but one may later, that one decides.
    public func evaluate(_ context: OperationContext) async throws -> ConditionResult {
        var end = ConditionResult.failed
        for condition in conditions {
            switch try await condition.evaluate(context) {
            case .satisfied: return .satisfied
            case .failed: continue
            case .notYet(let pause):
                if case .notYet(let known) = end, known <= pause { continue }
                end = .notYet(recheckAfter: pause)
            }
        }
        return end
    }
}

/// Another condition, without its operation: it is only asked.
public struct Silent: Condition {
    private let condition: any Condition

    /// Only asks this one.
    public init(_ condition: some Condition) { self.condition = condition }

    /// That of the condition.
    public var name: String { condition.name }

    /// Asks the condition.
    public func evaluate(_ context: OperationContext) async throws -> ConditionResult {
        try await condition.evaluate(context)
    }
}

extension [any Condition] {
    /// What makes all of them true.
    fileprivate func dependency() -> AnyOperationHandle? {
        let handles = compactMap { $0.dependency() }
        return handles.count < 2 ? handles.first : GroupHandle(handles)
    }

    /// The first that does not hold; `nil`: all do.
    func firstObstacle(
        _ context: OperationContext
    ) async -> (name: String, result: ConditionResult)? {
        for condition in self {
            let result: ConditionResult
            do {
                result = try await condition.evaluate(context)
            } catch {
                context.log("\(condition.name): \(error)")
                result = .failed
            }
            if result != .satisfied { return (condition.name, result) }
        }
        return nil
    }
}
