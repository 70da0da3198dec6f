import DequeModule
import OperonModel

/// What attempts that have not ended have printed so far: the first and the last bytes of each.
///
/// All of them together take at most `bytesMax` bytes. If that is not enough, the oldest bytes go,
/// whichever attempt printed them; the worker still has what is kept of them.
struct LiveLogs {
    /// Bytes that follow each other.
    private struct Piece {
        /// Orders the pieces of all attempts by age.
        let number: UInt64
        let offset: UInt64
        var bytes: [UInt8]

        var end: UInt64 { offset + UInt64(bytes.count) }
    }

    private struct Log {
        let attempt: AttemptID
        /// The first bytes, without a gap.
        var head: [UInt8] = []
        var pieces = Deque<Piece>()
        /// The bytes of `pieces`, with their overhead.
        var pieceBytes = 0
        /// How many bytes the attempt has printed, as far as the coordinator knows.
        var end: UInt64 = 0

        var bytes: Int { head.count + pieceBytes }
    }

    private let logBytes: Int
    private let bytesMax: Int
    private var logs: [OperationID: Log] = [:]
    private var bytes = 0
    private var headBytes = 0
    private var nextNumber: UInt64 = 0
    /// Every piece, the oldest first, and some that are gone.
    private var byAge = Deque<(operation: OperationID, number: UInt64)>()

    /// The approximate memory of a piece beside its bytes.
    private static let pieceOverhead = 128
    /// Smaller pieces that follow each other become one.
    private static let pieceBytes = 16 << 10

    /// - Parameters:
    ///   - logBytes: The most bytes of one attempt.
    ///   - bytesMax: The most bytes of all attempts, with the overhead of their pieces.
    init(logBytes: Int, bytesMax: Int) {
        self.logBytes = logBytes
        self.bytesMax = bytesMax
    }

    /// The memory that it takes, in bytes.
    var approximateBytes: Int { bytes }

    /// The operations of which an attempt has printed, in no order.
    var operations: some Collection<OperationID> { logs.keys }

    /// The attempt of an operation that has printed and has not ended.
    func attempt(of operation: OperationID) -> AttemptID? { logs[operation]?.attempt }

    /// Keeps what an attempt has printed. Bytes that came before are ignored.
    mutating func add(_ chunk: LogChunk) {
        let operation = chunk.held.operation
        let attempt = chunk.held.attempt
        guard !chunk.bytes.isEmpty else { return }
        if let known = logs[operation]?.attempt, known != attempt {
            guard known < attempt else { return }
            remove(operation)
        }
        var log = logs.removeValue(forKey: operation) ?? Log(attempt: attempt)
        let (end, isOver) = (chunk.position ?? log.end)
            .addingReportingOverflow(UInt64(chunk.bytes.count))
        if !isOver, end > log.end {
            let start = max(chunk.position ?? log.end, log.end)
            let new = chunk.bytes.suffix(Int(end - start))
            bytes -= log.bytes
            append(new, at: start, to: &log, of: operation)
            bytes += log.bytes
            log.end = end
        }
        logs[operation] = log
        while bytes > bytesMax, dropOldest() {}
        if byAge.count > 1_024 + bytes / Self.pieceOverhead * 2 { forgetGone() }
    }

    private mutating func append(
        _ new: ArraySlice<UInt8>,
        at start: UInt64,
        to log: inout Log,
        of operation: OperationID
    ) {
        var rest = new
        var offset = start
        let headLimit = KeptLog.headBytes(of: logBytes)
        // Heads stay until their attempts end, so they may take only half of the room.
        if offset == UInt64(log.head.count), headBytes < bytesMax / 2 {
            let first = rest.prefix(headLimit - log.head.count)
            log.head += first
            headBytes += first.count
            rest = rest.dropFirst(first.count)
            offset += UInt64(first.count)
        }
        guard !rest.isEmpty else { return }
        if let last = log.pieces.last, last.end == offset,
            last.bytes.count + rest.count <= Self.pieceBytes
        {
            log.pieces[log.pieces.count - 1].bytes += rest
            log.pieceBytes += rest.count
        } else {
            log.pieces.append(Piece(number: nextNumber, offset: offset, bytes: Array(rest)))
            log.pieceBytes += rest.count + Self.pieceOverhead
            byAge.append((operation, nextNumber))
            nextNumber += 1
        }
        while log.pieceBytes > logBytes - headLimit, log.pieces.count > 1 { Self.drop(from: &log) }
    }

    private static func drop(from log: inout Log) {
        let piece = log.pieces.removeFirst()
        log.pieceBytes -= piece.bytes.count + pieceOverhead
    }

    /// Returns whether a piece may be left.
    private mutating func dropOldest() -> Bool {
        guard let (operation, number) = byAge.popFirst() else { return false }
        guard let place = logs.index(forKey: operation),
            logs.values[place].pieces.first?.number == number
        else { return true }
        bytes -= logs.values[place].bytes
        Self.drop(from: &logs.values[place])
        bytes += logs.values[place].bytes
        return true
    }

    private mutating func forgetGone() {
        byAge.removeAll { operation, number in
            guard let first = logs[operation]?.pieces.first else { return true }
            return number < first.number
        }
    }

    /// Forgets the log of an attempt that has ended.
    ///
    /// - Returns: How many bytes it has printed, as far as the coordinator knows.
    mutating func end(_ attempt: AttemptID, of operation: OperationID) -> UInt64 {
        guard !logs.isEmpty, let log = logs[operation], log.attempt == attempt else { return 0 }
        remove(operation)
        return log.end
    }

    private mutating func remove(_ operation: OperationID) {
        guard let log = logs.removeValue(forKey: operation) else { return }
        bytes -= log.bytes
        headBytes -= log.head.count
    }

    /// The bytes of an attempt from an offset on, in pieces that are in memory. Between two of them
    /// there may be a gap.
    func pieces(
        of operation: OperationID,
        _ attempt: AttemptID,
        from start: UInt64
    ) -> [(offset: UInt64, bytes: ArraySlice<UInt8>)] {
        guard let log = logs[operation], log.attempt == attempt else { return [] }
        var pieces: [(offset: UInt64, bytes: ArraySlice<UInt8>)] = []
        if start < UInt64(log.head.count) { pieces.append((start, log.head[Int(start)...])) }
        // Readers are mostly at the end.
        var first = log.pieces.count
        while first > 0, log.pieces[first - 1].end > start { first -= 1 }
        for piece in log.pieces[first...] {
            let skipped = piece.offset < start ? Int(start - piece.offset) : 0
            pieces.append((piece.offset + UInt64(skipped), piece.bytes[skipped...]))
        }
        return pieces
    }
}
