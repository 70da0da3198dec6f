import OperonModel

// The envelope and its sender.

extension ProtoEnvelope {
    init<Body>(_ envelope: Envelope<Body>, _ body: OneOf_Body) {
        self.init()
        schemaMajor = Wire.schemaMajor
        schemaMinor = Wire.schemaMinor
        reign = envelope.reign.rawValue
        epoch = envelope.epoch.rawValue
        sequence = envelope.sequence
        if envelope.sender != .none { sender = ProtoSender(envelope.sender) }
        self.body = body
    }
}

extension ProtoSender {
    init(_ identity: WorkerIdentity) {
        self.init()
        name = identity.name
        incarnation = identity.incarnation.rawValue
        connection = identity.connection
    }
}

extension WorkerIdentity {
    init(_ proto: ProtoSender, limits: Limits) throws(WireError) {
        guard proto.incarnation != 0 else {
            throw .invalid("sender.incarnation", "is 0: a worker draws another")
        }
        self.init(
            name: try Check.name(proto.name, "sender.name", limits: limits),
            incarnation: Incarnation(rawValue: proto.incarnation),
            connection: try Check.ordinal(proto.connection, "sender.connection")
        )
    }

    /// The sender of a coordinator's message, which nothing reads.
    init(unchecked proto: ProtoSender) {
        self.init(
            name: proto.name,
            incarnation: Incarnation(rawValue: proto.incarnation),
            connection: proto.connection
        )
    }
}

// MARK: - Attempts

extension ProtoHeldAttempt {
    init(_ held: HeldAttempt) {
        self.init()
        epoch = held.attempt.epoch.rawValue
        number = held.attempt.number
        graph = held.operation.graph.rawValue
        index = held.operation.index
    }
}

extension HeldAttempt {
    init(_ proto: ProtoHeldAttempt, _ field: String) throws(WireError) {
        guard proto.epoch >= 1, proto.number >= 1 else {
            throw .invalid(
                field,
                "is the attempt \(proto.epoch).\(proto.number): epochs and attempts count from 1"
            )
        }
        self.init(
            attempt: AttemptID(epoch: Epoch(rawValue: proto.epoch), number: proto.number),
            operation: OperationID(graph: GraphID(rawValue: proto.graph), index: proto.index)
        )
    }
}

// MARK: - Payloads

extension ProtoPayload {
    init(_ payload: Payload) {
        self.init()
        if payload.contentType != Payload.json { contentType = payload.contentType }
        value = byteString(payload.bytes)
    }
}

extension Payload {
    init(_ proto: ProtoPayload) {
        self.init(
            contentType: proto.hasContentType ? proto.contentType : Payload.json,
            bytes: [UInt8](proto.value)
        )
    }
}
