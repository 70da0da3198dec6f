import NIOCore

/// Writes what a broker writes, byte by byte from the specification.
struct BrokerBytes {
    var buffer = ByteBuffer()

    private func short(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + Array(text.utf8) }

    mutating func frame(_ type: UInt8, channel: UInt16 = 1, _ payload: [UInt8]) {
        buffer.writeInteger(type)
        buffer.writeInteger(channel)
        buffer.writeInteger(UInt32(payload.count))
        buffer.writeBytes(payload + [0xCE])
    }

    /// A connection, from its start to where channels may be opened.
    mutating func login() {
        let mechanisms: [UInt8] = [0, 0, 0, 5] + Array("PLAIN".utf8)
        let locales: [UInt8] = [0, 0, 0, 5] + Array("en_US".utf8)
        frame(1, channel: 0, [0, 10, 0, 10, 0, 9, 0, 0, 0, 0] + mechanisms + locales)
        // As many channels as one likes, frames of 4,096 bytes, no heartbeat.
        frame(1, channel: 0, [0, 10, 0, 30, 0, 0, 0, 0, 0x10, 0, 0, 0])
        frame(1, channel: 0, [0, 10, 0, 41, 0])
    }

    mutating func channelOpened(_ channel: UInt16) {
        frame(1, channel: channel, [0, 20, 0, 11, 0, 0, 0, 0])
    }

    mutating func deliver(tag: String) {
        frame(
            1,
            [0, 60, 0, 60] + short(tag) + [0, 0, 0, 0, 0, 0, 0, 7, 0] + short("operon.events")
                + short("coordinator")
        )
    }

    mutating func returned(key: String) {
        frame(
            1,
            [0, 60, 0, 50, 1, 0x38] + short("NO_ROUTE") + short("operon.dispatch") + short(key)
        )
    }

    mutating func header(bodyBytes: Int, replyTo: String? = nil) {
        var payload: [UInt8] = [0, 60, 0, 0]
        payload += withUnsafeBytes(of: UInt64(bodyBytes).bigEndian, Array.init)
        payload += replyTo == nil ? [0, 0] : [0x02, 0]
        if let replyTo { payload += short(replyTo) }
        frame(2, payload)
    }

    mutating func message(_ body: [UInt8], tag: String = "events", pieceMax: Int = 4_088) {
        deliver(tag: tag)
        header(bodyBytes: body.count)
        var rest = body[...]
        while !rest.isEmpty {
            frame(3, Array(rest.prefix(pieceMax)))
            rest = rest.dropFirst(pieceMax)
        }
    }
}
