import Foundation
import NIOCore
import NIOPosix

/// What came back on a connection, as far as HTTP/1.1 without trailers goes.
struct RawAnswer: Sendable {
    var status = 0
    /// The words after the status.
    var reason = ""
    var fields: [String: String] = [:]
    var body: [UInt8] = []

    init(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n") else { return }
        let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ", maxSplits: 2)
        if words.count > 1 { status = Int(words[1]) ?? 0 }
        if words.count > 2 { reason = String(words[2]) }
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            fields[line[..<colon].lowercased()] = value
        }
        body = Array(text[end.upperBound...].utf8)
    }

    var text: String { String(decoding: body, as: UTF8.self) }
}

enum RawSocket {
    /// Sends bytes and reads until the other side closes.
    static func ask(_ port: Int, _ bytes: [UInt8]) async throws -> [UInt8] {
        try await ask(SocketAddress(ipAddress: "127.0.0.1", port: port), bytes)
    }

    /// The same, of a socket in the file system.
    static func ask(_ path: String, _ text: String) async throws -> [UInt8] {
        try await ask(SocketAddress(unixDomainSocketPath: path), Array(text.utf8))
    }

    private static func ask(_ address: SocketAddress, _ bytes: [UInt8]) async throws -> [UInt8] {
        try await open(address) { inbound, outbound in
            try await outbound.write(ByteBuffer(bytes: bytes))
            var answer: [UInt8] = []
            do {
                for try await piece in inbound { answer += piece.readableBytesView }
            } catch {
                // Reset after the answer is an end as well.
                guard !answer.isEmpty else { throw error }
            }
            return answer
        }
    }

    typealias Conversation<Value> =
        @Sendable (
            NIOAsyncChannelInboundStream<ByteBuffer>, NIOAsyncChannelOutboundWriter<ByteBuffer>
        ) async throws -> Value

    static func open<Value: Sendable>(
        _ port: Int,
        _ body: Conversation<Value>
    ) async throws -> Value {
        try await open(SocketAddress(ipAddress: "127.0.0.1", port: port), body)
    }

    private static func open<Value: Sendable>(
        _ address: SocketAddress,
        _ body: Conversation<Value>
    ) async throws -> Value {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(to: address) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                        wrappingChannelSynchronously: channel
                    )
                }
            }
        return try await channel.executeThenClose(body)
    }
}
