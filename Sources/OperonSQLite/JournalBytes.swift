import FoundationEssentials
import OperonModel

/// The bytes of a row of the journal: the records of one commit, and what is kept of the results of
/// attempts. Numbers take as many bytes as they need, seven bits in each (LEB128, as in Protocol
/// Buffers). The records that every operation has are written field by field; the others are JSON.
///
/// Never change a released tag; add another one.
enum JournalBytes {
    fileprivate enum Tag: UInt64 {
        case json, granted, started, succeeded, cancelled, skipped, failed, attemptEnded
        case retryScheduled, delayed, delayEnded, rateUsed, graphAdded, resumed, reopened
        case rangeFinished
    }

    fileprivate enum Ending: UInt64 {
        case succeeded, failed, cancelled, returned, lost, crashed
    }

    /// What a commit changes, for a replay: without events, workers, outputs and logs, which are in
    /// tables of their own since the commit.
    struct Content {
        var records: [StoreRecord] = []
        var results: [StoredResult] = []
        /// The rows of the contents that were submitted.
        var contents: [Int64] = []
    }

    // MARK: - Writing

    static func encode(_ batch: StoreBatch, contents: [Int64]) throws -> [UInt8] {
        var writer = Writer()
        writer.bytes.reserveCapacity(24 * batch.records.count + 16 * batch.results.count + 16)
        writer.add(UInt64(contents.count))
        for row in contents { writer.add(UInt64(bitPattern: row)) }
        writer.add(UInt64(batch.results.count))
        for result in batch.results { writer.add(result, at: batch.wall) }
        writer.add(UInt64(batch.records.count))
        for record in batch.records { try writer.add(record) }
        return writer.bytes
    }

    /// Events one after the other, each with its length before it.
    static func encode(_ events: [StoredEvent]) -> [UInt8] {
        var writer = Writer()
        writer.bytes.reserveCapacity(events.reduce(0) { $0 + $1.body.count + 2 })
        for event in events { writer.add(event.body) }
        return writer.bytes
    }

    // MARK: - Reading

    /// - Throws: `RowDamage` for bytes that `encode` did not write.
    static func decode(_ bytes: [UInt8], at wall: WallTime) throws -> Content {
        var reader = Reader(bytes: bytes)
        var content = Content()
        for _ in 0..<(try reader.count()) {
            content.contents.append(Int64(bitPattern: try reader.number()))
        }
        for _ in 0..<(try reader.count()) { content.results.append(try reader.result(at: wall)) }
        for _ in 0..<(try reader.count()) { content.records.append(try reader.record()) }
        guard reader.isAtEnd else { throw Reader.damage }
        return content
    }

    /// The events of a row, the first of which has this number.
    static func decodeEvents(_ bytes: [UInt8], from first: UInt64) throws -> [StoredEvent] {
        var reader = Reader(bytes: bytes)
        var events: [StoredEvent] = []
        while !reader.isAtEnd {
            let sequence = first + UInt64(events.count)
            events.append(StoredEvent(sequence: sequence, body: Array(try reader.slice())))
        }
        return events
    }
}

// MARK: - Writing

