import ArgumentParser
import Foundation
import Operon
import Synchronization

/// The library beside Foundation's own queue, one case a process: what it does, how long that took
/// and how much memory it needed, as a line of JSON.
@main struct LibraryBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "library-benchmark")

    enum Case: String, CaseIterable, ExpressibleByArgument {
        /// No-op operations in layers, each depending on one of the layer before: added, run, and
        /// all handles kept.
        case operon
        /// The same with Foundation's OperationQueue.
        case foundation
        /// A chain, added in reverse order in one call.
        case reversed
        /// A chain of handles that is let go without having been added.
        case release
        /// No-op operations from an asynchronous sequence, at most 500 of them in flight: how fast,
        /// and how little the program grows.
        case sequence
        /// Waiting operations in a suspended queue: memory for each.
        case waiting
        /// The same with Foundation's OperationQueue.
        case foundationWaiting
    }

    @Argument var what: Case
    @Option var count = 1_000_000
    @Option var layers = 1_000

    func run() async throws {
        let result: Result
        switch what {
        case .operon: result = try await operon()
        case .foundation: result = foundation()
        case .reversed: result = try await reversed()
        case .release: result = release()
        case .sequence: result = try await sequence()
        case .waiting: result = try await waiting()
        case .foundationWaiting: result = foundationWaiting()
        }
        print(
            """
            {"case": "\(what)", "count": \(count), "seconds": \(result.seconds), \
            "cpuSeconds": \(Used.cpu), \
            "perSecond": \(Int(Double(count) / result.seconds)), \
            "bytesEach": \(result.bytes / max(1, count))}
            """
        )
    }

    struct Result {
        var seconds: Double
        var bytes = 0
    }

    // MARK: - Operon

    struct NoOp: Operon.Operation {
        func main(_ context: OperationContext) async throws {}
    }

    /// One array a layer.
    private func graph() -> [[OperationHandle<NoOp>]] {
        let width = count / layers
        var layers: [[OperationHandle<NoOp>]] = []
        for _ in 0..<self.layers {
            var layer: [OperationHandle<NoOp>] = []
            layer.reserveCapacity(width)
            for place in 0..<width {
                let handle = OperationHandle(NoOp())
                if let before = layers.last { handle.after(before[place]) }
                layer.append(handle)
            }
            layers.append(layer)
        }
        return layers
    }

    private func operon() async throws -> Result {
        let cluster = Cluster.inProcess()
        try await cluster.connect()
        let queue = Operon.OperationQueue(cluster: cluster)
        let before = Used.resident
        let clock = ContinuousClock()
        let start = clock.now
        let layers = graph()
        for layer in layers { try await queue.addOperations(layer) }
        for handle in layers[layers.count - 1] { try await handle.waitUntilFinished() }
        let end = clock.now
        let bytes = Used.resident - before
        await cluster.close()
        return Result(seconds: (end - start).inSeconds, bytes: bytes)
    }

    private func reversed() async throws -> Result {
        let cluster = Cluster.inProcess()
        try await cluster.connect()
        let queue = Operon.OperationQueue(cluster: cluster)
        let start = ContinuousClock.now
        var handles: [OperationHandle<NoOp>] = []
        for _ in 0..<count {
            let handle = OperationHandle(NoOp())
            if let before = handles.last { handle.after(before) }
            handles.append(handle)
        }
        try await queue.addOperations(handles.reversed(), waitUntilFinished: true)
        let seconds = (ContinuousClock.now - start).inSeconds
        await cluster.close()
        return Result(seconds: seconds)
    }

    private func sequence() async throws -> Result {
        let cluster = Cluster.inProcess()
        try await cluster.connect()
        let queue = Operon.OperationQueue(cluster: cluster)
        let before = Used.resident
        let start = ContinuousClock.now
        let left = Mutex(count)
        let source = AsyncStream {
            left.withLock { left in
                left -= 1
                return left >= 0 ? NoOp() : nil
            }
        }
        try await queue.addOperations(from: source, inFlight: 500)
        let seconds = (ContinuousClock.now - start).inSeconds
        let bytes = Used.resident - before
        await cluster.close()
        return Result(seconds: seconds, bytes: bytes)
    }

    private func release() -> Result {
        let start = ContinuousClock.now
        var last = OperationHandle(NoOp())
        for _ in 1..<count { last = OperationHandle(NoOp()).after(last) }
        last = OperationHandle(NoOp())
        return Result(seconds: (ContinuousClock.now - start).inSeconds)
    }

    private func waiting() async throws -> Result {
        let cluster = Cluster.inProcess()
        try await cluster.connect()
        let queue = Operon.OperationQueue(cluster: cluster, isSuspended: true)
        try await queue.addOperation(NoOp())
        let before = Used.resident
        let start = ContinuousClock.now
        let layers = graph()
        for layer in layers { try await queue.addOperations(layer) }
        let seconds = (ContinuousClock.now - start).inSeconds
        let bytes = Used.resident - before
        withExtendedLifetime(layers) {}
        return Result(seconds: seconds, bytes: bytes)
    }

    // MARK: - Foundation

    private func foundationGraph() -> [[BlockOperation]] {
        let width = count / layers
        var layers: [[BlockOperation]] = []
        for _ in 0..<self.layers {
            var layer: [BlockOperation] = []
            for place in 0..<width {
                let operation = BlockOperation {}
                if let before = layers.last { operation.addDependency(before[place]) }
                layer.append(operation)
            }
            layers.append(layer)
        }
        return layers
    }

    /// Not in an asynchronous function, where Foundation forbids it.
    private func foundation() -> Result {
        let queue = Foundation.OperationQueue()
        let before = Used.resident
        let start = ContinuousClock.now
        let layers = foundationGraph()
        for layer in layers { queue.addOperations(layer, waitUntilFinished: false) }
        queue.waitUntilAllOperationsAreFinished()
        let seconds = (ContinuousClock.now - start).inSeconds
        let bytes = Used.resident - before
        withExtendedLifetime(layers) {}
        return Result(seconds: seconds, bytes: bytes)
    }

    private func foundationWaiting() -> Result {
        let queue = Foundation.OperationQueue()
        queue.isSuspended = true
        let before = Used.resident
        let start = ContinuousClock.now
        let layers = foundationGraph()
        for layer in layers { queue.addOperations(layer, waitUntilFinished: false) }
        let seconds = (ContinuousClock.now - start).inSeconds
        let bytes = Used.resident - before
        withExtendedLifetime(layers) {}
        return Result(seconds: seconds, bytes: bytes)
    }
}

/// What the process has used.
enum Used {
    /// Of all its threads, in seconds.
    static var cpu: Double { Double(clock()) / Double(CLOCKS_PER_SEC) }

    /// Memory that it has, in bytes.
    static var resident: Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * 4_096
    }
}

extension Duration {
    var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) * 1e-18
    }
}
