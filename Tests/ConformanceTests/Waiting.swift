import Foundation

/// A value behind a lock.
final class Lock<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) { self.value = value }

    func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}

/// What `body` returns.
///
/// - Throws: `Failure` with these words, if it has not returned after `limit`.
func within<Result: Sendable>(
    _ limit: Duration,
    _ failure: @autoclosure @escaping @Sendable () -> String,
    _ body: @escaping @Sendable () async throws -> Result
) async throws -> Result {
    try await withThrowingTaskGroup(of: Result.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: limit)
            throw Failure("\(failure()) within \(limit)")
        }
        defer { group.cancelAll() }
        guard let result = try await group.next() else { throw CancellationError() }
        return result
    }
}

/// What `body` returns, which says with each step that it goes on: what takes long on a busy
/// machine is no failure, what stands still is one.
///
/// - Throws: `Failure` with these words, if there was no step for `limit`.
func whileSteps<Result: Sendable>(
    within limit: Duration,
    _ failure: String,
    _ body: @escaping @Sendable (_ step: @escaping @Sendable () -> Void) async throws -> Result
) async throws -> Result {
    let steps = Lock((count: 0, at: ContinuousClock.now))
    return try await withThrowingTaskGroup(of: Result.self) { group in
        group.addTask {
            try await body { steps.withLock { $0 = ($0.count + 1, .now) } }
        }
        group.addTask {
            while true {
                let last = steps.withLock { $0 }
                guard last.at + limit > .now else {
                    throw Failure("\(failure): no step for \(limit) after \(last.count) of them")
                }
                try await Task.sleep(until: last.at + limit)
            }
        }
        defer { group.cancelAll() }
        guard let result = try await group.next() else { throw CancellationError() }
        return result
    }
}

/// Lets so many in at once, the others in the order of their coming.
actor Turnstile {
    private var free: Int
    private var waiting: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []

    init(_ count: Int) { free = count }

    func enter(_ count: Int) async {
        if waiting.isEmpty, free >= count {
            free -= count
            return
        }
        await withCheckedContinuation { waiting.append((count, $0)) }
    }

    func leave(_ count: Int) {
        free += count
        while let first = waiting.first, free >= first.count {
            free -= first.count
            waiting.removeFirst().continuation.resume()
        }
    }
}

/// Counts what happens; one may wait for the first time.
final class Counter: Sendable {
    private let state = Lock(0)
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    var count: Int { state.withLock { $0 } }

    func increment() {
        state.withLock { $0 += 1 }
        continuation.yield()
    }

    func happens() async { for await _ in stream { return } }
}
