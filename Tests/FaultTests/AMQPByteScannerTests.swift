import NIOCore
import OperonFaultKit
import Testing

@Suite struct AMQPByteScannerTests {
    /// A frame of this type with so many bytes of payload.
    private static func frame(_ type: UInt8, _ size: Int) -> [UInt8] {
        [type, 0, 1, 0, 0, UInt8(size >> 8), UInt8(size & 0xFF)]
            + Array(repeating: 0xCE, count: size) + [0xCE]
    }

    /// A method of 6, a header of 14 and a body of 300 bytes, a heartbeat, and another method.
    private static let stream =
        frame(1, 6) + frame(2, 14) + frame(3, 300) + frame(8, 0) + frame(1, 4)
    private static let marks: [AMQPByteScanner.Mark] = [
        .init(.method, at: 7 + 3), .init(.end, at: 13), .init(.header, at: 21 + 7),
        .init(.end, at: 35), .init(.body, at: 43 + 150), .init(.end, at: 343),
        .init(.end, at: 351), .init(.method, at: 359 + 2), .init(.end, at: 363),
    ]

    @Test(arguments: [1, 2, 3, 7, 64, 1_000])
    func `the bytes of each kind are found, however they arrive`(step: Int) {
        for start in [[], Array("AMQP".utf8) + [0, 0, 9, 1]] {
            var scanner = AMQPByteScanner(startsWithProtocolHeader: !start.isEmpty)
            let bytes = start + Self.stream
            var found: [AMQPByteScanner.Mark] = []
            for from in stride(from: 0, to: bytes.count, by: step) {
                let piece = ByteBuffer(bytes: bytes[from..<min(from + step, bytes.count)])
                for mark in scanner.scan(piece.readableBytesView) {
                    found.append(.init(mark.kind, at: mark.offset + from - start.count))
                }
            }
            #expect(found == Self.marks)
        }
    }

    @Test func `what is no AMQP has no marks`() {
        var scanner = AMQPByteScanner(startsWithProtocolHeader: false)
        let text = ByteBuffer(string: "HTTP/1.1 200 OK")
        #expect(scanner.scan(text.readableBytesView) == [])
        #expect(scanner.scan(ByteBuffer(bytes: Self.stream).readableBytesView) == [])
    }

    @Test func `a frame that does not end where it should is followed no further`() {
        var bytes = Self.frame(1, 6)
        bytes[13] = 0
        var scanner = AMQPByteScanner(startsWithProtocolHeader: false)
        let found = scanner.scan(ByteBuffer(bytes: bytes + Self.stream).readableBytesView)
        #expect(found == [.init(.method, at: 10), .init(.end, at: 13)])
    }
}
