import HummingbirdCore
import NIOCore
import OperonModel
import OperonPorts
import Synchronization

/// Writes server-sent events (WHATWG HTML, 9.2), each in one piece, so that several tasks can write
/// at the same time.
struct EventWriter: Sendable {
    private let writer: SharedWriter
    private let channel: any Channel
    private let writeTime: TimeAmount

    init(_ writer: any ResponseBodyWriter, _ channel: any Channel, writeTime: Duration) {
        self.writer = SharedWriter(base: writer)
        self.channel = channel
        self.writeTime = TimeAmount(writeTime)
    }

    /// - Parameter event: a word; `data` never contains a line end.
    func send(_ event: String, _ data: some Encodable, id: UInt64? = nil) async throws {
        var buffer = ByteBuffer()
        if let id { buffer.writeString("id: \(id)\n") }
        buffer.writeString("event: \(event)\ndata: ")
        buffer.writeBytes(try JSONBytes.line(data))
        buffer.writeString("\n\n")
        try await write(buffer)
    }

    /// Writes what other readers get, too.
    func send<View: Encodable>(_ event: String, _ shared: SharedView<View>) async throws {
        let bytes = try shared.encoded { view in
            Array("event: \(event)\ndata: ".utf8) + (try JSONBytes.line(view))
                + Array("\n\n".utf8)
        }
        try await write(ByteBuffer(bytes: bytes))
    }

    /// Writes a batch in one piece.
    func send(_ batch: [EventItem]) async throws {
        var buffer = ByteBuffer()
        for item in batch {
            switch item {
            case .event(let event): buffer.writeBytes(event.encoded(by: Self.message))
            case .position(let number): buffer.writeString("id: \(number)\n\n")
            case .gap(let first, let last):
                buffer.writeString("id: \(last)\nevent: gap\ndata: ")
                buffer.writeBytes(try JSONBytes.line(GapBody(first: first, last: last)))
                buffer.writeString("\n\n")
            }
        }
        try await write(buffer)
    }

    /// An event as all its readers get it.
    private static func message(_ event: EventView) -> [UInt8] {
        let head = "id: \(event.sequence)\nevent: \(event.kind.rawValue)\ndata: "
        return Array(head.utf8) + EventJSON.line(event) + Array("\n\n".utf8)
    }

    /// Writes a comment, which readers skip.
    func comment(_ text: String) async throws {
        try await write(ByteBuffer(string: ": \(text)\n\n"))
    }

    private func write(_ buffer: ByteBuffer) async throws {
        let alarm = channel.close(in: writeTime)
        defer { alarm.cancel() }
        var base = writer.base
        try await base.write(buffer)
    }

    /// `@unchecked`: the server core's value wraps its outbound writer, which many tasks may use at
    /// the same time. Each of our tasks writes with a copy.
    private struct SharedWriter: @unchecked Sendable {
        let base: any ResponseBodyWriter
    }
}

extension Channel {
    /// Closes the connection after this time, unless the result is cancelled: the other end then
    /// neither reads nor sends.
    func close(in time: TimeAmount) -> Scheduled<Void> {
        eventLoop.scheduleTask(in: time) { self.close(promise: nil) }
    }
}

/// The current readers of streams, and the signal that ends them.
final class StreamTable: Sendable {
    private let maximum: Int
    private let state = Mutex(State())

    private struct State {
        var count = 0
        var isOver = false
        var next = 0
        var waiting: [Int: AsyncStream<Never>.Continuation] = [:]
    }

    init(maximum: Int) { self.maximum = maximum }

    /// `false` if there are too many readers.
    func enter() -> Bool {
        state.withLock { state in
            guard state.count < maximum, !state.isOver else { return false }
            state.count += 1
            return true
        }
    }

    func leave() { state.withLock { $0.count -= 1 } }

    var count: Int { state.withLock { $0.count } }

    func end() {
        let waiting = state.withLock { state in
            state.isOver = true
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for continuation in waiting { continuation.finish() }
    }

    /// Returns when the streams end or the task is cancelled.
    func untilEnd() async {
        let (stream, continuation) = AsyncStream<Never>.makeStream()
        let id: Int? = state.withLock { state in
            guard !state.isOver else { return nil }
            state.next += 1
            state.waiting[state.next] = continuation
            return state.next
        }
        guard let id else { return }
        for await _ in stream {}
        state.withLock { $0.waiting[id] = nil }
    }
}
