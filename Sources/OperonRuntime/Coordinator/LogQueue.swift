import DequeModule
import NIOConcurrencyHelpers
import OperonModel

/// The output of an operation, on its way to one reader. If the reader is too slow, the oldest
/// chunks are dropped, and the next piece states how many bytes that were.
final class LogQueue: Sendable {
    struct Piece: Hashable, Sendable {
        let chunk: LogChunk
        /// The bytes that were dropped directly before it.
        let missedBytes: UInt64
    }

    private struct State {
        var waiting = Deque<LogChunk>()
        var bytes = 0
        var missedBytes: UInt64 = 0
        var reader: CheckedContinuation<Piece?, Never>?
        var isFinished = false

        mutating func take() -> Piece? {
            guard let chunk = waiting.popFirst() else { return nil }
            bytes -= LogQueue.cost(of: chunk)
            defer { missedBytes = 0 }
            return Piece(chunk: chunk, missedBytes: missedBytes)
        }
    }

    private let bytesMax: Int
    private let state = NIOLockedValueBox(State())

    /// The approximate memory of a chunk beside its bytes: a chunk may be a single byte.
    static let chunkOverhead = 128

    /// - Parameter bytesMax: The most bytes that may wait, including the overhead of each chunk. A
    ///   single chunk that is larger may wait alone.
    init(bytesMax: Int) { self.bytesMax = bytesMax }

    private static func cost(of chunk: LogChunk) -> Int { chunk.bytes.count + chunkOverhead }

    /// The memory that waiting chunks take, in bytes.
    var waitingBytes: Int { state.withLockedValue { $0.bytes } }

    func add(_ chunk: LogChunk) {
        let ready = state.withLockedValue {
            state -> (CheckedContinuation<Piece?, Never>, Piece?)? in
            guard !state.isFinished, !chunk.bytes.isEmpty else { return nil }
            state.waiting.append(chunk)
            state.bytes += Self.cost(of: chunk)
            while state.bytes > bytesMax, state.waiting.count > 1 {
                let dropped = state.waiting.removeFirst()
                state.bytes -= Self.cost(of: dropped)
                state.missedBytes &+= UInt64(dropped.bytes.count)
            }
            guard let reader = state.reader else { return nil }
            state.reader = nil
            return (reader, state.take())
        }
        ready?.0.resume(returning: ready?.1)
    }

    /// Ends the log; waiting chunks can still be read.
    func finish() {
        let reader = state.withLockedValue { state in
            state.isFinished = true
            defer { state.reader = nil }
            return state.reader
        }
        // A reader waits only when the queue is empty.
        reader?.resume(returning: nil)
    }

    /// The next piece, for one reader. `nil`: the log has ended, or the reader's task was
    /// cancelled.
    func next() async -> Piece? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLockedValue { state -> Piece?? in
                    if let piece = state.take() { return .some(piece) }
                    // Cancellation sets the flag first and takes the lock afterwards.
                    if state.isFinished || Task.isCancelled { return .some(nil) }
                    precondition(state.reader == nil, "a log has one reader")
                    state.reader = continuation
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let reader = state.withLockedValue { state in
                defer { state.reader = nil }
                return state.reader
            }
            reader?.resume(returning: nil)
        }
    }
}
