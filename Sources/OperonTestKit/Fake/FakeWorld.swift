import OperonModel
package import OperonPorts

/// What all callers of a fake coordinator share: its truth, who watches it, and what the test wants
/// to go wrong.
package actor FakeWorld {
    package private(set) var truth: FakeTruth
    /// Every call in its order: its name as in `CoordinatorClient`, and who made it.
    package private(set) var calls: [FakeCall] = []
    /// Every submission and addition in its order.
    package private(set) var submissions: [Submission] = []

    private var failures: [String: [ClientError]] = [:]
    /// Calls of these names are done, and not answered before they are let go.
    private var held: [String: [CheckedContinuation<Void, Never>]] = [:]
    private var watchers: [Int: Watcher] = [:]
    private var followers: [Int: Follower] = [:]
    private var streamCount = 0
    private var waiting: [Waiter] = []

    private struct Watcher {
        var graph: UInt32?
        var next: UInt64
        let continuation: AsyncThrowingStream<ClientEvent, any Error>.Continuation
    }

    private struct Waiter {
        let isDone: (_ watchers: Int, _ followers: Int, _ calls: [FakeCall]) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct Follower {
        let operation: OperationID
        let continuation: AsyncThrowingStream<LogView, any Error>.Continuation
    }

    package init(_ truth: FakeTruth = FakeTruth()) {
        self.truth = truth
    }

    // MARK: - For the test

    /// Changes the truth, and tells whoever watches.
    @discardableResult
    package func change<Answer: Sendable>(
        _ body: @Sendable (inout FakeTruth) throws(ClientError) -> Answer
    ) throws(ClientError) -> Answer {
        defer { feed() }
        return try body(&truth)
    }

    /// The next call of this name fails so, and does nothing.
    package func failNext(_ call: String, with error: ClientError) {
        failures[call, default: []].append(error)
    }

    /// What `submit`, `add` or `close` is asked from now on is done, and answered when let go.
    package func hold(_ call: String) { held[call] = held[call] ?? [] }

    /// Answers what was held, and holds no more.
    package func letGo(_ call: String) {
        for continuation in held.removeValue(forKey: call) ?? [] { continuation.resume() }
    }

    func held<Answer: Sendable>(
        _ call: String,
        _ body: @Sendable () async throws(ClientError) -> Answer
    ) async throws(ClientError) -> Answer {
        let result: Result<Answer, ClientError>
        do {
            result = .success(try await body())
        } catch {
            result = .failure(error)
        }
        if held[call] != nil {
            await withCheckedContinuation { held[call, default: []].append($0) }
        }
        return try result.get()
    }

    /// Ends every stream of events and of logs, as a coordinator that leaves does.
    package func endStreams(throwing error: (any Error)? = nil) {
        for watcher in watchers.values { watcher.continuation.finish(throwing: error) }
        for follower in followers.values { follower.continuation.finish(throwing: error) }
        watchers = [:]
        followers = [:]
    }

    /// Returns when there are so many readers of events.
    package func waitForWatchers(_ count: Int) async {
        await wait { watchers, _, _ in watchers == count }
    }

    /// Returns when so many follow a log.
    package func waitForFollowers(_ count: Int) async {
        await wait { _, followers, _ in followers == count }
    }

    /// Returns when there were so many calls of this name.
    package func waitForCalls(_ name: String, _ count: Int) async {
        await wait { _, _, calls in calls.count { $0.name == name } >= count }
    }

    private func wait(_ isDone: @escaping (Int, Int, [FakeCall]) -> Bool) async {
        if isDone(watchers.count, followers.count, calls) { return }
        await withCheckedContinuation { waiting.append(Waiter(isDone: isDone, continuation: $0)) }
    }

    private func look() {
        let ready = waiting.map { $0.isDone(watchers.count, followers.count, calls) }
        let done = zip(waiting, ready).filter(\.1).map(\.0)
        waiting = zip(waiting, ready).filter { !$0.1 }.map(\.0)
        for waiter in done { waiter.continuation.resume() }
    }

    // MARK: - For the coordinator

    func keep(_ submission: Submission) { submissions.append(submission) }

    func answer<Answer: Sendable>(
        _ call: String,
        _ caller: String,
        _ body: @Sendable (inout FakeTruth) throws(ClientError) -> Answer
    ) throws(ClientError) -> Answer {
        calls.append(FakeCall(name: call, caller: caller))
        defer { look() }
        if let error = failures[call]?.first {
            failures[call]?.removeFirst()
            throw error
        }
        return try change(body)
    }

    func events(
        after sequence: UInt64?,
        graph: UInt32?
    ) -> AsyncThrowingStream<ClientEvent, any Error> {
        let (stream, continuation) = AsyncThrowingStream<ClientEvent, any Error>.makeStream()
        let last = truth.lastSequence
        if let sequence, sequence > last { continuation.yield(.gap(min(1, last), last)) }
        let next = min(sequence ?? last, last) + 1
        let firstKept = truth.events.first?.sequence ?? truth.lastSequence + 1
        if next < firstKept { continuation.yield(.gap(next, firstKept - 1)) }
        let id = streamCount
        streamCount += 1
        watchers[id] = Watcher(
            graph: graph,
            next: max(next, firstKept),
            continuation: continuation
        )
        continuation.onTermination = { [weak self] _ in
            Task { await self?.endWatcher(id) }
        }
        feed()
        look()
        return stream
    }

    func followLog(of operation: OperationID) -> AsyncThrowingStream<LogView, any Error> {
        let (stream, continuation) = AsyncThrowingStream<LogView, any Error>.makeStream()
        guard truth[operation].state != .finished else {
            continuation.finish()
            return stream
        }
        let id = streamCount
        streamCount += 1
        followers[id] = Follower(operation: operation, continuation: continuation)
        continuation.onTermination = { [weak self] _ in
            Task { await self?.endFollower(id) }
        }
        look()
        return stream
    }

    private func endWatcher(_ id: Int) {
        watchers[id] = nil
        look()
    }

    private func endFollower(_ id: Int) {
        followers[id] = nil
        look()
    }

    /// Hands what is new to whoever watches, in its order.
    private func feed() {
        let firstKept = truth.events.first?.sequence ?? truth.lastSequence + 1
        for id in watchers.keys.sorted() {
            guard var watcher = watchers[id] else { continue }
            if watcher.next >= firstKept {
                for event in truth.events.dropFirst(Int(watcher.next - firstKept)) {
                    guard watcher.graph == nil || event.graph == watcher.graph else { continue }
                    watcher.continuation.yield(.event(event))
                }
            }
            watcher.next = truth.lastSequence + 1
            watchers[id] = watcher
        }
        let printed = truth.printed
        truth.printed = []
        for id in followers.keys.sorted() {
            guard let follower = followers[id] else { continue }
            for log in printed where log.operation == truth.name(of: follower.operation) {
                follower.continuation.yield(log)
            }
            if truth[follower.operation].state == .finished {
                follower.continuation.finish()
                followers[id] = nil
            }
        }
    }
}

package struct FakeCall: Hashable, Sendable {
    package let name: String
    package let caller: String
}
