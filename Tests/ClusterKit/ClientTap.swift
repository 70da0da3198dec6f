import FoundationEssentials
package import OperonModel
package import OperonPorts
import OperonRuntime

/// A call of a `TappedClient`: its name as in `CoordinatorClient`, and who made it.
package struct ClientCall: Hashable, Sendable {
    package let name: String
    package let caller: String
}

package struct ClientCompletion: Hashable, Sendable {
    package let attempt: AttemptID?
    package let completion: Completion
}

/// What all clients of a test share: what they called, and what goes wrong with their calls.
package actor ClientTap {
    /// Every call in its order.
    package private(set) var calls: [ClientCall] = []
    /// Every submission and addition in its order.
    package private(set) var submissions: [Submission] = []
    /// How external operations were completed, in order.
    package private(set) var completions: [ClientCompletion] = []

    private var failures: [String: [ClientError]] = [:]
    private var held: [String: Latch] = [:]
    /// How many calls of each name have their answer.
    private var answers: [String: Int] = [:]
    private var readers: [Int: Reader] = [:]
    private var streamCount = 0
    private var copy: (bytes: [UInt8], isWhole: Bool)?
    private var alias: (json: String, other: String)?
    private let changes = Changes()

    /// Someone who reads a stream.
    private struct Reader {
        let isFollower: Bool
        let end: @Sendable ((any Error)?) -> Void
    }

    package init() {}

    // MARK: - For the test

    /// The next call of this name fails so, and does nothing.
    package func failNext(_ call: String, with error: ClientError) {
        failures[call, default: []].append(error)
    }

    /// What is called by this name from now on is done, and answered when released.
    package func hold(_ call: String) { held[call] = held[call] ?? Latch() }

    /// Answers what was held, and holds no more.
    package func release(_ call: String) { held.removeValue(forKey: call)?.open() }

    /// What a copy of the store consists of from now on; `isWhole`: whether more than its first
    /// half comes.
    package func answerBackup(with bytes: [UInt8], isWhole: Bool = true) {
        copy = (bytes, isWhole)
    }

    /// The JSON of answers has the second text wherever that of the coordinator has the first.
    package func rewrite(_ json: String, as other: String) { alias = (json, other) }

    /// Ends every stream of events and of logs, as a coordinator that leaves does.
    package func endStreams(throwing error: (any Error)? = nil) {
        for reader in readers.values { reader.end(error) }
        readers = [:]
    }

    /// Returns when there are so many readers of events.
    package func waitForWatchers(_ count: Int) async {
        await wait { tap in tap.readers.values.count { !$0.isFollower } == count }
    }

    /// Returns when so many follow a log.
    package func waitForFollowers(_ count: Int) async {
        await wait { tap in tap.readers.values.count(where: \.isFollower) == count }
    }

    /// Returns when so many of these calls have been answered: what happens from then on is in none
    /// of the answers.
    package func waitForAnswers(_ name: String, _ count: Int) async {
        await wait { tap in tap.answers[name, default: 0] >= count }
    }

    /// Returns when there were so many calls of this name.
    package func waitForCalls(_ name: String, _ count: Int) async {
        await wait { tap in tap.calls.count { $0.name == name } >= count }
    }

    private func wait(until isDone: (isolated ClientTap) -> Bool) async {
        while !Task.isCancelled {
            let seen = changes.count
            if isDone(self) { return }
            do { try await changes.wait(after: seen) } catch { return }
        }
    }

    // MARK: - For the clients

    func keep(_ submission: Submission) { submissions.append(submission) }

    func keep(_ completion: ClientCompletion) { completions.append(completion) }

    func begin(_ call: ClientCall) throws(ClientError) {
        calls.append(call)
        changes.note()
        if let error = failures[call.name]?.first {
            failures[call.name]?.removeFirst()
            throw error
        }
    }

    func end(_ call: String) async {
        answers[call, default: 0] += 1
        changes.note()
        await held[call]?.wait()
    }

    func rewritten<Answer>(_ answer: Answer) throws -> Answer {
        guard let alias else { return answer }
        if let batch = answer as? [EventItem] {
            let other = try batch.map { item in
                guard case .event(let event) = item else { return item }
                return EventItem.event(SharedEvent(try rewritten(event.view)))
            }
            return other as? Answer ?? answer
        }
        guard let value = answer as? any Codable else { return answer }
        func rewritten<Value: Codable>(_ value: Value) throws -> Value {
            let text = String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
                .split(separator: alias.json, omittingEmptySubsequences: false)
                .joined(separator: alias.other)
            return try JSONDecoder().decode(Value.self, from: Data(text.utf8))
        }
        return try rewritten(value) as? Answer ?? answer
    }

    /// The copy that the test has made; `nil`: the coordinator makes it.
    var backup: StoreBackup? {
        guard let copy else { return nil }
        let half = copy.bytes.count / 2
        let (pieces, continuation) = AsyncThrowingStream<[UInt8], any Error>.makeStream()
        continuation.yield(Array(copy.bytes[..<half]))
        if copy.isWhole {
            continuation.yield(Array(copy.bytes[half...]))
            continuation.finish()
        }
        return StoreBackup(byteCount: copy.bytes.count, pieces: pieces)
    }

    /// The stream, which the test can end.
    func tapped<Element: Sendable>(
        _ inner: AsyncThrowingStream<Element, any Error>,
        isFollower: Bool
    ) -> AsyncThrowingStream<Element, any Error> {
        let (stream, continuation) = AsyncThrowingStream<Element, any Error>.makeStream()
        let reading = Task {
            do {
                for try await element in inner { continuation.yield(try rewritten(element)) }
                continuation.finish()
            } catch {
                continuation.finish(throwing: error)
            }
        }
        streamCount += 1
        let id = streamCount
        readers[id] = Reader(isFollower: isFollower) { continuation.finish(throwing: $0) }
        continuation.onTermination = { [weak self] _ in
            reading.cancel()
            Task { await self?.remove(id) }
        }
        changes.note()
        return stream
    }

    private func remove(_ id: Int) {
        readers[id] = nil
        changes.note()
    }
}
