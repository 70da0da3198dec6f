import OperonPorts
import Testing

@Suite(.timeLimit(.minutes(5)))
struct BatchBufferTests {
    @Test func `what waits is handed over in one batch`() async {
        let buffer = BatchBuffer<Int>(costLimit: 100)
        buffer.append([1, 2], cost: 1)
        buffer.append([3], cost: 1)

        var iterator = buffer.stream.makeAsyncIterator()
        #expect(await iterator.next() == [1, 2, 3])
    }

    @Test func `what arrived before the end is handed over after it`() async {
        let buffer = BatchBuffer<Int>(costLimit: 100)
        buffer.append([1], cost: 1)
        buffer.finish()
        buffer.append([2], cost: 1)

        var iterator = buffer.stream.makeAsyncIterator()
        #expect(await iterator.next() == [1])
        #expect(await iterator.next() == nil)
        #expect(buffer.gate.used == 0)
    }

    @Test func `a consumer that waits gets what arrives and the end`() async {
        let buffer = BatchBuffer<Int>(costLimit: 100)
        let consuming = Task {
            var all: [Int] = []
            for await batch in buffer.stream { all += batch }
            return all
        }
        for index in 0..<1_000 { buffer.append([index], cost: 1) }
        buffer.finish()

        #expect(await consuming.value == Array(0..<1_000))
    }

    @Test func `a consumer that is cancelled ends`() async {
        let buffer = BatchBuffer<Int>(costLimit: 100)
        let consuming = Task { for await _ in buffer.stream {} }

        consuming.cancel()

        await consuming.value
    }

    @Test func `room is reported once, when a full buffer was emptied`() async {
        let rooms = AsyncStream<Void>.makeStream()
        let buffer = BatchBuffer<Int>(costLimit: 10) { rooms.continuation.yield() }
        var iterator = buffer.stream.makeAsyncIterator()

        #expect(buffer.append([1], cost: 10))
        _ = await iterator.next()
        #expect(!buffer.append([2], cost: 11))
        #expect(!buffer.hasRoom)
        _ = await iterator.next()
        #expect(buffer.hasRoom)

        rooms.continuation.finish()
        var count = 0
        for await _ in rooms.stream { count += 1 }
        #expect(count == 1)
    }
}
