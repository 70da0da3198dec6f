import ConformanceKit
import Operon

/// A queue of the library.
final class OperonQueue: QueueUnderTest {
    let queue: OperationQueue
    private let names: OperationNames

    init(_ queue: OperationQueue, _ names: OperationNames) {
        self.queue = queue
        self.names = names
    }

    var name: String { queue.name }
    var isSuspended: Bool { get async throws { try await queue.isSuspended } }
    var limit: Int { get async throws { try await queue.maxConcurrentOperationCount } }
    var operationCount: Int { get async throws { try await queue.operationCount } }

    var operationNames: [String] {
        get async throws { try await queue.operations.map { names[$0.id] } }
    }

    func add(_ operations: [any OperationUnderTest], waitUntilFinished: Bool) async throws {
        let operations = try operations.map { try OperonOperation.of($0) }
        try await queue.addOperations(
            operations.map(\.handle),
            waitUntilFinished: waitUntilFinished
        )
        for operation in operations { names.note(operation) }
    }

    func suspend() async throws { try await queue.suspend() }
    func resume() async throws { try await queue.resume() }

    func setLimit(_ limit: Int) async throws {
        try await queue.setMaxConcurrentOperationCount(limit)
    }

    func cancelAll() async throws { try await queue.cancelAllOperations() }
    func waitUntilEmpty() async throws { try await queue.waitUntilAllOperationsAreFinished() }
}

/// An operation of the library.
final class OperonOperation: OperationUnderTest {
    let handle: OperationHandle<Play>
    private let names: OperationNames
    private let patience: Duration
    /// Whether its worker may be killed, so that what runs may not run the next moment.
    private let isMortal: Bool

    init(
        _ play: Play,
        priority: QueuePriority?,
        _ names: OperationNames,
        patience: Duration,
        isMortal: Bool
    ) {
        handle = OperationHandle(play)
        if let priority { handle.options.queuePriority = priority }
        self.names = names
        self.patience = patience
        self.isMortal = isMortal
    }

    static func of(_ operation: any OperationUnderTest) throws -> OperonOperation {
        guard let operation = operation as? OperonOperation else {
            throw Failure("\(operation.name) is none of Operon")
        }
        return operation
    }

    var name: String { handle.operation.name }
    var isReady: Bool { get async throws { try await handle.isReady } }
    var isExecuting: Bool { get async throws { try await handle.isExecuting } }
    var isFinished: Bool { get async throws { try await handle.isFinished } }
    var isCancelled: Bool { get async throws { try await handle.isCancelled } }
    var priority: QueuePriority { get async throws { try await handle.queuePriority } }

    var dependencyNames: [String] {
        get async throws {
            try await handle.dependencies.map { dependency in
                dependency.id.map { names[$0] } ?? dependency.name
            }
        }
    }

    var resultIfKnown: String? { handle.valueIfKnown }

    func addDependency(_ other: any OperationUnderTest) async throws {
        try await handle.addDependency(try Self.of(other).handle)
    }

    func removeDependency(_ other: any OperationUnderTest) async throws {
        try await handle.removeDependency(try Self.of(other).handle)
    }

    func setPriority(_ priority: QueuePriority) async throws {
        try await handle.setQueuePriority(priority)
    }

    func onCompletion(_ block: @escaping @Sendable () -> Void) {
        handle.completionBlock = { _ in block() }
    }

    func cancel() async throws { try await handle.cancel() }
    func start() async throws { try await handle.start() }

    func waitUntilFinished() async throws {
        let (handle, name) = (handle, name)
        try await within(patience, "\(name) did not end") { try await handle.waitUntilFinished() }
    }

    /// The coordinator may never be told that what ends soon has begun, unless somebody listens.
    func waitUntilExecuting() async throws {
        let (handle, isMortal, name) = (handle, isMortal, name)
        try await within(patience, "\(name) was not seen to run") {
            for try await event in handle.events {
                switch event.kind {
                case .started, .state(.executing):
                    if try await handle.isExecuting { return }
                    // Between the two its worker may have been killed.
                    guard isMortal else { throw Failure("it has started and does not execute") }
                default: continue
                }
            }
            throw Failure("it ended unseen")
        }
    }

    func result() async throws -> String {
        let (handle, name) = (handle, name)
        return try await within(patience, "\(name) returned nothing") { try await handle.value }
    }
}

/// What the test calls operations that the coordinator knows by numbers.
final class OperationNames: Sendable {
    private let names = Lock<[OperationID: String]>([:])

    func note(_ operation: OperonOperation) {
        guard let id = operation.handle.id else { return }
        names.withLock { $0[id] = operation.name }
    }

    subscript(id: OperationID) -> String { names.withLock { $0[id] } ?? "\(id)" }
}
