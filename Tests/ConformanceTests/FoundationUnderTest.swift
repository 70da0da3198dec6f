import ConformanceKit
import Foundation

import enum Operon.QueuePriority

/// Foundation's own queue: what a row with an F in the table holds of, too.
final class FoundationQueue: QueueUnderTest {
    let queue: Foundation.OperationQueue

    init(_ queue: Foundation.OperationQueue) { self.queue = queue }

    init(name: String?, limit: Int?, isSuspended: Bool) {
        queue = Foundation.OperationQueue()
        if let name { queue.name = name }
        if let limit { queue.maxConcurrentOperationCount = limit }
        queue.isSuspended = isSuspended
    }

    var name: String { queue.name ?? "" }
    var isSuspended: Bool { queue.isSuspended }
    var limit: Int { queue.maxConcurrentOperationCount }
    var operationCount: Int { queue.operationCount }
    var operationNames: [String] { queue.operations.map { $0.name ?? "" } }

    func add(_ operations: [any OperationUnderTest], waitUntilFinished: Bool) async throws {
        let operations = try operations.map { try FoundationOperation.of($0).operation }
        let queue = queue
        await onThread {
            queue.addOperations(operations, waitUntilFinished: waitUntilFinished)
        }
    }

    func suspend() { queue.isSuspended = true }
    func resume() { queue.isSuspended = false }
    func setLimit(_ limit: Int) { queue.maxConcurrentOperationCount = limit }
    func cancelAll() { queue.cancelAllOperations() }

    func waitUntilEmpty() async {
        let queue = queue
        await onThread { queue.waitUntilAllOperationsAreFinished() }
    }
}

/// Foundation's own operation.
final class FoundationOperation: OperationUnderTest {
    let operation: Foundation.Operation
    private let play: Play

    init(_ play: Play, priority: QueuePriority?) {
        self.play = play
        operation = play.doze > 0 ? Dozing(play) : Playing(play)
        operation.name = play.name
        if let priority { operation.queuePriority = Self.foundation(priority) }
    }

    static func of(_ operation: any OperationUnderTest) throws -> FoundationOperation {
        guard let operation = operation as? FoundationOperation else {
            throw Failure("\(operation.name) is none of Foundation")
        }
        return operation
    }

    private static func foundation(
        _ priority: QueuePriority
    ) -> Foundation.Operation.QueuePriority {
        Foundation.Operation.QueuePriority(rawValue: Int(priority.rawValue)) ?? .normal
    }

    var name: String { play.name }
    var isReady: Bool { operation.isReady }
    var isExecuting: Bool { operation.isExecuting }
    var isFinished: Bool { operation.isFinished }
    var isCancelled: Bool { operation.isCancelled }
    var priority: QueuePriority {
        QueuePriority(rawValue: Int8(operation.queuePriority.rawValue)) ?? .normal
    }
    var dependencyNames: [String] { operation.dependencies.map { $0.name ?? "" } }
    var resultIfKnown: String? { (operation as? Playing)?.result }

    func addDependency(_ other: any OperationUnderTest) async throws {
        operation.addDependency(try Self.of(other).operation)
    }

    func removeDependency(_ other: any OperationUnderTest) async throws {
        operation.removeDependency(try Self.of(other).operation)
    }

    func setPriority(_ priority: QueuePriority) {
        operation.queuePriority = Self.foundation(priority)
    }

    func onCompletion(_ block: @escaping @Sendable () -> Void) {
        operation.completionBlock = block
    }

    func cancel() { operation.cancel() }
    func start() { operation.start() }

    func waitUntilFinished() async {
        let operation = operation
        await onThread { operation.waitUntilFinished() }
    }

    /// Its journal tells that it has started, and that is when it executes.
    func waitUntilExecuting() async throws {
        guard operation.isExecuting else { throw Failure("\(name) does not execute") }
    }

    func result() async throws -> String {
        await waitUntilFinished()
        guard let result = resultIfKnown else { throw Failure("\(name) returned nothing") }
        return result
    }
}

/// Runs the play where the queue wants it.
private class Playing: Foundation.Operation, @unchecked Sendable {
    fileprivate let play: Play
    // Protects the result.
    private let lock = NSLock()
    private var returned: String?

    init(_ play: Play) { self.play = play }

    var result: String? { lock.withLock { returned } }

    override func main() { act() }

    fileprivate func act() {
        let queue = Foundation.OperationQueue.current?.name ?? ""
        let result = try? play.act(queue: queue) { isCancelled }
        lock.withLock { returned = result }
    }
}

/// An asynchronous operation: `start` returns at once, and it says itself when it has finished.
private final class Dozing: Playing, @unchecked Sendable {
    private enum State { case waiting, executing, finished }

    private let state = Lock(State.waiting)

    override var isAsynchronous: Bool { true }
    override var isExecuting: Bool { state.withLock { $0 == .executing } }
    override var isFinished: Bool { state.withLock { $0 == .finished } }

    private func become(_ new: State) {
        willChangeValue(forKey: "isExecuting")
        willChangeValue(forKey: "isFinished")
        state.withLock { $0 = new }
        didChangeValue(forKey: "isExecuting")
        didChangeValue(forKey: "isFinished")
    }

    override func start() {
        become(.executing)
        Task {
            try? await Task.sleep(for: .milliseconds(play.doze))
            act()
            become(.finished)
        }
    }
}

/// Blocks a thread of its own, so that none of Swift's is held.
private func onThread(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread {
            body()
            continuation.resume()
        }
    }
}
