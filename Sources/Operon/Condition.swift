internal import OperonModel

/// A condition that must hold for an operation to run, in addition to its dependencies.
///
/// An operation lists its ``Operation/conditions``. In each attempt, the worker that is to run the
/// operation evaluates them in order, before ``Operation/main(_:)``. The first condition that does
/// not hold decides. To evaluate a condition in the submitting program, use a local block that the
/// operation depends on: ``LocalOperationHandle``.
public protocol Condition: Sendable {
    /// The name that appears in the error if the operation fails because of this condition.
    var name: String { get }

    /// An operation that makes the condition true. It is added with the operation that has this
    /// condition, which waits for it; `nil`: none.
    func dependency() -> AnyOperationHandle?

    /// Returns whether the condition holds now. If it throws, the condition has failed.
    func evaluate(_ context: OperationContext) async throws -> ConditionResult
}

extension Condition {
    /// The name of the type.
    public var name: String { String(describing: Self.self) }

    /// Returns `nil`: no operation makes the condition true.
    public func dependency() -> AnyOperationHandle? { nil }
}

/// The result of evaluating a condition.
public enum ConditionResult: Hashable, Sendable, Codable {
    /// The condition holds.
    case satisfied
    /// The condition does not hold yet: the operation gives its slot back and is tried again after
    /// this time, 10 ms or more.
    case notYet(recheckAfter: Duration)
    /// The condition does not hold: the operation fails with `conditionFailed`.
    case failed
}

/// A condition that holds when another one does not.
public struct Not: Condition {
    private let condition: any Condition

    /// Creates the opposite of a condition. “Not yet” stays “not yet”.
    public init(_ condition: some Condition) { self.condition = condition }

    /// `not …`.
    public var name: String { "not \(condition.name)" }

    /// The dependency of the condition.
    public func dependency() -> AnyOperationHandle? { condition.dependency() }

    /// Evaluates the condition and negates the result.
    public func evaluate(_ context: OperationContext) async throws -> ConditionResult {
        switch try await condition.evaluate(context) {
        case .satisfied: .failed
        case .failed: .satisfied
        case .notYet(let pause): .notYet(recheckAfter: pause)
        }
    }
}

/// A condition that holds when all of several do. The first that does not hold decides.
public struct All: Condition {
    private let conditions: [any Condition]

    /// Creates a condition that needs all of these.
    public init(_ conditions: any Condition...) { self.conditions = conditions }

    /// `all of …, …`.
    public var name: String { "all of " + conditions.map(\.name).joined(separator: ", ") }

    /// The dependencies of all the conditions.
    public func dependency() -> AnyOperationHandle? { conditions.dependency() }

    /// Evaluates the conditions one after the other.
    public func evaluate(_ context: OperationContext) async throws -> ConditionResult {
        for condition in conditions {
            let result = try await condition.evaluate(context)
            if result != .satisfied { return result }
        }
        return .satisfied
    }
}

/// A condition that holds when at least one of several does.
public struct AnyOf: Condition {
    private let conditions: [any Condition]

    /// Creates a condition that needs one of these.
    public init(_ conditions: any Condition...) { self.conditions = conditions }

    /// `any of …, …`.
    public var name: String { "any of " + conditions.map(\.name).joined(separator: ", ") }

    /// The dependencies of all the conditions.
    public func dependency() -> AnyOperationHandle? { conditions.dependency() }

    /// Evaluates the conditions one after the other. If none holds but some may later, the result
    /// is “not yet”, with the shortest of their times.
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

/// Evaluates another condition, without adding the operation that makes it true.
public struct Silent: Condition {
    private let condition: any Condition

    /// Creates a condition that only evaluates this one.
    public init(_ condition: some Condition) { self.condition = condition }

    /// The name of the evaluated condition.
    public var name: String { condition.name }

    /// Evaluates the condition.
    public func evaluate(_ context: OperationContext) async throws -> ConditionResult {
        try await condition.evaluate(context)
    }
}

extension [any Condition] {
    /// The operations that make all of the conditions true, as one handle.
    fileprivate func dependency() -> AnyOperationHandle? {
        let handles = compactMap { $0.dependency() }
        return handles.count < 2 ? handles.first : GroupHandle(handles)
    }

    /// The first condition that does not hold; `nil`: all hold.
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
