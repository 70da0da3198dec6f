import DequeModule
package import OperonModel

/// The coordinator's side of fetched outputs: which worker is answered next, and with what.
///
/// Answers leave in the order of the requests, one message at a time, and workers take turns. A
/// request that a beat lists is answered again only if necessary. If its answer waits here, nothing
/// is done. If its answer has left, the server answers with `sent`, after the answer and on the
/// same channel: a worker that receives `sent` without the answer knows that the answer is lost,
/// however slow the channel is.
package struct OutputServer: Sendable {
    package enum Answer: Hashable, Sendable {
        /// These bytes, if they exist.
        case piece(OutputRequest)
        case gone(UInt64)
        case sent(UInt64)
    }

    private struct Counter: Sendable {
        let connection: UInt32
        var waiting = Deque<Answer>()
        /// Numbers of the pieces in `waiting`.
        var waitingNumbers: Set<UInt64> = []
        /// Numbers of the last pieces that left on this connection.
        var sent = Deque<UInt64>()
    }

    /// How many answers may wait for one worker, and how many numbers are remembered: more than a
    /// worker has open requests. The worker's next beat lists requests whose answers were dropped.
    static let waitingMax = 256

    private let chunkBytes: Int
    /// Never iterated.
    private var counters: [Incarnation: Counter] = [:]
    /// Workers that have answers waiting, in turn. Some may be gone.
    private var line = Deque<Incarnation>()

    package init(limits: Limits) { chunkBytes = limits.chunkBytes }

    package var isEmpty: Bool { line.isEmpty }

    package mutating func take(_ order: Scheduler.FetchOrder) {
        let incarnation = order.address.incarnation
        let number = order.request.number
        if counters[incarnation]?.connection != order.address.connection {
            // Answers to an older connection, sent or not, will not arrive.
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

    /// The answers for the next message, about one piece's worth of bytes.
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
