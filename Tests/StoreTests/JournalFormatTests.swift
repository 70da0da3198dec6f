import Foundation
import OperonModel
import OperonPorts
import Testing

@testable import OperonSQLite

/// The records in the form in which version 1 of the journal has them. Never change one of these
/// bytes or texts: files that have them exist.
@Suite struct JournalFormatTests {
    private static let id = OperationID(graph: GraphID(rawValue: 3), index: 700)
    private static let range = OperationRange(graph: id.graph, indices: 700..<1_724)
    private static let attempt = AttemptID(epoch: Epoch(rawValue: 2), number: 300)
    private static let late = WallTime(nanosecondsSince1970: 1_700_000_000_123_456_789)
    private static let rate = StartRate(3, per: .seconds(2), burst: 5)
    private static let suspension = Suspension(by: "b", reason: "r", until: late)
    private static let trigger = TriggerID(rawValue: 9)

    private static func firing(_ status: FiringStatus) -> StoreRecord {
        var firing = StoredFiring(
            id: FiringID(trigger, 4),
            identity: "i",
            plannedAt: late,
            occurredAt: late,
            ordinal: 2,
            floor: late,
            status: status
        )
        firing.count = 6
        firing.data = "{}"
        firing.reason = "r"
        return .trigger(.firing(firing))
    }

    private static var state: TriggerState {
        var state = TriggerState(position: late)
        state.suspension = suspension
        state.isRemoved = true
        return state
    }

    private static var stored: StoredTrigger {
        StoredTrigger(id: trigger, name: "n", addedAt: late, addedBy: "b", body: [1, 255])
    }

    private static var queue: QueueSettings {
        var queue = QueueSettings(name: "q", maxConcurrentOperationCount: 2)
        queue.isSuspended = true
        queue.priority = .high
        queue.rate = rate
        return queue
    }

    /// Records that are written field by field, as hexadecimal digits.
    static let plain: [(StoreRecord, String)] = [
        (
            .granted(attempt, id, ordinal: 1, to: Incarnation(rawValue: 0x0123_4567_89AB_CDEF)),
            "0102ac0203bc0501efcdab8967452301"
        ),
        (.started(attempt, id), "0202ac0203bc05"), (.resumed(attempt, id), "0d02ac0203bc05"),
        (.reopened(id), "0e03bc05"),
        (.graphAdded(GraphID(rawValue: 3)), "0c03"), (.finished(id, .succeeded), "0303bc05"),
        (.finished(id, .cancelled(reason: "ö")), "0403bc0502c3b6"),
        (.finished(id, .skipped(cause: id)), "0503bc0503bc05"),
        (.finished(id, .failed(.exit(code: 3))), "0603bc0506657869747c33"),
        (.rangeFinished(range, .cancelled(reason: "ö")), "0f80080403bc0502c3b6"),
        (.attemptEnded(attempt, id, .succeeded), "0702ac0203bc0500"),
        (.attemptEnded(attempt, id, .failed(.timeout)), "0702ac0203bc05010774696d656f7574"),
        (.attemptEnded(attempt, id, .cancelled), "0702ac0203bc0502"),
        (.attemptEnded(attempt, id, .returned), "0702ac0203bc0503"),
        (.attemptEnded(attempt, id, .lost), "0702ac0203bc0504"),
        (.attemptEnded(attempt, id, .crashed), "0702ac0203bc0505"),
        (.retryScheduled(id, at: late), "0803bc05aab4aed8c7bfce972f"),
        (.delayed(id, until: late), "0903bc05aab4aed8c7bfce972f"),
        (.delayed(id, until: nil), "0a03bc05"),
        (.rateUsed(.key("k"), fullAt: late), "0b01016baab4aed8c7bfce972f"),
        (.rateUsed(.queue("q"), fullAt: late), "0b000171aab4aed8c7bfce972f"),
    ]

    /// Records that are JSON, one line of `Golden/journal-records.jsonl` for each.
    static let json: [StoreRecord] = [
        .operationsAdded(id.graph, first: 5),
        .operationsAdded(
            id.graph,
            first: 5,
            by: HeldAttempt(attempt: attempt, operation: id)
        ),
        .graphClosed(id.graph), .deadlinePassed(id),
        .cancelled(.operation(id), reason: "r", cascade: true, by: "b"),
        .cancelled(.graph(id.graph), reason: "", cascade: false, by: ""),
        .cancelled(.queue("q"), reason: "", cascade: false, by: ""),
        .suspended(.operation(id), suspension), .suspended(.queue("q"), nil),
        .queueDefined(queue), .queueDefined(QueueSettings(name: "q")),
        .queueLimit(queue: "q", maximum: 2), .queueLimit(queue: "q", maximum: nil),
        .queuePriority(queue: "q", .veryLow), .priority(id, .veryHigh),
        .keyLimit(KeySettings(name: "k", limit: 2, rate: rate), byCommand: true),
        .rateSet(.key("k"), rate, byCommand: true),
        .rateSet(.queue("q"), nil, byCommand: false), .queueReset("q"),
        .keyReset("k"), .dependencyAdded(id, on: id, .succeeded),
        .dependencyRemoved(id, on: id), .trigger(.added(stored, state)),
        .trigger(.replaced(stored, state)),
        .trigger(.changed(trigger, TriggerState(position: late))),
        .trigger(.removed(trigger)), firing(.waiting),
        firing(.merged(into: 3)), firing(.accepted),
        firing(.submitted(id.graph)), firing(.ended(id.graph, .failed)),
        firing(.skipped), firing(.dropped), firing(.refused),
        .trigger(.firingForgotten(FiringID(trigger, 4))),
    ]

