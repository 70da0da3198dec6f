import OperonModel

// The messages of a worker, one after the other: conversion to the generated types, and back with
// every field checked.

extension ProtoEnvelope.OneOf_Body {
    init(_ message: WorkerMessage) {
        switch message {
        case .hello(let hello): self = .hello(ProtoHello(hello))
        case .events(let batch): self = .events(ProtoEventBatch(batch))
        case .beat(let beat): self = .beat(ProtoBeat(beat))
        case .log(let chunk): self = .log(ProtoLogChunk(chunk))
        case .progress(let report): self = .progress(ProtoProgressReport(report))
        case .tick(let tick): self = .tick(ProtoTick(tick))
        case .fetch(let requests): self = .fetch(ProtoFetch(requests))
        case .watched(let reports): self = .watched(ProtoWatchReports(reports))
        }
    }
}

extension WorkerMessage {
    init(_ body: ProtoEnvelope.OneOf_Body, limits: Limits) throws(WireError) {
        switch body {
        case .hello(let hello): self = .hello(try Hello(hello, limits: limits))
        case .events(let batch): self = .events(try EventBatch(batch))
        case .beat(let beat): self = .beat(try Beat(beat))
        case .log(let chunk): self = .log(try LogChunk(chunk))
        case .progress(let report):
            self = .progress(try ProgressReport(report, limits: limits))
        case .tick(let tick): self = .tick(try Tick(tick))
        case .dispatch: throw Wire.misplaced("dispatch", from: "worker")
        case .control: throw Wire.misplaced("control", from: "worker")
        case .welcome: throw Wire.misplaced("welcome", from: "worker")
        case .resync: throw Wire.misplaced("resync", from: "worker")
        case .refused: throw Wire.misplaced("refused", from: "worker")
        case .fetch(let fetch): self = .fetch(try fetch.checked)
        case .chunks: throw Wire.misplaced("chunks", from: "worker")
        case .watch: throw Wire.misplaced("watch", from: "worker")
        case .watched(let reports): self = .watched(try reports.checked)
        }
    }
}

// MARK: - Hello

extension ProtoHello {
    init(_ hello: Hello) {
        self.init()
        sentAtNanoseconds = hello.sentAt.nanoseconds
        host = hello.host
        processID = hello.processID
        slots = hello.slots
        queues = hello.queues
        kinds = hello.kinds
        runsAnyKind = hello.runsAnyKind
        resources = hello.offer.resources.all.map { ProtoResourceAmount($0) }
        labels = hello.offer.labels.map { label in
            var proto = ProtoWorkerLabel()
            proto.name = label.name
            proto.value = label.value
            return proto
        }
        enforces = hello.offer.enforces
        watches = hello.offer.watches
        secrets = hello.offer.secrets
        held = hello.held.map { ProtoHeldAttempt($0) }
        firstEvent = hello.firstEvent
        lastEvent = hello.lastEvent
        isDraining = hello.isDraining
        worker = hello.worker
        predecessor = hello.predecessor?.rawValue ?? 0
    }
}

extension Hello {
    init(_ proto: ProtoHello, limits: Limits) throws(WireError) {
        guard proto.processID >= 0 else {
            throw .invalid("hello.process_id", "is negative: \(proto.processID)")
        }
        guard proto.slots >= 1, proto.slots <= limits.slots else {
            throw .invalid(
                "hello.slots",
                "is \(proto.slots): a worker has 1 to \(limits.slots) (slots)"
            )
        }
        let first = try Check.ordinal(proto.firstEvent, "hello.first_event")
        guard first - 1 <= proto.lastEvent else {
            throw .invalid(
                "hello.first_event",
                "is \(first): more than one above the last event, \(proto.lastEvent)"
            )
        }
        self.init(
            sentAt: try Check.moment(proto.sentAtNanoseconds, "hello.sent_at"),
            host: try Check.label(proto.host, "hello.host", limits: limits),
            processID: proto.processID,
            slots: proto.slots,
            queues: try proto.queues.map { name throws(WireError) in
                try Check.name(name, "hello.queues", limits: limits)
            },
            kinds: try proto.kinds.map { name throws(WireError) in
                try Check.name(name, "hello.kinds", limits: limits)
            },
            held: try proto.held.map { held throws(WireError) in
                try HeldAttempt(held, "hello.held")
            },
            firstEvent: first,
            lastEvent: proto.lastEvent,
            isDraining: proto.isDraining,
            worker: try Check.label(proto.worker, "hello.worker", limits: limits),
            predecessor: proto.predecessor == 0 ? nil : Incarnation(rawValue: proto.predecessor)
        )
        runsAnyKind = proto.runsAnyKind
        offer.resources = try ResourceAmounts(proto.resources, "hello.resources", limits)
        offer.labels = proto.labels.map { WorkerLabel($0.name, $0.value) }
        offer.enforces = proto.enforces
        offer.watches = proto.watches
        offer.secrets = proto.secrets
        do throws(Refusal) {
            try offer.check(limits)
        } catch {
            throw .invalid("hello.labels", "\(error)")
        }
    }
}

// MARK: - Events

extension ProtoEventBatch {
    init(_ batch: EventBatch) {
        self.init()
        firstNumber = batch.firstNumber
        sentAtNanoseconds = batch.sentAt.nanoseconds
        events = batch.events.map { ProtoWorkerEvent($0) }
    }
}

