import Foundation
import OperonModel
import Testing

@testable import OperonRuntime

/// A process that ends with events in hand is played by one that lets go of the file.
@Suite struct EventsInHandTests {
    private func withStore(_ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "operon-inhand-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder.path + "/graphs.db")
    }

    @Test func `what was in hand at three deaths in a row is found out`() throws {
        try withStore { path in
            for death in 0..<3 {
                let events = try EventsInHand(besideStore: path)
                #expect(!events.isFatal(7), "after \(death) deaths")
                #expect(events.isSuspect(7) == (death > 0))
                events.take(7)
            }
            let events = try EventsInHand(besideStore: path)
            #expect(events.isFatal(7))
            #expect(!events.isSuspect(8))
            events.forget(7)
            #expect(!events.hasSuspects)
            #expect(try !EventsInHand(besideStore: path).hasSuspects)
        }
    }

    @Test func `what was handled once is beyond suspicion`() throws {
        try withStore { path in
            for _ in 0..<2 { try EventsInHand(besideStore: path).take(7) }
            let events = try EventsInHand(besideStore: path)
            events.take(7)
            // It was only looked at.
            events.clear(isHandled: false)
            #expect(events.isSuspect(7))
            events.take(7)
            events.clear(isHandled: true)
            #expect(!events.isSuspect(7))
            #expect(try !EventsInHand(besideStore: path).hasSuspects)
        }
    }

    @Test func `a death with nothing in hand is nobody's`() throws {
        try withStore { path in
            for _ in 0..<4 {
                let events = try EventsInHand(besideStore: path)
                for key in 0..<5_000 as Range<UInt64> { events.take(key) }
                events.clear(isHandled: true)
            }
            #expect(try !EventsInHand(besideStore: path).hasSuspects)
        }
    }

    @Test func `a file of any bytes is read, never a trap`() throws {
        try withStore { path in
            var random = SystemRandomNumberGenerator()
            let size = 8 * (3 + 1_024 + 2 * 1_024)
            for place in 0..<64 {
                var bytes = (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
                // Its own first word, so that the rest is looked at.
                let version: UInt64 = 0x4F_50_45_52_4F_4E_00_01
                for byte in 0..<8 {
                    bytes[byte] = UInt8(truncatingIfNeeded: version >> UInt64(8 * byte))
                }
                let length = place.isMultiple(of: 2) ? size : Int.random(in: 0..<size)
                try Data(bytes.prefix(length)).write(to: URL(filePath: path + "-inhand"))
                let events = try EventsInHand(besideStore: path)
                events.take(1)
                events.clear(isHandled: true)
            }
        }
    }

    // MARK: - Identity

    private let operation = OperationID(graph: GraphID(rawValue: 3), index: 4)

    private func held(_ attempt: UInt64) -> HeldAttempt {
        HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: 1), number: attempt),
            operation: operation
        )
    }

    @Test func `the same request of the next attempt, under another number, is the same`() {
        func key(_ attempt: UInt64, _ number: UInt64, _ bytes: [UInt8]) -> UInt64 {
            let request = AdditionRequest(number: number, operations: bytes)
            return EventIdentity(.added(held(attempt), request)).key
        }
        #expect(key(1, 1, [1, 2, 3]) == key(2, 9, [1, 2, 3]))
        #expect(key(1, 1, [1, 2, 3]) != key(1, 1, [1, 2, 4]))
        #expect(key(1, 1, [1, 2, 3]) != key(1, 1, [1, 2, 3, 0]))
    }

    @Test func `events of different kinds, and of different operations, differ`() {
        var other = held(1)
        other.operation = OperationID(graph: operation.graph, index: 5)
        let result = AttemptResult(end: .succeeded, startedAt: .zero, endedAt: .zero)
        let events: [WorkerEvent] = [
            .started(held(1), at: .zero), .started(other, at: .zero), .returned(held(1)),
            .finished(held(1), result), .read(held(1), ReadRequest(number: 1, name: "")),
            .yielded(held(1), WaitRequest(number: 1, names: [])),
            .added(held(1), AdditionRequest(number: 1, operations: [])),
        ]
        #expect(Set(events.map { EventIdentity($0).key }).count == events.count)
    }
}