extension JournalBytes {
    fileprivate struct Writer {
        var bytes: [UInt8] = []

        mutating func add(_ number: UInt64) {
            var rest = number
            while rest > 0x7F {
                bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
                rest >>= 7
            }
            bytes.append(UInt8(rest))
        }

        /// Small numbers of either sign take few bytes (ZigZag).
        mutating func add(signed number: Int64) {
            add(UInt64(bitPattern: number << 1 ^ number >> 63))
        }

        mutating func add(fixed number: UInt64) {
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> shift))
            }
        }

        mutating func begin(_ tag: Tag) { add(tag.rawValue) }

        mutating func add(_ text: String) {
            add(UInt64(text.utf8.count))
            bytes.append(contentsOf: text.utf8)
        }

        mutating func add(_ value: [UInt8]) {
            add(UInt64(value.count))
            bytes += value
        }

        mutating func add(_ operation: OperationID) {
            add(UInt64(operation.graph.rawValue))
            add(UInt64(operation.index))
        }

        mutating func add(_ attempt: AttemptID) {
            add(UInt64(attempt.epoch.rawValue))
            add(attempt.number)
        }

        mutating func add(_ time: WallTime) { add(signed: time.nanosecondsSince1970) }

        mutating func add(_ result: StoredResult, at wall: WallTime) {
            add(result.operation)
            add(result.attempt)
            let flags: [Bool] = [
                !result.output.isEmpty, !result.log.isEmpty, result.isUpToDate,
                result.startedAt != nil,
            ]
            add(flags.enumerated().reduce(0) { $0 | ($1.element ? 1 << UInt64($1.offset) : 0) })
            if let start = result.startedAt { add(start, from: wall) }
            add(result.endedAt, from: wall)
        }

        /// Times of one commit are close to each other, whatever the clock says.
        private mutating func add(_ time: WallTime, from wall: WallTime) {
            add(signed: time.nanosecondsSince1970 &- wall.nanosecondsSince1970)
        }

        mutating func add(_ record: StoreRecord) throws {
            switch record {
            case .granted(let attempt, let operation, let ordinal, let worker):
                begin(.granted)
                add(attempt)
                add(operation)
                add(UInt64(ordinal))
                add(fixed: worker.rawValue)
            case .started(let attempt, let operation):
                begin(.started)
                add(attempt)
                add(operation)
            case .resumed(let attempt, let operation):
                begin(.resumed)
                add(attempt)
                add(operation)
            case .finished(let operation, let outcome): add(operation, outcome)
            case .attemptEnded(let attempt, let operation, let ending):
                begin(.attemptEnded)
                add(attempt)
                add(operation)
                add(ending)
            case .retryScheduled(let operation, let time):
                begin(.retryScheduled)
                add(operation)
                add(time)
            case .delayed(let operation, let time?):
                begin(.delayed)
                add(operation)
                add(time)
            case .delayed(let operation, nil):
                begin(.delayEnded)
                add(operation)
            case .rateUsed(let scope, let time):
                begin(.rateUsed)
                add(scope.row.isKey ? 1 : 0)
                add(scope.row.name)
                add(time)
            case .graphAdded(let graph):
                begin(.graphAdded)
                add(UInt64(graph.rawValue))
            case .reopened(let operation):
                begin(.reopened)
                add(operation)
            case .rangeFinished(let range, let outcome):
                begin(.rangeFinished)
                add(UInt64(range.count))
                try add(.finished(range[range.startIndex], outcome))
            case .operationsAdded, .graphClosed, .deadlinePassed, .cancelled, .suspended,
                .queueDefined, .queueLimit, .queuePriority, .priority, .keyLimit, .rateSet,
                .queueReset, .keyReset, .dependencyAdded, .dependencyRemoved, .trigger:
                begin(.json)
                add(Array(try JSONEncoder().encode(record)))
            }
        }

        private mutating func add(_ operation: OperationID, _ outcome: Outcome) {
            switch outcome {
            case .succeeded:
                begin(.succeeded)
                add(operation)
            case .cancelled(let reason):
                begin(.cancelled)
                add(operation)
                add(reason)
            case .skipped(let cause):
                begin(.skipped)
                add(operation)
                add(cause)
            case .failed(let error):
                begin(.failed)
                add(operation)
                add(RowText.text(error))
            }
        }

        private mutating func add(_ ending: AttemptEnding) {
            switch ending {
            case .succeeded: add(Ending.succeeded.rawValue)
            case .cancelled: add(Ending.cancelled.rawValue)
            case .returned: add(Ending.returned.rawValue)
            case .lost: add(Ending.lost.rawValue)
            case .crashed: add(Ending.crashed.rawValue)
            case .failed(let error):
                add(Ending.failed.rawValue)
                add(RowText.text(error))
            }
        }
    }
}

// MARK: - Reading

