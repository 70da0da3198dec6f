import OperonModel

// The messages of a coordinator. Proto+Operation.swift has the operations in them.

extension ProtoEnvelope.OneOf_Body {
    init(_ message: CoordinatorMessage) {
        switch message {
        case .welcome(let welcome): self = .welcome(ProtoWelcome(welcome))
        case .dispatch(let dispatch): self = .dispatch(ProtoDispatch(dispatch))
        case .control(let control): self = .control(ProtoControl(control))
        case .resync: self = .resync(ProtoEmpty())
        case .refused(.newIncarnation): self = .refused(.newIncarnation)
        case .refused(.nameTaken): self = .refused(.nameTaken)
        case .refused(.tooManyWorkers): self = .refused(.tooManyWorkers)
        case .chunks(let chunks): self = .chunks(ProtoChunks(chunks))
        case .watch(let orders): self = .watch(ProtoWatchOrders(orders))
        }
    }
}

extension CoordinatorMessage {
    init(_ body: ProtoEnvelope.OneOf_Body, limits: Limits) throws(WireError) {
        switch body {
        case .welcome(let welcome): self = .welcome(try Welcome(welcome))
        case .dispatch(let dispatch): self = .dispatch(try Dispatch(dispatch, limits: limits))
        case .control(let control): self = .control(try Control(control))
        case .resync: self = .resync
        case .refused(.newIncarnation): self = .refused(.newIncarnation)
        case .refused(.nameTaken): self = .refused(.nameTaken)
        case .refused(.tooManyWorkers): self = .refused(.tooManyWorkers)
        case .refused(.unspecified), .refused(.UNRECOGNIZED): throw .missing("refused")
        case .hello: throw Wire.misplaced("hello", from: "coordinator")
        case .events: throw Wire.misplaced("events", from: "coordinator")
        case .beat: throw Wire.misplaced("beat", from: "coordinator")
        case .log: throw Wire.misplaced("log", from: "coordinator")
        case .progress: throw Wire.misplaced("progress", from: "coordinator")
        case .tick: throw Wire.misplaced("tick", from: "coordinator")
        case .chunks(let chunks): self = .chunks(try chunks.answers)
        case .fetch: throw Wire.misplaced("fetch", from: "coordinator")
        case .watch(let orders): self = .watch(try orders.checked)
        case .watched: throw Wire.misplaced("watched", from: "coordinator")
        }
    }
}

// MARK: - Welcome

extension ProtoWelcome {
    init(_ welcome: Welcome) {
        self.init()
        answersNanoseconds = welcome.answers.nanoseconds
        leaseNanoseconds = welcome.lease.nanoseconds
        beatNanoseconds = welcome.beat.nanoseconds
        eventWindow = welcome.eventWindow
        orphanAfterNanoseconds = welcome.orphanAfter.nanoseconds
        acknowledged = welcome.acknowledged
        orders = welcome.orders.map { ProtoOrder($0) }
    }
}

extension Welcome {
    init(_ proto: ProtoWelcome) throws(WireError) {
        self.init(
            answers: try Check.moment(proto.answersNanoseconds, "welcome.answers"),
            lease: try Check.interval(proto.leaseNanoseconds, "welcome.lease"),
            beat: try Check.interval(proto.beatNanoseconds, "welcome.beat"),
            eventWindow: try Check.ordinal(proto.eventWindow, "welcome.event_window"),
            orphanAfter: try Check.duration(
                proto.orphanAfterNanoseconds,
                "welcome.orphan_after"
            ),
            acknowledged: proto.acknowledged,
            orders: try proto.orders.map { order throws(WireError) in try Order(order) }
        )
    }
}

// MARK: - Control

extension ProtoControl {
    init(_ control: Control) {
        self.init()
        if let answers = control.answers { answersNanoseconds = answers.nanoseconds }
        acknowledged = control.acknowledged
        if let resendFrom = control.resendFrom { self.resendFrom = resendFrom }
        orders = control.orders.map { ProtoOrder($0) }
        if !control.verdicts.isEmpty { verdicts = control.verdicts.map { ProtoVerdict($0) } }
    }
}

extension Control {
    init(_ proto: ProtoControl) throws(WireError) {
        var answers: Timestamp?
        if proto.hasAnswersNanoseconds {
            answers = try Check.moment(proto.answersNanoseconds, "control.answers")
        }
        var resendFrom: UInt64?
        if proto.hasResendFrom {
            resendFrom = try Check.ordinal(proto.resendFrom, "control.resend_from")
        }
        self.init(
            answers: answers,
            acknowledged: proto.acknowledged,
            resendFrom: resendFrom,
            orders: try proto.orders.map { order throws(WireError) in try Order(order) },
            verdicts: try proto.verdicts.map { verdict throws(WireError) in
                try Verdict(verdict)
            }
        )
    }
}

extension ProtoOrder {
    init(_ order: Order) {
        self.init()
        switch order {
        case .recall(let held): self.order = .recall(ProtoHeldAttempt(held))
        case .cancel(let held): self.order = .cancel(ProtoHeldAttempt(held))
        case .stop(let held): self.order = .stop(ProtoHeldAttempt(held))
        case .drain: self.order = .drain(ProtoEmpty())
        }
    }
}

extension Order {
    init(_ proto: ProtoOrder) throws(WireError) {
        switch proto.order {
        case .recall(let held): self = .recall(try HeldAttempt(held, "order.recall"))
        case .cancel(let held): self = .cancel(try HeldAttempt(held, "order.cancel"))
        case .stop(let held): self = .stop(try HeldAttempt(held, "order.stop"))
        case .drain: self = .drain
        case nil: throw .missing("order")
        }
    }
}
