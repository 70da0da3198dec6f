import ConformanceKit
import Operon

// What Foundation's queues and ours have in common, as far as the rows need it. A row that says
// something about both is written in these words; one about ours alone uses the library itself.

/// A queue, of whichever kind.
protocol QueueUnderTest: Sendable {
    var name: String { get }
    var isSuspended: Bool { get async throws }
    var limit: Int { get async throws }
    var operationCount: Int { get async throws }
    /// What the test calls those that have not ended, in the order of adding.
    var operationNames: [String] { get async throws }

    func add(_ operations: [any OperationUnderTest], waitUntilFinished: Bool) async throws
    func suspend() async throws
    func resume() async throws
    func setLimit(_ limit: Int) async throws
    func cancelAll() async throws
    func waitUntilEmpty() async throws
}

extension QueueUnderTest {
    func add(_ operations: any OperationUnderTest...) async throws {
        try await add(operations, waitUntilFinished: false)
    }

    func add(_ operations: [any OperationUnderTest]) async throws {
        try await add(operations, waitUntilFinished: false)
    }
}

/// An operation that plays, of whichever kind.
protocol OperationUnderTest: AnyObject, Sendable {
    /// What the test calls it.
    var name: String { get }
    var isReady: Bool { get async throws }
    var isExecuting: Bool { get async throws }
    var isFinished: Bool { get async throws }
    var isCancelled: Bool { get async throws }
    var priority: QueuePriority { get async throws }
    /// What the test calls what it depends on.
    var dependencyNames: [String] { get async throws }
    /// What it returned, as far as is known without asking.
    var resultIfKnown: String? { get }

    func addDependency(_ other: any OperationUnderTest) async throws
    func removeDependency(_ other: any OperationUnderTest) async throws
    func setPriority(_ priority: QueuePriority) async throws
    func onCompletion(_ block: @escaping @Sendable () -> Void)
    func cancel() async throws
    /// In this process, outside of any queue; returns when it has ended.
    func start() async throws
    func waitUntilFinished() async throws
    /// Returns when it is seen to run.
    func waitUntilExecuting() async throws
    func result() async throws -> String
}