    /// One record behind the counts of contents, of results and of records.
    private func decode(_ bytes: [UInt8]) throws -> [StoreRecord] {
        try JournalBytes.decode([0, 0, 1] + bytes, at: Self.late).records
    }

    private func digits(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { String(format: "%02x", $0) }.joined()
    }

    private func encoded(_ record: StoreRecord) throws -> [UInt8] {
        let batch = StoreBatch(wall: Self.late, records: [record])
        return Array(try JournalBytes.encode(batch, contents: []).dropFirst(3))
    }

    @Test func `records that are written field by field have these bytes`() throws {
        for (record, expected) in Self.plain {
            let bytes = try encoded(record)
            #expect(digits(bytes) == expected, "\(record)")
            #expect(try decode(bytes) == [record])
        }
    }

    @Test func `records that are JSON are read from these texts`() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("Golden/journal-records.jsonl")
        let texts = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        #expect(texts.count == Self.json.count)
        for (record, text) in zip(Self.json, texts) {
            let count = text.utf8.count
            // In two bytes even if one is enough.
            let length = [UInt8(count & 127 | 128), UInt8(count >> 7)]
            #expect(try decode([0] + length + Array(text.utf8)) == [record], "\(record)")
            #expect(try decode(encoded(record)) == [record], "\(record)")
        }
    }

    /// Ranges in ranges, as deep as there is room, and ranges of nothing or beyond all numbers.
    @Test func `a range of anything but operations is damage`() {
        let deep = (0..<100_000).flatMap { _ in [0x0F, 1] as [UInt8] }
        let none: [UInt8] = [0x0F, 0, 3, 3, 5]
        let beyond: [UInt8] = [0x0F, 2, 3, 3, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F]
        let start: [UInt8] = [0x0F, 2, 2, 2, 3, 3, 5]
        for bytes in [deep, none, beyond, start] {
            #expect(throws: RowDamage.self) { try decode(bytes) }
        }
    }

    /// A result of an attempt, whose output and log are elsewhere.
    @Test func `a result has these bytes`() throws {
        var batch = StoreBatch(wall: Self.late)
        batch.results = [
            StoredResult(
                operation: Self.id,
                attempt: Self.attempt,
                output: Payload(bytes: [0]),
                log: KeptLog(tail: [0]),
                startedAt: WallTime(nanosecondsSince1970: Self.late.nanosecondsSince1970 - 5),
                endedAt: Self.late
            )
        ]
        let bytes = try JournalBytes.encode(batch, contents: [8])
        #expect(digits(bytes) == "01080103bc0502ac020b090000")
        #expect(try JournalBytes.decode(bytes, at: Self.late).results == batch.results)
    }

    /// A new kind of record does not compile here before it is listed above.
    @Test func `every kind of record is among these`() {
        var kinds: Set<Int> = []
        for record in Self.plain.map(\.0) + Self.json {
            switch record {
            case .graphAdded: kinds.insert(0)
            case .rangeFinished: kinds.insert(26)
            case .operationsAdded: kinds.insert(1)
            case .graphClosed: kinds.insert(2)
            case .granted: kinds.insert(3)
            case .started: kinds.insert(4)
            case .resumed: kinds.insert(5)
            case .attemptEnded: kinds.insert(6)
            case .finished: kinds.insert(7)
            case .retryScheduled: kinds.insert(8)
            case .delayed: kinds.insert(9)
            case .deadlinePassed: kinds.insert(10)
            case .cancelled: kinds.insert(11)
            case .suspended: kinds.insert(12)
            case .queueDefined: kinds.insert(13)
            case .queueLimit: kinds.insert(14)
            case .queuePriority: kinds.insert(15)
            case .priority: kinds.insert(16)
            case .keyLimit: kinds.insert(17)
            case .rateSet: kinds.insert(18)
            case .rateUsed: kinds.insert(19)
            case .queueReset: kinds.insert(20)
            case .keyReset: kinds.insert(21)
            case .reopened: kinds.insert(22)
            case .dependencyAdded: kinds.insert(23)
            case .dependencyRemoved: kinds.insert(24)
            case .trigger: kinds.insert(25)
            }
        }
        #expect(kinds == Set(0...26))
    }
}
