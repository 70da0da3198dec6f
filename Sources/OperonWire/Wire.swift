package import OperonModel
import SwiftProtobuf

/// Converts messages to bytes and back. This is the only place that knows their format on the wire.
///
/// Encoding is a function of the message: equal messages give equal bytes. Decoding trusts nothing:
/// from any bytes it returns either a message that obeys its documentation, or an error.
package enum Wire {
    /// The content type of every message.
    package static let contentType = "application/x-protobuf"
    /// Readers refuse any other major version.
    package static let schemaMajor: UInt32 = 1
    /// Grows with each release that adds something. Readers accept any minor version.
    package static let schemaMinor: UInt32 = 0

    // MARK: - To bytes

    /// Encodes a coordinator's message. Durations are cut to whole nanoseconds and to at most 292
    /// years. Throws `tooLarge`.
    package static func encode(
        _ envelope: CoordinatorEnvelope,
        limits: Limits = Limits()
    ) throws(WireError) -> [UInt8] {
        guard case .dispatch(let dispatch) = envelope.body else {
            return try encodeGenerated(envelope, limits: limits)
        }
        return try checked(limits) { try encodeDirectly(envelope, dispatch) }
    }

    /// Encodes a worker's message. Throws `tooLarge`.
    package static func encode(
        _ envelope: WorkerEnvelope,
        limits: Limits = Limits()
    ) throws(WireError) -> [UInt8] {
        guard case .events(let batch) = envelope.body else {
            return try encodeGenerated(envelope, limits: limits)
        }
        return try checked(limits) { try encodeDirectly(envelope, batch) }
    }

    /// Encodes any message with the generated types.
    static func encodeGenerated(
        _ envelope: CoordinatorEnvelope,
        limits: Limits
    ) throws(WireError) -> [UInt8] {
        let proto = ProtoEnvelope(envelope, .init(envelope.body))
        return try checked(limits) { try proto.serializedBytes() }
    }

    /// Encodes any message with the generated types.
    static func encodeGenerated(
        _ envelope: WorkerEnvelope,
        limits: Limits
    ) throws(WireError) -> [UInt8] {
        let proto = ProtoEnvelope(envelope, .init(envelope.body))
        return try checked(limits) { try proto.serializedBytes() }
    }

    private static func checked(
        _ limits: Limits,
        _ encode: () throws -> [UInt8]
    ) throws(WireError) -> [UInt8] {
        let bytes: [UInt8]
        do {
            bytes = try encode()
        } catch {
            // Only a message of more than 2 GiB can fail here: no field is required, and there is
            // no `Any`.
            throw WireError(.tooLarge, "a message is over what can be encoded at all: \(error)")
        }
        let limit = min(limits.messageBytes, generatedBytesMax - 1)
        guard bytes.count <= limit else { throw .tooLarge(bytes.count, limit: limit) }
        try checkElements(of: bytes)
        return bytes
    }

    /// Refuses messages that their receiver would refuse: it would drop them, and they would be
    /// resent forever.
    private static func checkElements(of bytes: [UInt8]) throws(WireError) {
        guard !ElementCount.isBounded(bytes) else { return }
        throw WireError(
            .tooLarge,
            "a message of \(bytes.count) bytes has more than \(ElementCount.max) elements"
        )
    }

    // MARK: - From bytes

    /// Decodes a coordinator's message. An operation in a dispatch that cannot be decoded does not
    /// affect the others: it is in `Dispatch.unreadable`.
    package static func decodeCoordinator(
        _ bytes: [UInt8],
        limits: Limits = Limits()
    ) throws(WireError) -> CoordinatorEnvelope {
        try checkSize(of: bytes, limits: limits)
        if let envelope = decodeDispatchDirectly(bytes, limits) { return envelope }
        return try decodeGeneratedCoordinator(bytes, limits: limits)
    }

    /// Decodes any message of a coordinator with the generated types.
    static func decodeGeneratedCoordinator(
        _ bytes: [UInt8],
        limits: Limits
    ) throws(WireError) -> CoordinatorEnvelope {
        let proto = try parse(bytes)
        guard let body = proto.body else { throw unknownMessage }
        guard proto.reign != 0 else { throw .invalid("reign", "is 0: a coordinator has one") }
        guard proto.epoch != 0 else { throw .invalid("epoch", "is 0: epochs count from 1") }
        return CoordinatorEnvelope(
            reign: Reign(rawValue: proto.reign),
            epoch: Epoch(rawValue: proto.epoch),
            sequence: proto.sequence,
            sender: proto.hasSender ? WorkerIdentity(unchecked: proto.sender) : .none,
            body: try CoordinatorMessage(body, limits: limits)
        )
    }

    /// Decodes a worker's message.
    package static func decodeWorker(
        _ bytes: [UInt8],
        limits: Limits = Limits()
    ) throws(WireError) -> WorkerEnvelope {
        try checkSize(of: bytes, limits: limits)
        if let envelope = decodeEventsDirectly(bytes, limits) { return envelope }
        return try decodeGeneratedWorker(bytes, limits: limits)
    }

    /// Decodes any message of a worker with the generated types.
    static func decodeGeneratedWorker(
        _ bytes: [UInt8],
        limits: Limits
    ) throws(WireError) -> WorkerEnvelope {
        let proto = try parse(bytes)
        guard let body = proto.body else { throw unknownMessage }
        let sender: WorkerIdentity
        if case .tick = body {
            sender = .none
        } else {
            guard proto.hasSender else { throw .missing("sender") }
            sender = try WorkerIdentity(proto.sender, limits: limits)
        }
        return WorkerEnvelope(
            reign: Reign(rawValue: proto.reign),
            epoch: Epoch(rawValue: proto.epoch),
            sequence: proto.sequence,
            sender: sender,
            body: try WorkerMessage(body, limits: limits)
        )
    }

    /// Our messages nest 6 levels deep. The limit leaves room for what others may add, and bounds
    /// the depth of the stack.
    static let messageDepthMax = 16

    /// The generated types encode and decode fewer bytes than this.
    static let generatedBytesMax = 0x7FFF_FFFF

    /// Comes before anything is allocated.
    private static func checkSize(of bytes: [UInt8], limits: Limits) throws(WireError) {
        guard bytes.count <= limits.messageBytes else {
            throw .tooLarge(bytes.count, limit: limits.messageBytes)
        }
        try checkElements(of: bytes)
    }

    private static func parse(_ bytes: [UInt8]) throws(WireError) -> ProtoEnvelope {
        // No message of Protocol Buffers begins with 0, and every sealed one does.
        guard bytes.first != 0 else {
            throw WireError(
                .malformed,
                "\(bytes.count) bytes are sealed, or no message of Operon: their sender has keys, "
                    + "and the receiver runs with --trust none"
            )
        }
        var options = BinaryDecodingOptions()
        options.messageDepthLimit = messageDepthMax
        let envelope: ProtoEnvelope
        do {
            envelope = try ProtoEnvelope(serializedBytes: bytes, options: options)
        } catch {
            throw WireError(
                .malformed,
                "\(bytes.count) bytes are not a message of Operon: \(error)"
            )
        }
        guard envelope.schemaMajor != 0 else {
            throw WireError(
                .malformed,
                "\(bytes.count) bytes are not a message of Operon: they name no schema version"
            )
        }
        guard envelope.schemaMajor == schemaMajor else {
            throw WireError(
                .versionUnsupported,
                "a message of schema version \(envelope.schemaMajor).\(envelope.schemaMinor) "
                    + "cannot be read by this program, which knows version \(schemaMajor): "
                    + "update the older of the two"
            )
        }
        return envelope
    }

    private static let unknownMessage = WireError(
        .unknownMessage,
        "a message is of a kind that this version does not know, or of none"
    )

    /// The error for a worker's message where a coordinator's is expected, or the reverse.
    static func misplaced(_ kind: String, from speaker: String) -> WireError {
        WireError(
            .unknownMessage,
            "a message of the kind “\(kind)” is none that a \(speaker) sends: "
                + "check that no two roles share a queue"
        )
    }
}
