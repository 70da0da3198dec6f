import OperonModel
import OperonPorts
import Testing

@testable import OperonAMQP

@Suite struct OutboxTests {
    private func message(_ destination: Outbox.Destination, _ bytes: Int) -> Outbox.Message {
        .init(destination: destination, priority: 0, body: [UInt8](repeating: 0, count: bytes))
    }

    @Test func `a beat overtakes events that wait`() {
        let outbox = Outbox(bytesMax: 1 << 20)
        outbox.begin()
        _ = outbox.append(message(.events, 10))
        _ = outbox.append(message(.events, 11))
        _ = outbox.append(message(.beats, 12))

        #expect(outbox.take(bytesMax: 1 << 20).map(\.body.count) == [12, 10, 11])
    }

    @Test func `while a large message is under way only beats are taken`() {
        let outbox = Outbox(bytesMax: 1 << 20)
        outbox.begin()
        _ = outbox.append(message(.events, 10))
        _ = outbox.append(message(.beats, 11))

        #expect(outbox.takeUrgent().map(\.body.count) == [11])
        #expect(outbox.takeUrgent().isEmpty)
        #expect(outbox.take(bytesMax: 1 << 20).map(\.body.count) == [10])
        #expect(outbox.bytes == 0)
    }

    private func bulk(_ bytes: Int) -> Outbox.Message {
        var message = message(
            .worker(WorkerAddress(incarnation: Incarnation(rawValue: 1), connection: 1)),
            bytes
        )
        message.isBulk = true
        return message
    }

    @Test func `bulk is overtaken by everything else and keeps its own order`() {
        let outbox = Outbox(bytesMax: 1 << 20)
        outbox.begin()
        for bytes in [20, 21] { _ = outbox.append(bulk(bytes)) }
        _ = outbox.append(message(.events, 11))
        _ = outbox.append(message(.beats, 12))

        #expect(outbox.take(bytesMax: 1 << 20).map(\.body.count) == [12, 11, 20, 21])
        #expect(outbox.bytes == 0)
    }

    @Test(.timeLimit(.minutes(5)))
    func `whoever sends bulk waits behind a mebibyte of it, and nobody else does`() async {
        let outbox = Outbox(bytesMax: 1 << 20)
        outbox.begin()
        for _ in 0..<5 { _ = outbox.append(bulk(256 << 10)) }
        // Returns at once: this lane is empty.
        await outbox.waitForRoom()

        let waiting = Task {
            await outbox.waitForRoom(isBulk: true)
            return outbox.bytes
        }
        #expect(outbox.take(bytesMax: 1).count == 1)
        #expect(outbox.take(bytesMax: 1).count == 1)
        #expect(await waiting.value <= 1 << 20)
    }

    @Test func `bulk of an earlier connection is gone with it`() {
        let outbox = Outbox(bytesMax: 1 << 20)
        outbox.begin()
        _ = outbox.append(bulk(1_000))
        outbox.drop()

        #expect(outbox.bytes == 0)
        outbox.begin()
        #expect(outbox.take(bytesMax: 1 << 20).isEmpty)
    }

    @Test func `the event loop is told once until it has found the outbox empty`() {
        let outbox = Outbox(bytesMax: 1 << 20)
        outbox.begin()

        #expect(outbox.append(message(.events, 1)))
        #expect(!outbox.append(message(.events, 1)))
        #expect(outbox.take(bytesMax: 1 << 20).count == 2)
        #expect(!outbox.append(message(.events, 1)))
        #expect(outbox.take(bytesMax: 1 << 20).count == 1)
        #expect(outbox.take(bytesMax: 1 << 20).isEmpty)
        #expect(outbox.append(message(.events, 1)))
    }

    @Test func `what is taken at a time ends with the message that reaches the bound`() {
        let outbox = Outbox(bytesMax: 1 << 20)
        outbox.begin()
        for _ in 0..<10 { _ = outbox.append(message(.events, 1_000)) }

        #expect(outbox.take(bytesMax: 3_000).count == 3)
        #expect(outbox.take(bytesMax: 1).count == 1)
    }

    @Test func `without a connection nothing is kept`() {
        let outbox = Outbox(bytesMax: 1 << 20)
        #expect(!outbox.append(message(.events, 1)))
        outbox.begin()
        _ = outbox.append(message(.events, 1))
        outbox.drop()

        #expect(outbox.bytes == 0)
        outbox.begin()
        #expect(outbox.take(bytesMax: 1 << 20).isEmpty)
    }

    @Test(.timeLimit(.minutes(5)))
    func `senders wait while there is too much and go on when it is taken`() async {
        let outbox = Outbox(bytesMax: 10_000)
        outbox.begin()
        let accepted = AsyncStream<Int>.makeStream()
        let sending = Task {
            for index in 0..<50 {
                _ = outbox.append(message(.events, 1_000))
                accepted.continuation.yield(index)
                await outbox.waitForRoom()
            }
            accepted.continuation.finish()
        }

        var most = 0
        var taken = 0
        for await _ in accepted.stream {
            most = max(most, outbox.bytes)
            if outbox.bytes > 10_000 { taken += outbox.take(bytesMax: 5_000).count }
        }

        await sending.value
        #expect(most > 10_000 && most <= 10_000 + 1_128)
        #expect(taken + outbox.take(bytesMax: .max).count == 50)
    }

    @Test(.timeLimit(.minutes(5)))
    func `a sender that is cancelled does not wait`() async {
        let outbox = Outbox(bytesMax: 10)
        outbox.begin()
        _ = outbox.append(message(.events, 1_000))
        let waiting = Task { await outbox.waitForRoom() }

        waiting.cancel()

        await waiting.value
        #expect(outbox.bytes > 10)
    }
}
