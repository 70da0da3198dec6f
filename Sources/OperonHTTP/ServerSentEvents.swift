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

    mutating func read(_ bytes: some Sequence<UInt8>) throws(EventTooLarge) -> [ServerSentEvent] {
        var found: [ServerSentEvent] = []
        for byte in bytes {
            // A line ends with LF, CR, or both.
            let isSecond = isAfterReturn && byte == UInt8(ascii: "\n")
            isAfterReturn = byte == UInt8(ascii: "\r")
            if isSecond { continue }
            if byte == UInt8(ascii: "\n") || isAfterReturn {
                if let event = endLine() { found.append(event) }
            } else {
                line.append(byte)
                guard line.count + event.data.count <= Self.eventBytesMax else {
                    throw EventTooLarge()
                }
            }
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
        switch String(decoding: line[..<colon], as: UTF8.self) {
        case "id": event.id = String(decoding: value, as: UTF8.self)
        case "event": event.event = String(decoding: value, as: UTF8.self)
        case "data":
            if hasData { event.data.append(UInt8(ascii: "\n")) }
            event.data += value
            hasData = true
        default: break
        }
        return nil
    }
}
