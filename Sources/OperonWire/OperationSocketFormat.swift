package import OperonModel
import SwiftProtobuf

/// Requests that a process of a running operation sends to its worker over a socket, and the
/// answers. Each connection carries one request and one answer, each with its length before it.
package enum OperationSocketFormat {
    package struct Request: Hashable, Sendable {
        /// The token of the attempt.
        package var token: String
        package var what: What

        package enum What: Hashable, Sendable {
            /// Add these operations, in the format of `StoreFormat`.
            case add([UInt8])
            /// Wait for the operations with these names.
            case wait([String])
            /// Read the output of the operation with this name.
            case read(String)
        }

        package init(token: String, what: What) {
            self.token = token
            self.what = what
        }
    }

    package enum Answer: Hashable, Sendable {
        /// The number of operations that were added.
        case added(UInt32)
        /// The outcomes of the awaited operations, in the order of their names in the request.
        case awaited([OutcomeKind])
        /// The requested output; `nil` if the operation left none.
        case read(Payload?)
        case refused(Refusal)
        /// The attempt has ended, or belongs to another worker now.
        case ended
        case unknownToken
        /// The worker cannot decode the request; the text says why.
        case unreadable(String)
    }

    /// The size of the length before each message, in bytes.
    package static let lengthBytes = 4
    /// The most bytes of a request besides its operations: a token and some numbers.
    package static let overheadBytes = 1_024

    /// Includes the length.
    package static func encode(_ request: Request) throws(WireError) -> [UInt8] {
        var proto = ProtoOperationSocketRequest()
        proto.token = request.token
        switch request.what {
        case .add(let operations): proto.add = byteString(operations)
        case .wait(let names): proto.wait.names = names
        case .read(let name): proto.read = name
        }
        return try framed(proto)
    }

    /// Includes the length.
    package static func encode(_ answer: Answer) throws(WireError) -> [UInt8] {
        var proto = ProtoOperationSocketAnswer()
        switch answer {
        case .added(let count): proto.added = count
        case .awaited(let outcomes): proto.awaited = ProtoEnded(outcomes)
        case .read(let output): proto.read = ProtoLeft(output)
        case .refused(let refusal): proto.refused = ProtoRefusal(refusal)
        case .ended: proto.ended = ProtoEmpty()
        case .unknownToken: proto.unknownToken = ProtoEmpty()
        case .unreadable(let why): proto.unreadable = why
        }
        return try framed(proto)
    }

    /// The length given by these first bytes; `nil` if there are too few of them.
    package static func length(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard bytes.count >= lengthBytes else { return nil }
        return bytes.prefix(lengthBytes).reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    /// - Parameter bytes: the message without its length.
    package static func decodeRequest(_ bytes: [UInt8]) throws(WireError) -> Request {
        guard ElementCount.isBounded(bytes, at: .question) else {
            throw WireError(.tooLarge, "it names more than \(ElementCount.max) operations")
        }
        let proto: ProtoOperationSocketRequest = try parsed(bytes)
        switch proto.what {
        case .add(let operations):
            return Request(token: proto.token, what: .add([UInt8](operations)))
        case .wait(let wait): return Request(token: proto.token, what: .wait(wait.names))
        case .read(let name): return Request(token: proto.token, what: .read(name))
        case nil: throw .missing("request.what")
        }
    }

    /// - Parameter bytes: the message without its length.
    package static func decodeAnswer(_ bytes: [UInt8]) throws(WireError) -> Answer {
        let proto: ProtoOperationSocketAnswer = try parsed(bytes)
        switch proto.what {
        case .added(let count): return .added(count)
        case .awaited(let ended): return .awaited(try ended.kinds("answer.awaited"))
        case .read(let left): return .read(left.payload)
        case .refused(let refusal): return .refused(try Refusal(refusal))
        case .ended: return .ended
        case .unknownToken: return .unknownToken
        case .unreadable(let why): return .unreadable(why)
        case nil: throw .missing("answer.what")
        }
    }

    private static func framed(_ message: some Message) throws(WireError) -> [UInt8] {
        let body: [UInt8]
        do {
            body = try message.serializedBytes()
        } catch {
            throw WireError(.tooLarge, "it is over what can be encoded at all: \(error)")
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(body.count + lengthBytes)
        for shift in stride(from: 0, to: lengthBytes * 8, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: body.count >> shift))
        }
        return bytes + body
    }

    private static func parsed<M: Message>(_ bytes: [UInt8]) throws(WireError) -> M {
        do {
            var options = BinaryDecodingOptions()
            options.messageDepthLimit = Wire.messageDepthMax
            return try M(serializedBytes: bytes, options: options)
        } catch {
            throw WireError(.malformed, "it cannot be read: \(error)")
        }
    }
}