extension JournalBytes {
    fileprivate struct Reader {
        let bytes: [UInt8]
        private var position = 0

        init(bytes: [UInt8]) { self.bytes = bytes }

        static var damage: RowDamage { RowDamage(what: "a row of its journal that cannot be read") }

        var isAtEnd: Bool { position == bytes.count }

        mutating func number() throws -> UInt64 {
            var value: UInt64 = 0
            var shift: UInt64 = 0
            while position < bytes.count, shift < 64 {
                let byte = bytes[position]
                position += 1
                value |= UInt64(byte & 0x7F) << shift
                if byte < 0x80 { return value }
                shift += 7
            }
            throw Self.damage
        }

        mutating func number<Number: FixedWidthInteger>(as: Number.Type) throws -> Number {
            guard let number = Number(exactly: try number()) else { throw Self.damage }
            return number
        }

        /// The number of things that follow. Each of them takes at least one byte.
        mutating func count() throws -> Int {
            let count = try number(as: Int.self)
            guard count <= bytes.count - position else { throw Self.damage }
            return count
        }

        mutating func signed() throws -> Int64 {
            let number = try number()
            return Int64(bitPattern: number >> 1) ^ -Int64(number & 1)
        }

        mutating func fixed() throws -> UInt64 {
            guard bytes.count - position >= 8 else { throw Self.damage }
            defer { position += 8 }
            return bytes[position..<position + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }

        mutating func slice() throws -> ArraySlice<UInt8> {
            let count = try count()
            defer { position += count }
            return bytes[position..<position + count]
        }

        mutating func text() throws -> String {
            guard let text = String(validating: try slice(), as: UTF8.self) else {
                throw Self.damage
            }
            return text
        }

        mutating func operation() throws -> OperationID {
            let graph = GraphID(rawValue: try number(as: UInt32.self))
            return OperationID(graph: graph, index: try number(as: UInt32.self))
        }

        mutating func attempt() throws -> AttemptID {
            let epoch = Epoch(rawValue: try number(as: UInt32.self))
            return AttemptID(epoch: epoch, number: try number())
        }

        mutating func time() throws -> WallTime {
            WallTime(nanosecondsSince1970: try signed())
        }

        /// A result whose output and log are kept elsewhere: one byte stands for each.
        mutating func result(at wall: WallTime) throws -> StoredResult {
            let operation = try operation()
            let attempt = try attempt()
            let flags = try number()
            guard flags < 16 else { throw Self.damage }
            func time() throws -> WallTime {
                let nanoseconds = wall.nanosecondsSince1970 &+ (try signed())
                return WallTime(nanosecondsSince1970: nanoseconds)
            }
            let start = flags & 8 != 0 ? try time() : nil
            var result = StoredResult(
                operation: operation,
                attempt: attempt,
                output: flags & 1 != 0 ? Payload(bytes: [0]) : .empty,
                log: KeptLog(tail: flags & 2 != 0 ? [0] : []),
                startedAt: start,
                endedAt: try time()
            )
            result.isUpToDate = flags & 4 != 0
            return result
        }

        mutating func record() throws -> StoreRecord {
            guard let tag = Tag(rawValue: try number()) else { throw Self.damage }
            switch tag {
            case .json: return try json()
            case .granted:
                return .granted(
                    try attempt(),
                    try operation(),
                    ordinal: try number(as: UInt32.self),
                    to: Incarnation(rawValue: try fixed())
                )
            case .started: return .started(try attempt(), try operation())
            case .resumed: return .resumed(try attempt(), try operation())
            case .succeeded: return .finished(try operation(), .succeeded)
            case .cancelled: return .finished(try operation(), .cancelled(reason: try text()))
            case .skipped: return .finished(try operation(), .skipped(cause: try operation()))
            case .failed:
                return .finished(try operation(), .failed(try RowText.error(try text())))
            case .attemptEnded: return .attemptEnded(try attempt(), try operation(), try ending())
            case .retryScheduled: return .retryScheduled(try operation(), at: try time())
            case .delayed: return .delayed(try operation(), until: try time())
            case .delayEnded: return .delayed(try operation(), until: nil)
            case .rateUsed:
                let isKey = try number() == 1
                let name = try text()
                return .rateUsed(isKey ? .key(name) : .queue(name), fullAt: try time())
            case .graphAdded: return .graphAdded(GraphID(rawValue: try number(as: UInt32.self)))
            case .reopened: return .reopened(try operation())
            case .rangeFinished: return try rangeFinished()
            }
        }

        /// A count, and the record of the first operation.
        private mutating func rangeFinished() throws -> StoreRecord {
            let count = try number(as: UInt32.self)
            // Another range would be read by recursion, as deep as somebody has written it.
            guard position < bytes.count, bytes[position] != UInt8(Tag.rangeFinished.rawValue),
                case .finished(let first, let outcome) = try record()
            else { throw Self.damage }
            let (end, isOver) = first.index.addingReportingOverflow(count)
            guard count > 0, !isOver else { throw Self.damage }
            let range = OperationRange(graph: first.graph, indices: first.index..<end)
            return .rangeFinished(range, outcome)
        }

        private mutating func json() throws -> StoreRecord {
            let bytes = Data(try slice())
            do {
                return try JSONDecoder().decode(StoreRecord.self, from: bytes)
            } catch {
                throw Self.damage
            }
        }

        private mutating func ending() throws -> AttemptEnding {
            switch Ending(rawValue: try number()) {
            case .succeeded: return .succeeded
            case .failed: return .failed(try RowText.error(try text()))
            case .cancelled: return .cancelled
            case .returned: return .returned
            case .lost: return .lost
            case .crashed: return .crashed
            case nil: throw Self.damage
            }
        }
    }
}
