import DequeModule
import OperonCore
import OperonModel
import OperonPorts

/// How far a reader has read the log of an operation.
struct LogCursor: Hashable, Sendable {
    var attempt: AttemptID
    /// The number of the attempt among those of the operation, from 1.
    var number: UInt32
    /// The bytes of the attempt before this one were read, or are missing.
    var next: UInt64
}

/// Reads logs piece by piece, as its client asks: what is stored, then what attempts in flight have
/// printed so far, then what comes. Each byte is read once. It keeps nothing that was not asked
/// for, so a client that is too slow finds a gap. When the last reference to it is released, its
/// listener is removed.
actor LogReader {
    private let service: CoordinatorService
    private let listener: LogListener
    private let query: LogQuery
    private var changes: AsyncStream<Void>.AsyncIterator
    /// The operations to look at before changes; `nil`: not known yet.
    private var backlog: Deque<OperationID>?
    /// One for each operation that was read.
    private var cursors: [OperationID: LogCursor] = [:]
    /// What was read and not returned.
    private var views = Deque<LogView>()

    /// The most bytes of one view.
    private static let viewBytes = 64 << 10

    init(_ service: CoordinatorService, _ listener: LogListener, _ query: LogQuery) {
        self.service = service
        self.listener = listener
        self.query = query
        changes = listener.signal.raised.makeAsyncIterator()
    }

    deinit {
        let (service, id) = (service, listener.id)
        Task { await service.stopListening(id) }
    }

    /// Returns `nil` if the log has ended or the task was cancelled.
    func next() async throws -> LogView? {
        while !Task.isCancelled {
            if let view = views.popFirst() { return view }
            if backlog == nil {
                backlog = Deque(try await service.printedOperations(of: listener.scope))
            }
            if let operation = backlog?.popFirst() {
                try await read(operation, ends: [])
                if let lines = query.tail { keepLast(lines) }
                continue
            }
            guard query.follow else { return nil }
            switch await service.nextStep(of: listener.id) {
            case .read(let operation, let ends): try await read(operation, ends: ends)
            case .over: return nil
            case .wait: guard await change() else { return nil }
            }
        }
        return nil
    }

    private func change() async -> Bool {
        var iterator = changes
        defer { changes = iterator }
        return await iterator.next(isolation: self) != nil
    }

    /// Reads what there is of an operation beyond its cursor.
    private func read(_ operation: OperationID, ends: [LogEnd]) async throws {
        let name = await service.name(of: operation)
        if let repeated = query.repeated, !RepeatedNames.isPart(name.name, of: repeated) { return }
        let cursor = cursors[operation]
        let before = await service.liveLog(of: operation, after: cursor)
        if ends.isEmpty, let cursor, let before, before.attempt == cursor.attempt {
            return add(before, name, cursor.number, of: operation)
        }
        guard let (logs, attempts) = try await service.storedLogs(of: operation) else { return }
        for attempt in attempts where attempt.id >= cursor?.attempt ?? attempt.id {
            guard wants(attempt) else {
                let end = LogCursor(attempt: attempt.id, number: attempt.ordinal, next: .max)
                cursors[operation] = end
                continue
            }
            if let log = logs.first(where: { $0.attempt == attempt.id })?.log {
                add(log.head, at: 0, name, attempt, of: operation)
                add(log.tail, at: log.tailOffset, name, attempt, of: operation)
            } else if let end = ends.last(where: { $0.attempt == attempt.id }) {
                add([], at: end.bytes, name, attempt, of: operation)
            } else if let now = await service.liveLog(of: operation, after: cursors[operation]),
                now.attempt == attempt.id, now.attempt == before?.attempt
            {
                add(now, name, attempt.ordinal, of: operation)
            }
        }
    }

    private func wants(_ attempt: StoredAttempt) -> Bool {
        if let since = query.since, let end = attempt.endedAt, end < since { return false }
        return query.attempt.map { $0 == attempt.ordinal } ?? true
    }

    private func add(
        _ bytes: [UInt8],
        at offset: UInt64,
        _ name: OperationName,
        _ attempt: StoredAttempt,
        of operation: OperationID
    ) {
        var cursor = cursor(of: operation, at: attempt.id, attempt.ordinal)
        add(bytes[...], at: offset, name, isWhole: true, &cursor)
        cursors[operation] = cursor
    }

    private func add(
        _ live: LiveLogPart,
        _ name: OperationName,
        _ number: UInt32,
        of operation: OperationID
    ) {
        var cursor = cursor(of: operation, at: live.attempt, number)
        for (index, piece) in live.pieces.enumerated() {
            // What follows a gap does not complete a character.
            let end = piece.offset &+ UInt64(piece.bytes.count)
            let next = index + 1 < live.pieces.count ? live.pieces[index + 1].offset : end
            add(piece.bytes, at: piece.offset, name, isWhole: next > end, &cursor)
        }
        cursors[operation] = cursor
    }

    private func cursor(
        of operation: OperationID,
        at attempt: AttemptID,
        _ number: UInt32
    ) -> LogCursor {
        if let cursor = cursors[operation], cursor.attempt == attempt { return cursor }
        return LogCursor(attempt: attempt, number: number, next: 0)
    }

    /// Adds views of the bytes beyond the cursor.
    ///
    /// - Parameter isWhole: Whether nothing follows directly. If something may, the beginning of a
    ///   character at the end is left for later.
    private func add(
        _ bytes: ArraySlice<UInt8>,
        at offset: UInt64,
        _ name: OperationName,
        isWhole: Bool,
        _ cursor: inout LogCursor
    ) {
        let known = cursor.next > offset ? min(cursor.next - offset, UInt64(bytes.count)) : 0
        var rest = bytes.dropFirst(Int(known))
        var start = offset &+ known
        if !isWhole { rest = rest.dropLast(UTF8Boundary.begun(in: rest)) }
        // A gap without bytes behind it is told, too.
        guard !rest.isEmpty || bytes.isEmpty && start > cursor.next else { return }
        repeat {
            var piece = rest.prefix(Self.viewBytes)
            if piece.count < rest.count { piece = piece.dropLast(UTF8Boundary.begun(in: piece)) }
            views.append(
                LogView(
                    operation: name,
                    attempt: cursor.attempt,
                    number: cursor.number,
                    offset: start,
                    bytes: Array(piece),
                    missedBytes: start > cursor.next ? start - cursor.next : 0
                )
            )
            rest = rest.dropFirst(piece.count)
            start = start &+ UInt64(piece.count)
            cursor.next = start
        } while !rest.isEmpty
    }

    /// Drops all but the last lines of what was read of an operation.
    private func keepLast(_ lines: Int) {
        var left = lines
        var kept = Deque<LogView>()
        // The line break at the end belongs to the last line.
        var isAtEnd = true
        while var view = views.popLast() {
            guard left > 0 else { continue }
            var start = view.bytes.endIndex
            while start > 0 {
                if view.bytes[start - 1] == UInt8(ascii: "\n"), !isAtEnd {
                    left -= 1
                    if left == 0 { break }
                }
                isAtEnd = false
                start -= 1
            }
            if left == 0 {
                view.offset &+= UInt64(start)
                view.bytes.removeFirst(start)
                view.missedBytes = 0
            }
            if !view.bytes.isEmpty || view.missedBytes > 0 { kept.insert(view, at: 0) }
        }
        views = kept
    }
}

/// Where characters begin and end in UTF-8.
enum UTF8Boundary {
    /// How many bytes at the end begin a character that is not complete; at most 3.
    static func begun(in bytes: ArraySlice<UInt8>) -> Int {
        for (index, byte) in bytes.suffix(3).reversed().enumerated() {
            let count = index + 1
            switch byte {
            case 0x80..<0xC0: continue
            case 0xC2..<0xE0: return count < 2 ? count : 0
            case 0xE0..<0xF0: return count < 3 ? count : 0
            case 0xF0..<0xF5: return count < 4 ? count : 0
            default: return 0
            }
        }
        return 0
    }
}
