import OperonModel
import SwiftProtobuf

// Dispatches and event batches, written and read without generated types: one or two of them travel
// with every operation. All other messages are rare, and use the generated types.

extension Wire {
    /// - Throws: if a part that the generated encoder writes has 2 GiB or more.
    static func encodeDirectly(
        _ envelope: CoordinatorEnvelope,
        _ dispatch: Dispatch
    ) throws -> [UInt8] {
        var writer = FieldWriter(reserving: 64 + 96 * dispatch.operations.count)
        writer.addHeader(envelope)
        try writer.addDispatch(dispatch)
        return writer.bytes
    }

    /// - Throws: if a part that the generated encoder writes has 2 GiB or more.
    static func encodeDirectly(
        _ envelope: WorkerEnvelope,
        _ batch: EventBatch
    ) throws -> [UInt8] {
        var writer = FieldWriter(reserving: 128 + 48 * batch.events.count)
        writer.addHeader(envelope)
        try writer.addEvents(batch)
        return writer.bytes
    }

    /// Decodes a dispatch in its regular form.
    ///
    /// - Returns: `nil` for anything else; then the generated types decide what it is.
    static func decodeDispatchDirectly(_ bytes: [UInt8], _ limits: Limits) -> CoordinatorEnvelope? {
        guard bytes.count < generatedBytesMax else { return nil }
        do throws(WireError) {
            var reader = FieldReader(bytes)
            let header = try reader.header(before: EnvelopeTag.dispatch)
            guard header.reign != 0, header.epoch != 0 else { return nil }
            let dispatch = try reader.dispatch(limits)
            guard reader.isAtEnd else { return nil }
            return CoordinatorEnvelope(
                reign: Reign(rawValue: header.reign),
                epoch: Epoch(rawValue: header.epoch),
                sequence: header.sequence,
                sender: header.sender.map { WorkerIdentity(unchecked: $0) } ?? .none,
                body: .dispatch(dispatch)
            )
        } catch {
            return nil
        }
    }

    /// Decodes an event batch in its regular form.
    ///
    /// - Returns: `nil` for anything else; then the generated types decide what it is.
    static func decodeEventsDirectly(_ bytes: [UInt8], _ limits: Limits) -> WorkerEnvelope? {
        guard bytes.count < generatedBytesMax else { return nil }
        do throws(WireError) {
            var reader = FieldReader(bytes)
            let header = try reader.header(before: EnvelopeTag.events)
            guard let sender = header.sender else { return nil }
            let identity = try WorkerIdentity(sender, limits: limits)
            let batch = try reader.events()
            guard reader.isAtEnd else { return nil }
            return WorkerEnvelope(
                reign: Reign(rawValue: header.reign),
                epoch: Epoch(rawValue: header.epoch),
                sequence: header.sequence,
                sender: identity,
                body: .events(batch)
            )
        } catch {
            return nil
        }
    }
}

/// The fields before the body of an envelope.
private struct Header {
    var major: UInt32 = 0
    var reign: UInt64 = 0
    var epoch: UInt32 = 0
    var sequence: UInt64 = 0
    var sender: ProtoSender?
}

// MARK: - To bytes

extension FieldWriter {
    fileprivate mutating func addHeader<Body>(_ envelope: Envelope<Body>) {
        add(EnvelopeTag.schemaMajor, Wire.schemaMajor)
        add(EnvelopeTag.schemaMinor, Wire.schemaMinor)
        addFixed(EnvelopeTag.reign, envelope.reign.rawValue)
        add(EnvelopeTag.epoch, envelope.epoch.rawValue)
        add(EnvelopeTag.sequence, envelope.sequence)
        guard envelope.sender != .none else { return }
        let start = beginMessage(EnvelopeTag.sender)
        add(SenderTag.name, envelope.sender.name)
        addFixed(SenderTag.incarnation, envelope.sender.incarnation.rawValue)
        add(SenderTag.connection, envelope.sender.connection)
        endMessage(start)
    }

    mutating func addHeld(_ tag: UInt64, _ held: HeldAttempt) {
        let start = beginMessage(tag)
        add(HeldAttemptTag.epoch, held.attempt.epoch.rawValue)
        add(HeldAttemptTag.number, held.attempt.number)
        add(HeldAttemptTag.graph, held.operation.graph.rawValue)
        add(HeldAttemptTag.index, held.operation.index)
        endMessage(start)
    }

    /// Adds work of a registered kind.
    mutating func addRegistered(_ tag: UInt64, _ kind: String, _ input: Payload) {
        let start = beginMessage(tag)
        add(RegisteredTag.kind, kind)
        if input != .empty { addPayload(RegisteredTag.input, input) }
        endMessage(start)
    }

    mutating func addPayload(_ tag: UInt64, _ payload: Payload) {
        let start = beginMessage(tag)
        if payload.contentType != Payload.json {
            addEvenEmpty(PayloadTag.contentType, payload.contentType)
        }
        add(PayloadTag.value, payload.bytes)
        endMessage(start)
    }
}

// MARK: - From bytes

extension FieldReader {
    /// Reads the fields before the body, and its tag, which must be this one.
    fileprivate mutating func header(before body: UInt64) throws(WireError) -> Header {
        var header = Header()
        var last: UInt64 = 0
        while let tag = try nextTag(after: &last) {
            switch tag {
            case body:
                guard header.major == Wire.schemaMajor else { throw Self.irregular }
                return header
            case EnvelopeTag.schemaMajor: header.major = try number32()
            case EnvelopeTag.schemaMinor: _ = try number32()
            case EnvelopeTag.reign: header.reign = try fixed()
            case EnvelopeTag.epoch: header.epoch = try number32()
            case EnvelopeTag.sequence: header.sequence = try number()
            case EnvelopeTag.sender: header.sender = try sender()
            case _: throw Self.irregular
            }
        }
        throw Self.irregular
    }

    private mutating func sender() throws(WireError) -> ProtoSender {
        var sender = ProtoSender()
        let outer = try enter()
        var last: UInt64 = 0
        while let tag = try nextTag(after: &last) {
            switch tag {
            case SenderTag.name: sender.name = try text()
            case SenderTag.incarnation: sender.incarnation = try fixed()
            case SenderTag.connection: sender.connection = try number32()
            case _: throw Self.irregular
            }
        }
        leave(outer)
        return sender
    }

    mutating func held() throws(WireError) -> HeldAttempt {
        var (epoch, graph, index): (UInt32, UInt32, UInt32) = (0, 0, 0)
        var attempt: UInt64 = 0
        let outer = try enter()
        var last: UInt64 = 0
        while let tag = try nextTag(after: &last) {
            switch tag {
            case HeldAttemptTag.epoch: epoch = try number32()
            case HeldAttemptTag.number: attempt = try number()
            case HeldAttemptTag.graph: graph = try number32()
            case HeldAttemptTag.index: index = try number32()
            case _: throw Self.irregular
            }
        }
        leave(outer)
        guard epoch >= 1, attempt >= 1 else { throw Self.irregular }
        return HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: epoch), number: attempt),
            operation: OperationID(graph: GraphID(rawValue: graph), index: index)
        )
    }

    mutating func payload() throws(WireError) -> Payload {
        var payload = Payload.empty
        let outer = try enter()
        var last: UInt64 = 0
        while let tag = try nextTag(after: &last) {
            switch tag {
            case PayloadTag.contentType: payload.contentType = try text()
            case PayloadTag.value: payload.bytes = try data()
            case _: throw Self.irregular
            }
        }
        leave(outer)
        return payload
    }
}
