package import NIOCore

/// Follows the frames of AMQP 0-9-1 through the bytes of one direction, and tells where a byte of
/// each kind stands. It knows no more of a frame than its outer form (AMQP 0-9-1 §2.3.5):
///
///     type 1 byte, channel 2, size 4, payload of that size, end octet 0xCE
///
/// What turns out to be something else is followed no further.
package struct AMQPByteScanner: Sendable {
    package enum Kind: String, CaseIterable, Hashable, Sendable {
        /// In the middle of the payload of a method frame.
        case method
        /// In the middle of a content header.
        case header
        /// In the middle of the payload of a body frame.
        case body
        /// The octet that ends a frame.
        case end
    }

    package struct Mark: Hashable, Sendable {
        package var kind: Kind
        /// Where in the bytes that were handed in.
        package var offset: Int

        package init(_ kind: Kind, at offset: Int) {
            self.kind = kind
            self.offset = offset
        }
    }

    private enum State: Hashable {
        /// Bytes of the protocol header to come.
        case protocolHeader(left: Int)
        /// The first seven bytes of a frame, as far as they are there.
        case head([UInt8])
        case payload(kind: Kind?, size: Int, done: Int)
        case end
        case lost
    }

    private var state: State

    /// A client begins with the eight bytes of the protocol header, a server with a frame.
    package init(startsWithProtocolHeader: Bool) {
        state = startsWithProtocolHeader ? .protocolHeader(left: 8) : .head([])
    }

    /// The marks in these bytes, which follow those of the call before.
    package mutating func scan(_ bytes: ByteBufferView) -> [Mark] {
        var marks: [Mark] = []
        var place = 0
        while place < bytes.count {
            switch state {
            case .protocolHeader(let left):
                let step = min(left, bytes.count - place)
                place += step
                state = step == left ? .head([]) : .protocolHeader(left: left - step)
            case .head(var head):
                head.append(bytes[bytes.startIndex + place])
                place += 1
                state = head.count < 7 ? .head(head) : Self.payload(after: head)
            case .payload(let kind, let size, let done):
                let step = min(size - done, bytes.count - place)
                let middle = size / 2
                if let kind, (done..<done + step).contains(middle) {
                    marks.append(Mark(kind, at: place + middle - done))
                }
                place += step
                state =
                    done + step == size
                    ? .end : .payload(kind: kind, size: size, done: done + step)
            case .end:
                marks.append(Mark(.end, at: place))
                state = bytes[bytes.startIndex + place] == 0xCE ? .head([]) : .lost
                place += 1
            case .lost: return marks
            }
        }
        return marks
    }

    private static func payload(after head: [UInt8]) -> State {
        let kinds: [UInt8: Kind?] = [1: .method, 2: .header, 3: .body, 8: nil]
        guard let kind = kinds[head[0]] else { return .lost }
        let size = head[3..<7].reduce(0) { $0 << 8 | Int($1) }
        // Nobody negotiates frames beyond this: it is not AMQP.
        guard size <= 16 << 20 else { return .lost }
        return size == 0 ? .end : .payload(kind: kind, size: size, done: 0)
    }
}
