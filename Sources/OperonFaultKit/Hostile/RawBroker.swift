import Foundation

/// One connection to the broker that says what a transport of ours never says: any queue, any
/// binding, any exchange, any properties. AMQP 0-9-1, one channel; one thread uses it.
package final class RawBroker {
    /// Properties of a message; those that are absent are not sent.
    package struct Properties: Sendable {
        package var contentType: String?
        package var contentEncoding: String?
        package var deliveryMode: UInt8?
        package var priority: UInt8?
        package var replyTo: String?
        package var expiration: String?

        package init() {}
    }

    private static let channel: UInt16 = 1
    /// What a broker's answer to a method may take.
    private static let patience = Duration.seconds(30)

    private let connection: RawConnection
    private var received: [UInt8] = []
    private var frameMax = 131_072
    /// Bytes of the body that is being received; `nil`: none is.
    private var missing: Int?
    private var body: [UInt8] = []
    /// Bodies that came and nobody has taken.
    private var bodies: [[UInt8]] = []
    /// Class and method of the last method that is neither a delivery nor a return.
    private var lastMethod: (UInt16, UInt16) = (0, 0)

    /// Logs in and opens the channel.
    ///
    /// - Parameter url: `amqp://USER:PASSWORD@HOST:PORT`, without a path.
    /// - Throws: `CommandFailure` if the broker does not let us in.
    package init(url: String) throws {
        guard let parts = URLComponents(string: url), let host = parts.host, let user = parts.user,
            let password = parts.password
        else { throw CommandFailure("no broker with a login: \(url)") }
        let port = UInt16(exactly: parts.port ?? 5_672) ?? 5_672
        connection = try RawConnection(to: Endpoint("\(host):\(port)"))
        try write(Array("AMQP".utf8) + [0, 0, 9, 1])
        try expect(10, 10)
        let login = [0] + Array(user.utf8) + [0] + Array(password.utf8)
        try method(0, 10, 11) { out in
            out.long(0)
            out.short("PLAIN")
            out.long(UInt32(login.count))
            out.bytes += login
            out.short("en_US")
        }
        try expect(10, 30)
        try method(0, 10, 31) { out in
            out.integer(UInt16(1))
            out.long(UInt32(frameMax))
            out.integer(UInt16(0))
        }
        try method(0, 10, 40) { out in
            out.short("/")
            out.short("")
            out.bytes.append(0)
        }
        try expect(10, 41)
        try method(Self.channel, 20, 10) { $0.short("") }
        try expect(20, 11)
    }

    // MARK: - What a worker's login may do

    /// An exclusive queue that ends with this connection, and consumes it.
    package func consume(_ queue: String, boundTo exchanges: [(exchange: String, key: String)])
        throws
    {
        try method(Self.channel, 50, 10) { out in
            out.integer(UInt16(0))
            out.short(queue)
            out.bytes.append(0b0100)
            out.long(0)
        }
        try expect(50, 11)
        for (exchange, key) in exchanges {
            try method(Self.channel, 50, 20) { out in
                out.integer(UInt16(0))
                out.short(queue)
                out.short(exchange)
                out.short(key)
                out.bytes.append(0)
                out.long(0)
            }
            try expect(50, 21)
        }
        try method(Self.channel, 60, 20) { out in
            out.integer(UInt16(0))
            out.short(queue)
            out.short("hostile")
            // Without acknowledgements.
            out.bytes.append(0b0010)
            out.long(0)
        }
        try expect(60, 21)
    }

    package func publish(
        _ body: [UInt8],
        exchange: String,
        key: String,
        _ properties: Properties
    ) throws {
        try method(Self.channel, 60, 40) { out in
            out.integer(UInt16(0))
            out.short(exchange)
            out.short(key)
            out.bytes.append(0)
        }
        var header = AMQPBytes()
        header.integer(UInt16(60))
        header.integer(UInt16(0))
        header.integer(UInt64(body.count))
        header.properties(properties)
        var frames = Self.frame(2, Self.channel, header.bytes)
        var rest = body[...]
        while !rest.isEmpty {
            let piece = rest.prefix(frameMax - 8)
            rest = rest.dropFirst(piece.count)
            frames += Self.frame(3, Self.channel, Array(piece))
        }
        try write(frames)
    }

    /// Returns when the broker has routed everything that was published here.
    package func synchronize() throws {
        try method(Self.channel, 60, 10) { out in
            out.long(0)
            out.integer(UInt16(0))
            out.bytes.append(0)
        }
        try expect(60, 11)
    }

    /// Messages that have come, after waiting so long at most for the first.
    package func receive(milliseconds: Int32) throws -> [[UInt8]] {
        connection.wait(milliseconds: milliseconds)
        try read()
        defer { bodies = [] }
        return bodies
    }

    // MARK: - Frames

    private static func frame(_ type: UInt8, _ channel: UInt16, _ payload: [UInt8]) -> [UInt8] {
        var out = AMQPBytes()
        out.bytes.append(type)
        out.integer(channel)
        out.long(UInt32(payload.count))
        return out.bytes + payload + [0xCE]
    }

    private func method(
        _ channel: UInt16,
        _ classNumber: UInt16,
        _ number: UInt16,
        _ arguments: (inout AMQPBytes) -> Void
    ) throws {
        var out = AMQPBytes()
        out.integer(classNumber)
        out.integer(number)
        arguments(&out)
        try write(Self.frame(1, channel, out.bytes))
    }

    private func write(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        let deadline = ContinuousClock.now + Self.patience
        while !rest.isEmpty {
            guard let sent = connection.send(rest) else {
                throw CommandFailure("the broker closed the connection")
            }
            rest = rest.dropFirst(sent)
            guard !rest.isEmpty else { return }
            guard ContinuousClock.now < deadline else {
                throw CommandFailure("the broker takes nothing more")
            }
            connection.wait(milliseconds: 100, toWrite: true)
            try read()
        }
    }

    /// Returns when the broker has said this.
    private func expect(_ classNumber: UInt16, _ number: UInt16) throws {
        lastMethod = (0, 0)
        let deadline = ContinuousClock.now + Self.patience
        while true {
            try read()
            if lastMethod == (classNumber, number) { return }
            guard ContinuousClock.now < deadline else {
                throw CommandFailure("the broker did not answer \(classNumber).\(number)")
            }
            connection.wait(milliseconds: 100)
        }
    }

    private func read() throws {
        while true {
            guard let piece = connection.receive() else {
                throw CommandFailure("the broker closed the connection")
            }
            if piece.isEmpty { break }
            received += piece
        }
        var start = 0
        while received.count >= start + 8 {
            let size = Self.number(received[start + 3..<start + 7])
            guard received.count >= start + size + 8 else { break }
            let payload = Array(received[start + 7..<start + 7 + size])
            try take(received[start], payload)
            start += size + 8
        }
        received.removeFirst(start)
    }

    private func take(_ type: UInt8, _ payload: [UInt8]) throws {
        switch type {
        case 1 where payload.count >= 4: try takeMethod(payload)
        case 2 where payload.count >= 12:
            body = []
            missing = Self.number(payload[4..<12])
            finishBody()
        case 3:
            body += payload
            finishBody()
        default: break  // A heartbeat, to which nothing is to be said.
        }
    }

    private func finishBody() {
        guard let size = missing, body.count >= size else { return }
        bodies.append(body)
        missing = nil
        body = []
    }

    private func takeMethod(_ payload: [UInt8]) throws {
        let method = (
            UInt16(Self.number(payload[0..<2])), UInt16(Self.number(payload[2..<4]))
        )
        switch method {
        case (60, 60), (60, 50): break
        case (10, 50), (20, 40):
            let text = payload.count > 7 ? String(decoding: payload[7...], as: UTF8.self) : ""
            throw CommandFailure("the broker refused it: \(text)")
        case _: lastMethod = method
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
        bytes.reduce(0) { $0 << 8 | Int($1) }
    }
}

/// Values as AMQP writes them.
struct AMQPBytes {
    var bytes: [UInt8] = []

    mutating func integer<Number: FixedWidthInteger>(_ value: Number) {
        for shift in stride(from: Number.bitWidth - 8, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    mutating func long(_ value: UInt32) { integer(value) }

    /// A text of at most 255 bytes; what is longer is cut.
    mutating func short(_ text: String) {
        let text = Array(text.utf8.prefix(255))
        bytes.append(UInt8(text.count))
        bytes += text
    }

    mutating func properties(_ properties: RawBroker.Properties) {
        var flags: UInt16 = 0
        var rest = AMQPBytes()
        if let type = properties.contentType {
            flags |= 1 << 15
            rest.short(type)
        }
        if let encoding = properties.contentEncoding {
            flags |= 1 << 14
            rest.short(encoding)
        }
        if let mode = properties.deliveryMode {
            flags |= 1 << 12
            rest.bytes.append(mode)
        }
        if let priority = properties.priority {
            flags |= 1 << 11
            rest.bytes.append(priority)
        }
        if let replyTo = properties.replyTo {
            flags |= 1 << 9
            rest.short(replyTo)
        }
        if let expiration = properties.expiration {
            flags |= 1 << 8
            rest.short(expiration)
        }
        integer(flags)
        bytes += rest.bytes
    }
}
