package import OperonModel

// Running operations that read the output of another operation, as a rule of one that they waited
// for. The scheduler does not know bytes and names: the shell finds them, as for additions.
extension Scheduler {
    /// A request of a running operation for the output of an operation with a certain name. Nothing
    /// that its worker sent after it is handled until `readJudged` is returned.
    package struct ReadOrder: Hashable, Sendable {
        /// The worker's index.
        let worker: Int
        package let held: HeldAttempt
        /// The number of the event.
        package let event: UInt64
        package let request: ReadRequest
    }

    /// The result of looking the output up.
    package enum ReadJudgement: Sendable {
        /// The operation and its output; `nil`: it left none.
        case found(OperationID, Payload?)
        /// The output is not loaded yet: the worker has to ask again.
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
        effects.reads.append(ReadOrder(worker: worker, held: held, event: event, request: request))
    }

    /// Answers, and goes on with the rest of what the worker sent. Unlike other verdicts this one
    /// is not kept, because an output is large: if it is lost, the worker is told to ask again.
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
        case .refused(let refusal): content = .refused(NumberedRefusal.worded(refusal).cutShort)
        case .found(let operation, let output):
            switch outcomeKind(of: operation) {
            case .succeeded: content = .output(output)
            case .failed, .cancelled, .skipped: content = .output(nil)
            case nil:
                let why = "“\(order.request.name)” has not ended: wait for it first"
                content = .refused(.worded(.invalid(field: "output", why: why)))
            }
        }
        let verdict = Verdict(
            number: order.request.number,
            event: order.event,
            content: content
        )
        tell(verdict, to: order.worker, into: &effects)
        handleRest(of: order.worker, at: now, into: &effects)
    }
}
