package import OperonModel
import SwiftProtobuf

/// Messages to bytes and back: the one place that knows how they look on the wire.
///
/// Encoding is a function of the message: the same one gives the same bytes. Decoding trusts
/// nothing: whatever the bytes, it gives a message that obeys its documentation, or an error.
package enum Wire {
    /// The content type of every message.
    package static let contentType = "application/x-protobuf"
    /// Readers refuse any other.
    package static let schemaMajor: UInt32 = 1
    /// Grows with each release that adds something; readers tolerate any.
    package static let schemaMinor: UInt32 = 0

    // MARK: - To bytes

    /// What a coordinator says. Durations finer than a nanosecond are cut, longer than 292 years
    /// shortened. Throws `tooLarge`.
    package static func encode(
        _ envelope: CoordinatorEnvelope,
        limits: Limits = Limits()
    ) throws(WireError) -> [UInt8] {
        try encode(ProtoEnvelope(envelope, .init(envelope.body)), limits: limits)
    }

    /// What a worker says. Throws `tooLarge`.
    package static func encode(
        _ envelope: WorkerEnvelope,
        limits: Limits = Limits()
    ) throws(WireError) -> [UInt8] {
        try encode(ProtoEnvelope(envelope, .init(envelope.body)), limits: limits)
    }

    private static func encode(
        _ envelope: ProtoEnvelope,
        limits: Limits
    ) throws(WireError) -> [UInt8] {
        let bytes: [UInt8]
        do {
            bytes = try envelope.serializedBytes()
        } catch {
            // Only more than 2 GiB comes here: nothing is required, and there is no `Any`.
            throw WireError(.tooLarge, "a message is over what can be encoded at all: \(error)")
        }
        guard bytes.count <= limits.messageBytes else {
            throw .tooLarge(bytes.count, limit: limits.messageBytes)
        }
        try checkElements(of: bytes)
        return bytes
    }

    /// What its receiver refuses is not sent: it would be dropped there, and sent again for ever.
    private static func checkElements(of bytes: [UInt8]) throws(WireError) {
        guard !ElementCount.isBounded(bytes) else { return }
        throw WireError(
            .tooLarge,
            "a message of \(bytes.count) bytes has more than \(ElementCount.max) elements"
        )
    }

    // MARK: - From bytes

    /// What a coordinator said. An operation of a dispatch that cannot be read does not spoil the
    /// others: it is in `Dispatch.unreadable`.
    package static func decodeCoordinator(
        _ bytes: [UInt8],
        limits: Limits = Limits()
    ) throws(WireError) -> CoordinatorEnvelope {
        let proto = try parse(bytes, limits: limits)
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

    /// What a worker said.
    package static func decodeWorker(
        _ bytes: [UInt8],
        limits: Limits = Limits()
    ) throws(WireError) -> WorkerEnvelope {
        let proto = try parse(bytes, limits: limits)
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

    /// Ours nest 6 deep; what others may add gets room, and nobody gets a deep stack.
    static let messageDepthMax = 16

    private static func parse(
        _ bytes: [UInt8],
        limits: Limits
    ) throws(WireError) -> ProtoEnvelope {
        guard bytes.count <= limits.messageBytes else {
            throw .tooLarge(bytes.count, limit: limits.messageBytes)
        }
        try checkElements(of: bytes)
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

    /// A worker's message where a coordinator speaks, or the reverse.
    static func misplaced(_ kind: String, from speaker: String) -> WireError {
        WireError(
            .unknownMessage,
            "a message of the kind “\(kind)” is none that a \(speaker) sends: "
                + "check that no two roles share a queue"
        )
    }
}
