/// The JSON of an event, on one line with sorted keys: the bytes that `JSONEncoder` would write for
/// the same view, after `PrintableJSON`. Written by hand because the API writes one for every event
/// of every operation.
package enum EventJSON {
    package static func line(_ event: EventView) -> [UInt8] {
        var object = ObjectWriter(capacity: 384)
        object.text("at", event.at.description)
        object.text("attempt", event.attempt)
        object.text("by", event.by)
        object.number("count", event.count)
        object.text("ending", event.ending)
        if let error = event.error { object.nested("error") { write(error, to: &$0) } }
        object.number("firing", event.firing)
        object.number("graph", event.graph)
        object.text("graphName", event.graphName)
        object.flag("isUpToDate", event.isUpToDate)
        object.text("key", event.key)
        object.text("kind", event.kind.rawValue)
        if let operation = event.operation {
            object.nested("operation") { nested in
                nested.number("graph", operation.graph)
                nested.number("index", operation.index)
                nested.text("name", operation.name)
            }
        }
        object.text("outcome", event.outcome?.name)
        object.text("queue", event.queue)
        object.text("reason", event.reason)
        object.number("sequence", event.sequence)
        object.text("trigger", event.trigger)
        object.text("worker", event.worker)
        return PrintableJSON.escaped(object.end())
    }

    private static func write(_ error: ErrorView, to object: inout ObjectWriter) {
        object.number("bytes", error.bytes)
        object.text("code", error.code)
        object.text("detail", error.detail)
        object.number("exitCode", error.exitCode)
        object.number("limit", error.limit)
        object.text("message", error.message)
        object.text("payload", error.payload)
        object.text("payloadBase64", error.payloadBase64)
        object.text("type", error.type)
    }
}

/// Writes the fields of one object, in the order of the calls. A field without a value is left out.
private struct ObjectWriter {
    private var bytes: [UInt8] = []
    private var isFirst = true

    init(capacity: Int) {
        bytes.reserveCapacity(capacity)
        bytes.append(UInt8(ascii: "{"))
    }

    consuming func end() -> [UInt8] {
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    mutating func text(_ name: StaticString, _ value: String?) {
        guard let value else { return }
        begin(name)
        bytes.append(UInt8(ascii: "\""))
        let start = bytes.count
        bytes.append(contentsOf: value.utf8)
        if bytes[start...].contains(where: Self.needsEscape) {
            let text = Array(bytes[start...])
            bytes.removeSubrange(start...)
            for byte in text { append(escaped: byte) }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    mutating func number(_ name: StaticString, _ value: (some BinaryInteger)?) {
        guard let value else { return }
        begin(name)
        bytes.append(contentsOf: String(value).utf8)
    }

    mutating func flag(_ name: StaticString, _ value: Bool?) {
        guard let value else { return }
        begin(name)
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    mutating func nested(_ name: StaticString, _ body: (inout ObjectWriter) -> Void) {
        begin(name)
        bytes.append(UInt8(ascii: "{"))
        isFirst = true
        body(&self)
        isFirst = false
        bytes.append(UInt8(ascii: "}"))
    }

    private mutating func begin(_ name: StaticString) {
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isFirst = false
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: name.description.utf8)
        bytes.append(contentsOf: "\":".utf8)
    }

    private static func needsEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    /// RFC 8259, 7: the quotation mark, the backslash and the control characters.
    private mutating func append(escaped byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
        case 0x08: bytes.append(contentsOf: "\\b".utf8)
        case 0x09: bytes.append(contentsOf: "\\t".utf8)
        case 0x0A: bytes.append(contentsOf: "\\n".utf8)
        case 0x0C: bytes.append(contentsOf: "\\f".utf8)
        case 0x0D: bytes.append(contentsOf: "\\r".utf8)
        case 0..<0x20:
            let digits = String(byte, radix: 16)
            bytes.append(contentsOf: "\\u00".utf8)
            if digits.utf8.count == 1 { bytes.append(UInt8(ascii: "0")) }
            bytes.append(contentsOf: digits.utf8)
        default: bytes.append(byte)
        }
    }
}
