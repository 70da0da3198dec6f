import OperonModel

// Outputs that workers fetch: references to them, requests for pieces of them, and the pieces.

// MARK: - References

extension ProtoOutputReference {
    init(_ reference: OutputReference) {
        self.init()
        graph = reference.operation.graph.rawValue
        index = reference.operation.index
        byteCount = UInt64(clamping: reference.byteCount)
        hash = byteString(reference.hash.bytes)
        if reference.contentType != Payload.json { contentType = reference.contentType }
    }
}

extension OutputReference {
    init(_ proto: ProtoOutputReference) throws(WireError) {
        guard let hash = ContentHash(bytes: proto.hash) else {
            throw .invalid(
                "reference.hash",
                "has \(proto.hash.count) bytes: a SHA-256 has \(ContentHash.byteCount)"
            )
        }
        self.init(
            operation: OperationID(graph: GraphID(rawValue: proto.graph), index: proto.index),
            byteCount: try Check.bytes(
                try Check.ordinal(proto.byteCount, "reference.byte_count"),
                "reference.byte_count"
            ),
            hash: hash,
            contentType: proto.hasContentType ? proto.contentType : Payload.json
        )
    }
}

// MARK: - Requests

extension ProtoFetch {
    init(_ requests: [OutputRequest]) {
        self.init()
        self.requests = requests.map { ProtoOutputRequest($0) }
    }

    var checked: [OutputRequest] {
        get throws(WireError) {
            guard !requests.isEmpty else { throw .invalid("fetch.requests", "is empty") }
            return try requests.map { request throws(WireError) in try OutputRequest(request) }
        }
    }
}

extension ProtoOutputRequest {
    init(_ request: OutputRequest) {
        self.init()
        number = request.number
        held = ProtoHeldAttempt(request.held)
        graph = request.operation.graph.rawValue
        index = request.operation.index
        offset = UInt64(clamping: request.offset)
        length = UInt32(clamping: request.length)
    }
}

extension OutputRequest {
    init(_ proto: ProtoOutputRequest) throws(WireError) {
        guard proto.hasHeld else { throw .missing("request.held") }
        self.init(
            number: try Check.ordinal(proto.number, "request.number"),
            held: try HeldAttempt(proto.held, "request.held"),
            operation: OperationID(graph: GraphID(rawValue: proto.graph), index: proto.index),
            offset: try Check.bytes(proto.offset, "request.offset"),
            length: Int(try Check.ordinal(proto.length, "request.length"))
        )
    }
}

// MARK: - Pieces

extension ProtoChunks {
    init(_ chunks: [OutputChunk]) {
        self.init()
        self.chunks = chunks.map { ProtoChunk($0) }
    }

    var answers: [OutputChunk] {
        get throws(WireError) {
            guard !chunks.isEmpty else { throw .invalid("chunks.chunks", "is empty") }
            return try chunks.map { chunk throws(WireError) in try OutputChunk(chunk) }
        }
    }
}

extension ProtoChunk {
    init(_ chunk: OutputChunk) {
        self.init()
        number = chunk.number
        switch chunk.content {
        case .bytes(let bytes): what = .value(byteString(bytes))
        case .gone: what = .gone(ProtoEmpty())
        case .missing: what = .missing(ProtoEmpty())
        case .sent: what = .sent(ProtoEmpty())
        }
    }
}

extension OutputChunk {
    init(_ proto: ProtoChunk) throws(WireError) {
        let number = try Check.ordinal(proto.number, "chunk.number")
        switch proto.what {
        case .value(let bytes):
            guard !bytes.isEmpty else { throw .invalid("chunk.value", "is empty") }
            self.init(number: number, content: .bytes([UInt8](bytes)))
        case .gone: self.init(number: number, content: .gone)
        case .missing: self.init(number: number, content: .missing)
        case .sent: self.init(number: number, content: .sent)
        case nil: throw .missing("chunk.what")
        }
    }
}
