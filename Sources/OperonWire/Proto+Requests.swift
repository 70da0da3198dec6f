import OperonModel

// The requests of running operations and the verdicts on them.

extension ProtoAddition {
    init(_ request: AdditionRequest) {
        self.init()
        number = request.number
        operations = byteString(request.operations)
    }
}

extension AdditionRequest {
    /// Does not decode the added operations. The code that decides on the request decodes them, so
    /// that unreadable operations are refused and not dropped.
    init(_ proto: ProtoAddition) throws(WireError) {
        self.init(
            number: try Check.ordinal(proto.number, "added.number"),
            operations: [UInt8](proto.operations)
        )
    }
}

extension ProtoWait {
    init(_ request: WaitRequest) {
        self.init()
        number = request.number
        names = request.names
    }
}

extension WaitRequest {
    /// Does not check the names; the code that looks them up does.
    init(_ proto: ProtoWait) throws(WireError) {
        self.init(
            number: try Check.ordinal(proto.number, "yielded.number"),
            names: proto.names
        )
    }
}

extension ProtoRead {
    init(_ request: ReadRequest) {
        self.init()
        number = request.number
        name = request.name
    }
}

extension ReadRequest {
    /// Does not check the name; the code that looks it up does.
    init(_ proto: ProtoRead) throws(WireError) {
        self.init(number: try Check.ordinal(proto.number, "read.number"), name: proto.name)
    }
}

extension ProtoLeft {
    init(_ payload: Payload?) {
        self.init()
        if let payload { output = ProtoPayload(payload) }
    }

    var payload: Payload? { hasOutput ? Payload(output) : nil }
}

extension ProtoOpenRequest {
    init(_ request: OpenRequest) {
        self.init()
        number = request.number
        held = ProtoHeldAttempt(request.held)
        event = request.event
    }
}

extension OpenRequest {
    init(_ proto: ProtoOpenRequest) throws(WireError) {
        guard proto.hasHeld else { throw .missing("open.held") }
        self.init(
            number: try Check.ordinal(proto.number, "open.number"),
            held: try HeldAttempt(proto.held, "open.held"),
            event: try Check.ordinal(proto.event, "open.event")
        )
    }
}

// MARK: - Verdicts

extension ProtoVerdict {
    init(_ verdict: Verdict) {
        self.init()
        number = verdict.number
        event = verdict.event
        switch verdict.content {
        case .added(let count): what = .added(count)
        case .refused(let refusal): what = .refused(ProtoRefusal(refusal))
        case .again: what = .again(ProtoEmpty())
        case .ended(let outcomes): what = .ended(ProtoEnded(outcomes))
        case .output(let output): what = .output(ProtoLeft(output))
        }
    }
}

extension Verdict {
    init(_ proto: ProtoVerdict) throws(WireError) {
        let content: Content
        switch proto.what {
        case .added(let count): content = .added(count)
        case .refused(let refusal): content = .refused(try Refusal(refusal))
        case .again: content = .again
        case .ended(let ended): content = .ended(try ended.kinds("verdict.ended"))
        case .output(let left): content = .output(left.payload)
        case nil: throw .missing("verdict.what")
        }
        self.init(
            number: try Check.ordinal(proto.number, "verdict.number"),
            event: try Check.ordinal(proto.event, "verdict.event"),
            content: content
        )
    }
}

extension ProtoEnded {
    init(_ kinds: [OutcomeKind]) {
        self.init()
        outcomes = kinds.map { kind in
            switch kind {
            case .succeeded: .succeeded
            case .failed: .failed
            case .cancelled: .cancelled
            case .skipped: .skipped
            }
        }
    }

    func kinds(_ field: String) throws(WireError) -> [OutcomeKind] {
        var kinds: [OutcomeKind] = []
        kinds.reserveCapacity(outcomes.count)
        for outcome in outcomes {
            switch outcome {
            case .succeeded: kinds.append(.succeeded)
            case .failed: kinds.append(.failed)
            case .cancelled: kinds.append(.cancelled)
            case .skipped: kinds.append(.skipped)
            case .unspecified, .UNRECOGNIZED: throw .missing(field)
            }
        }
        return kinds
    }
}

extension ProtoRefusal {
    init(_ refusal: Refusal) {
        self.init()
        switch refusal {
        case .dependencyCycle(let path):
            var cycle = ProtoCycle()
            cycle.path = path
            kind = .dependencyCycle(cycle)
        case .unknownOperation(let name, let namedBy):
            var unknown = ProtoUnknownName()
            unknown.name = name
            unknown.namedBy = namedBy
            kind = .unknownOperation(unknown)
        case .duplicateOperation(let name): kind = .duplicateOperation(name)
        case .alreadySubmitted(let name): kind = .alreadySubmitted(name)
        case .alreadyStarted(let name): kind = .alreadyStarted(name)
        case .alreadyFinished(let name): kind = .alreadyFinished(name)
        case .graphClosed(let name): kind = .graphClosed(name)
        case .invalid(let field, let why):
            var invalid = ProtoInvalidField()
            invalid.field = field
            invalid.why = why
            kind = .invalid(invalid)
        case .limitExceeded(let limit, let value, let maximum):
            var exceeded = ProtoLimitExceeded()
            exceeded.limit = limit.rawValue
            exceeded.value = UInt64(clamping: value)
            exceeded.maximum = UInt64(clamping: maximum)
            kind = .limitExceeded(exceeded)
        case .unreachable(let why): kind = .unreachable(why)
        }
    }
}

extension Refusal {
    init(_ proto: ProtoRefusal) throws(WireError) {
        switch proto.kind {
        case .dependencyCycle(let cycle): self = .dependencyCycle(path: cycle.path)
        case .unknownOperation(let unknown):
            self = .unknownOperation(name: unknown.name, namedBy: unknown.namedBy)
        case .duplicateOperation(let name): self = .duplicateOperation(name: name)
        case .alreadySubmitted(let name): self = .alreadySubmitted(name: name)
        case .alreadyStarted(let name): self = .alreadyStarted(name: name)
        case .alreadyFinished(let name): self = .alreadyFinished(name: name)
        case .graphClosed(let name): self = .graphClosed(name: name)
        case .invalid(let invalid): self = .invalid(field: invalid.field, why: invalid.why)
        case .limitExceeded(let exceeded):
            guard let limit = LimitName(rawValue: exceeded.limit) else {
                // A limit that only a later version knows.
                let why = "\(exceeded.value) is over the limit of \(exceeded.maximum)"
                self = .invalid(field: exceeded.limit, why: why)
                return
            }
            self = .limitExceeded(
                limit: limit,
                value: Int(clamping: exceeded.value),
                maximum: Int(clamping: exceeded.maximum)
            )
        case .unreachable(let why): self = .unreachable(why)
        case nil: throw .missing("refused.kind")
        }
    }
}