extension EventBatch {
    init(_ proto: ProtoEventBatch) throws(WireError) {
        guard !proto.events.isEmpty else { throw .invalid("events.events", "is empty") }
        let first = try Check.ordinal(proto.firstNumber, "events.first_number")
        guard !first.addingReportingOverflow(UInt64(proto.events.count)).overflow else {
            throw .invalid("events.first_number", "is \(first): the events after it have none")
        }
        self.init(
            firstNumber: first,
            sentAt: try Check.moment(proto.sentAtNanoseconds, "events.sent_at"),
            events: try proto.events.map { event throws(WireError) in try WorkerEvent(event) }
        )
    }
}

extension ProtoWorkerEvent {
    init(_ event: WorkerEvent) {
        self.init()
        held = ProtoHeldAttempt(event.held)
        switch event {
        case .started(_, let moment): what = .startedAtNanoseconds(moment.nanoseconds)
        case .finished(_, let result): what = .finished(ProtoAttemptResult(result))
        case .returned: what = .returned(ProtoEmpty())
        case .added(_, let request): what = .added(ProtoAddition(request))
        case .read(_, let request): what = .read(ProtoRead(request))
        case .yielded(_, let request): what = .yielded(ProtoWait(request))
        }
    }
}

extension WorkerEvent {
    init(_ proto: ProtoWorkerEvent) throws(WireError) {
        guard proto.hasHeld else { throw .missing("event.held") }
        let held = try HeldAttempt(proto.held, "event.held")
        switch proto.what {
        case .startedAtNanoseconds(let moment):
            self = .started(held, at: try Check.moment(moment, "event.started_at"))
        case .finished(let result): self = .finished(held, try AttemptResult(result))
        case .returned: self = .returned(held)
        case .added(let request): self = .added(held, try AdditionRequest(request))
        case .read(let request): self = .read(held, try ReadRequest(request))
        case .yielded(let request): self = .yielded(held, try WaitRequest(request))
        case nil: throw .missing("event.what")
        }
    }
}

// MARK: - Beat

extension ProtoBeat {
    init(_ beat: Beat) {
        self.init()
        sentAtNanoseconds = beat.sentAt.nanoseconds
        received = beat.received
        sent = beat.sent
        held = beat.held.map { ProtoHeldAttempt($0) }
        isDraining = beat.isDraining
        if !beat.requests.isEmpty { requests = beat.requests.map { ProtoOutputRequest($0) } }
        if !beat.open.isEmpty { open = beat.open.map { ProtoOpenRequest($0) } }
    }
}

extension Beat {
    init(_ proto: ProtoBeat) throws(WireError) {
        self.init(
            sentAt: try Check.moment(proto.sentAtNanoseconds, "beat.sent_at"),
            received: proto.received,
            sent: proto.sent,
            held: try proto.held.map { held throws(WireError) in
                try HeldAttempt(held, "beat.held")
            },
            isDraining: proto.isDraining,
            requests: try proto.requests.map { request throws(WireError) in
                try OutputRequest(request)
            },
            open: try proto.open.map { request throws(WireError) in try OpenRequest(request) }
        )
    }
}

// MARK: - Tick

extension ProtoTick {
    init(_ tick: Tick) {
        self.init()
        number = tick.number
        isBeat = tick.way == .beats
    }
}

extension Tick {
    init(_ proto: ProtoTick) throws(WireError) {
        self.init(
            number: try Check.ordinal(proto.number, "tick.number"),
            way: proto.isBeat ? .beats : .events
        )
    }
}

// MARK: - Progress

extension ProtoProgressReport {
    init(_ report: ProgressReport) {
        self.init()
        held = ProtoHeldAttempt(report.held)
        fraction = report.progress.fraction
        text = report.progress.text ?? ""
    }
}

extension ProgressReport {
    init(_ proto: ProtoProgressReport, limits: Limits) throws(WireError) {
        guard proto.hasHeld else { throw .missing("progress.held") }
        guard (0...1).contains(proto.fraction) else {
            throw .invalid("progress.fraction", "is \(proto.fraction), not from 0 to 1")
        }
        let text = try Check.label(proto.text, "progress.text", limits: limits)
        self.init(
            held: try HeldAttempt(proto.held, "progress.held"),
            progress: ReportedProgress(fraction: proto.fraction, text: text.isEmpty ? nil : text)
        )
    }
}

// MARK: - Log

extension ProtoLogChunk {
    init(_ chunk: LogChunk) {
        self.init()
        held = ProtoHeldAttempt(chunk.held)
        switch chunk.stream {
        case .output: stream = .output
        case .error: stream = .error
        }
        offset = chunk.offset
        if let place = chunk.position { position = place }
        value = byteString(chunk.bytes)
    }
}

extension LogChunk {
    init(_ proto: ProtoLogChunk) throws(WireError) {
        guard proto.hasHeld else { throw .missing("log.held") }
        let stream: LogStream
        switch proto.stream {
        case .output: stream = .output
        case .error: stream = .error
        case .unspecified, .UNRECOGNIZED: throw .missing("log.stream")
        }
        self.init(
            held: try HeldAttempt(proto.held, "log.held"),
            stream: stream,
            offset: proto.offset,
            position: proto.hasPosition ? proto.position : nil,
            bytes: [UInt8](proto.value)
        )
    }
}
