import OperonModel

// A batch of events, written and read without generated types. Requests of operations and errors
// are rare, so the generated types write and read those.

// MARK: - To bytes

extension FieldWriter {
    mutating func addEvents(_ batch: EventBatch) throws {
        let start = beginMessage(EnvelopeTag.events)
        add(EventBatchTag.firstNumber, batch.firstNumber)
        add(EventBatchTag.sentAt, batch.sentAt.nanoseconds)
        for event in batch.events { try addEvent(event) }
        endMessage(start)
    }

    private mutating func addEvent(_ event: WorkerEvent) throws {
        typealias Tag = WorkerEventTag
        let start = beginMessage(EventBatchTag.events)
        addHeld(Tag.held, event.held)
        switch event {
        case .started(_, let moment): addEvenZero(Tag.started, moment.nanoseconds)
        case .finished(_, let result): try addResult(result)
        case .returned: addEmptyMessage(Tag.returned)
        case .added(_, let request): try addGenerated(Tag.added, ProtoAddition(request))
        case .yielded(_, let request): try addGenerated(Tag.yielded, ProtoWait(request))
        case .read(_, let request): try addGenerated(Tag.read, ProtoRead(request))
        }
        endMessage(start)
    }

    private mutating func addResult(_ result: AttemptResult) throws {
        typealias Tag = AttemptResultTag
        let start = beginMessage(WorkerEventTag.finished)
        switch result.end {
        case .succeeded: addEmptyMessage(Tag.succeeded)
        case .failed(let error): try addGenerated(Tag.failed, ProtoOperationError(error))
        case .cancelled: addEmptyMessage(Tag.cancelled)
        // Their numbers are higher than those of the fields that follow.
        case .crashed, .notYet: break
        }
        add(Tag.startedAt, result.startedAt.nanoseconds)
        add(Tag.endedAt, result.endedAt.nanoseconds)
        if result.output != .empty { addPayload(Tag.output, result.output) }
        add(Tag.logTail, result.log.tail)
        add(Tag.logBytesDropped, result.log.missing)
        if case .crashed = result.end { addEmptyMessage(Tag.crashed) }
        if case .notYet(let pause) = result.end { addEvenZero(Tag.notYet, pause.nanoseconds) }
        add(Tag.upToDate, result.isUpToDate)
        add(Tag.logHead, result.log.head)
        endMessage(start)
    }
}

// MARK: - From bytes

extension FieldReader {
    mutating func events() throws(WireError) -> EventBatch {
        var batch = EventBatch(firstNumber: 0, sentAt: .zero, events: [])
        let outer = try enter()
        var last: UInt64 = 0
        while let tag = try nextTag(after: &last) {
            switch tag {
            case EventBatchTag.firstNumber: batch.firstNumber = try number()
            case EventBatchTag.sentAt: batch.sentAt = try moment()
            case EventBatchTag.events:
                if batch.events.isEmpty { batch.events.reserveCapacity(try count(of: tag)) }
                batch.events.append(try event())
                last = tag - 1
            case _: throw Self.irregular
            }
        }
        leave(outer)
        let (_, isOver) = batch.firstNumber.addingReportingOverflow(UInt64(batch.events.count))
        guard !batch.events.isEmpty, batch.firstNumber >= 1, !isOver else { throw Self.irregular }
        return batch
    }

    private mutating func event() throws(WireError) -> WorkerEvent {
        typealias Tag = WorkerEventTag
        let outer = try enter()
        var last: UInt64 = 0
        // The attempt has the lowest number, and an event without one is invalid.
        guard try nextTag(after: &last) == Tag.held else { throw Self.irregular }
        let held = try held()
        let event: WorkerEvent
        switch try nextTag(after: &last) {
        case Tag.started: event = .started(held, at: try moment())
        case Tag.finished: event = .finished(held, try result())
        case Tag.returned:
            try skipEmptyMessage()
            event = .returned(held)
        case Tag.added:
            let request: ProtoAddition = try generated(depth: 3)
            event = .added(held, try AdditionRequest(request))
        case Tag.yielded:
            let request: ProtoWait = try generated(depth: 3)
            event = .yielded(held, try WaitRequest(request))
        case Tag.read:
            let request: ProtoRead = try generated(depth: 3)
            event = .read(held, try ReadRequest(request))
        case _: throw Self.irregular
        }
        guard isAtEnd else { throw Self.irregular }
        leave(outer)
        return event
    }

    private mutating func result() throws(WireError) -> AttemptResult {
        typealias Tag = AttemptResultTag
        var result = AttemptResult(end: .succeeded, startedAt: .zero, endedAt: .zero)
        var hasEnd = false
        let outer = try enter()
        var last: UInt64 = 0
        while let tag = try nextTag(after: &last) {
            switch tag {
            case Tag.succeeded, Tag.failed, Tag.cancelled, Tag.crashed, Tag.notYet:
                guard !hasEnd else { throw Self.irregular }
                result.end = try attemptEnd(tag)
                hasEnd = true
            case Tag.startedAt: result.startedAt = try moment()
            case Tag.endedAt: result.endedAt = try moment()
            case Tag.output: result.output = try payload()
            case Tag.logTail: result.log.tail = try data()
            case Tag.logBytesDropped: result.log.missing = try number()
            case Tag.upToDate: result.isUpToDate = try flag()
            case Tag.logHead: result.log.head = try data()
            case _: throw Self.irregular
            }
        }
        leave(outer)
        guard hasEnd else { throw Self.irregular }
        // It is true only of a success.
        guard !result.isUpToDate || result.end == .succeeded else { throw Self.irregular }
        return result
    }

    private mutating func attemptEnd(_ tag: UInt64) throws(WireError) -> AttemptEnd {
        typealias Tag = AttemptResultTag
        switch tag {
        case Tag.failed:
            let error: ProtoOperationError = try generated(depth: 4)
            return .failed(try OperationError(error))
        case Tag.notYet: return .notYet(after: try Check.duration(try signed(), ""))
        case _:
            try skipEmptyMessage()
            switch tag {
            case Tag.cancelled: return .cancelled
            case Tag.crashed: return .crashed
            case _: return .succeeded
            }
        }
    }

    private mutating func moment() throws(WireError) -> Timestamp {
        try Check.moment(try signed(), "")
    }
}
