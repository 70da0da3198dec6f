import DequeModule
package import OperonModel

/// The coordinator's side of fetched outputs: which worker is answered next, and with what.
///
/// Answers leave in the order of the requests, one message at a time, and workers take turns. A
/// request that a beat lists is answered again only if that is needed: one whose answer waits here
/// is left alone, and one whose answer has left is answered with `sent`, behind it on the same way:
/// whoever reads that without the answer knows that it is lost, however slow the way is.
package struct OutputDesk: Sendable {
    package enum Answer: Hashable, Sendable {
        /// These bytes, if they are there.
        case piece(OutputRequest)
        case gone(UInt64)
        case sent(UInt64)
    }

    private struct Counter: Sendable {
        let connection: UInt32
        var waiting = Deque<Answer>()
        /// Numbers of the pieces in `waiting`.
        var waitingNumbers: Set<UInt64> = []
        /// Numbers of the pieces that left last on this connection.
        var sent = Deque<UInt64>()
    }

    /// Answers that may wait for one worker, and numbers that are remembered: more than a worker
    /// has open requests. What is dropped is listed by its next beat.
    static let waitingMax = 256

    private let chunkBytes: Int
    /// Only looked up.
    private var counters: [Incarnation: Counter] = [:]
    /// Whoever has answers waiting, in turn; some may be gone.
    private var line = Deque<Incarnation>()

    package init(limits: Limits) { chunkBytes = limits.chunkBytes }

    package var isEmpty: Bool { line.isEmpty }

    package mutating func take(_ order: Scheduler.FetchOrder) {
        let incarnation = order.address.incarnation
        let number = order.request.number
        if counters[incarnation]?.connection != order.address.connection {
            // What was to go to an older connection, or has, will not arrive.
            let isInLine = counters[incarnation]?.waiting.isEmpty == false
            counters[incarnation] = Counter(connection: order.address.connection)
            if isInLine { line.removeAll { $0 == incarnation } }
        }
        guard let counter = counters[incarnation], counter.waiting.count < Self.waitingMax,
            !counter.waitingNumbers.contains(number)
        else { return }
        let answer: Answer
        if !order.isOwned {
            answer = .gone(number)
        } else if order.isRepeated, counter.sent.contains(number) {
            answer = .sent(number)
        } else {
            answer = .piece(order.request)
            counters[incarnation]?.waitingNumbers.insert(number)
        }
        if counter.waiting.isEmpty { line.append(incarnation) }
        counters[incarnation]?.waiting.append(answer)
    }

    /// The answers for the next message, about a piece's worth of bytes.
    package mutating func next() -> (WorkerAddress, [Answer])? {
        while let incarnation = line.popFirst() {
            guard var counter = counters[incarnation], !counter.waiting.isEmpty else { continue }
            counters[incarnation] = nil
            var answers: [Answer] = []
            var bytes = 0
            while let answer = counter.waiting.first {
                if case .piece(let request) = answer {
                    let length = min(request.length, chunkBytes)
                    guard answers.isEmpty || bytes + length <= chunkBytes else { break }
                    bytes += length
                    counter.waitingNumbers.remove(request.number)
                    counter.sent.append(request.number)
                    if counter.sent.count > Self.waitingMax { counter.sent.removeFirst() }
                }
                counter.waiting.removeFirst()
                answers.append(answer)
            }
            if !counter.waiting.isEmpty { line.append(incarnation) }
            counters[incarnation] = counter
            let address = WorkerAddress(
                incarnation: incarnation,
                connection: counter.connection
            )
            return (address, answers)
        }
        return nil
    }

    /// The worker is gone.
    package mutating func forget(_ incarnation: Incarnation) {
        guard counters.removeValue(forKey: incarnation) != nil else { return }
        line.removeAll { $0 == incarnation }
    }
}
