/// One event of a stream, as in WHATWG HTML 9.2.
struct ServerSentEvent: Hashable, Sendable {
    /// The id to send when reconnecting.
    var id: String?
    var event = "message"
    var data: [UInt8] = []
    /// It has an id and nothing else.
    var isPosition: Bool { data.isEmpty }
}

/// Parses bytes, in pieces of any size, to events.
struct ServerSentEventParser: Sendable {
    /// The most bytes of an event: the log of an operation, escaped.
    static let eventBytesMax = 16 << 20

    private var line: [UInt8] = []
    private var event = ServerSentEvent()
    private var hasData = false
    private var isAfterReturn = false

    /// An event that is larger than any that our streams send.
    struct EventTooLarge: Error {}

    mutating func read(_ bytes: [UInt8]) throws(EventTooLarge) -> [ServerSentEvent] {
        var found: [ServerSentEvent] = []
        var start = 0
        while start < bytes.count {
            // A line ends with LF, CR, or both.
            if isAfterReturn, bytes[start] == UInt8(ascii: "\n") {
                isAfterReturn = false
                start += 1
                continue
            }
            var end = start
            while end < bytes.count, bytes[end] != UInt8(ascii: "\n"),
                bytes[end] != UInt8(ascii: "\r")
            {
                end += 1
            }
            guard line.count + end - start + event.data.count <= Self.eventBytesMax else {
                throw EventTooLarge()
            }
            line += bytes[start..<end]
            isAfterReturn = end < bytes.count && bytes[end] == UInt8(ascii: "\r")
            if end < bytes.count, let event = endLine() { found.append(event) }
            start = end + 1
        }
        return found
    }

    private mutating func endLine() -> ServerSentEvent? {
        defer { line.removeAll(keepingCapacity: true) }
        if line.isEmpty {
            defer {
                event = ServerSentEvent()
                hasData = false
            }
            // An id alone is a position, which is kept for the next connection.
            return hasData || event.id != nil ? event : nil
        }
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        var value = line[colon...].dropFirst()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        let name = line[..<colon]
        if name.elementsEqual("data".utf8) {
            if hasData { event.data.append(UInt8(ascii: "\n")) }
            event.data += value
            hasData = true
        } else if name.elementsEqual("id".utf8) {
            event.id = String(decoding: value, as: UTF8.self)
        } else if name.elementsEqual("event".utf8) {
            event.event = String(decoding: value, as: UTF8.self)
        }
        return nil
    }
}
