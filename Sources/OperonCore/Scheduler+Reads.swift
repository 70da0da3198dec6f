package import OperonModel

// Running operations that want to know what another one left, one that they waited for as a rule.
// Bytes and names mean nothing here: whoever knows them finds them, as for additions.
extension Scheduler {
    /// An output that a running operation asks for, to be looked up by the name of whose it is.
    /// Nothing that its worker said after it is handled until `readJudged` is given back.
    package struct ReadOrder: Hashable, Sendable {
        /// The worker's place.
        let worker: Int
        package let held: HeldAttempt
        /// The number of the event.
        package let event: UInt64
        package let request: ReadRequest
    }

    /// What came of looking.
    package enum ReadJudgement: Sendable {
        /// Whose it is, and what it left; `nil`: nothing.
        case found(OperationID, Payload?)
        /// It is not at hand by now: it is to be asked for again.
        case notLoaded
        case refused(Refusal)
    }

    mutating func order(
        _ request: ReadRequest,
        of held: HeldAttempt,
        event: UInt64,
        from worker: Int,
        into effects: inout Effects
    ) {
        guard beginJudging(held, from: worker, into: &effects) else { return }
        effects.reads.append(
            ReadOrder(worker: worker, held: held, event: event, request: request)
        )
    }

    /// Answers, and goes on with what else the worker said. The verdict is not kept as others are,
    /// because an output is large: if it is lost, the worker is told to ask again.
    mutating func judge(
        _ order: ReadOrder,
        _ judgement: ReadJudgement,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard endJudging(of: order.worker) else { return }
        let content: Verdict.Content
        switch judgement {
        case .notLoaded: content = .again
        case .refused(let refusal): content = .refused(refusal.cutShort)
        case .found(let operation, let output):
            switch outcomeKind(of: operation) {
            case .succeeded: content = .output(output)
            case .failed, .cancelled, .skipped: content = .output(nil)
            case nil:
                let why = "“\(order.request.name)” has not ended: wait for it first"
                content = .refused(.invalid(field: "output", why: why))
            }
        }
        let verdict = Verdict(
            number: order.request.number,
            event: order.event,
            content: content
        )
        let control = Control(
            acknowledged: workers[order.worker].handled,
            verdicts: [verdict]
        )
        send(.plain(.control(control)), to: order.worker, into: &effects)
        handleRest(of: order.worker, at: now, into: &effects)
    }
}
