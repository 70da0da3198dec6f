package import OperonModel

// What running operations ask of the coordinator: told by numbered events, listed in beats until
// the verdict has come, and told anew when the coordinator says that it has none.
extension WorkerAgent {
    /// What an operation asks; the shell gives it a number, and waits for the answer with it.
    package enum RequestContent: Hashable, Sendable {
        /// Add these operations to its graph: what they are made of, as a coordinator keeps it.
        case add([UInt8])
    }

    /// What the shell hands to whoever asked.
    package struct RequestAnswer: Hashable, Sendable {
        package enum Content: Hashable, Sendable {
            /// This many operations are new.
            case added(UInt32)
            case refused(Refusal)
            /// The attempt has ended, or is somebody else's.
            case ended
        }

        package var number: UInt64
        package var content: Content

        package init(number: UInt64, content: Content) {
            self.number = number
            self.content = content
        }
    }

    /// A request without a verdict.
    struct OpenState: Sendable {
        let number: UInt64
        let held: HeldAttempt
        let content: RequestContent
        /// The number of the event that told of it last.
        var event: UInt64
    }

    mutating func ask(
        _ content: RequestContent,
        number: UInt64,
        of attempt: AttemptID,
        into effects: inout Effects
    ) {
        guard let holding = held[attempt], holding.state == .running, holding.end == .report,
            drain != .left
        else {
            effects.answers.append(RequestAnswer(number: number, content: .ended))
            return
        }
        if let refusal = refusal(of: content) {
            effects.answers.append(RequestAnswer(number: number, content: .refused(refusal)))
            return
        }
        // Whoever asks runs: the coordinator hears of that first.
        reportStart(attempt)
        let held = holding.operation.held
        open.append(OpenState(number: number, held: held, content: content, event: 0))
        tell(open.count - 1)
    }

    private func refusal(of content: RequestContent) -> Refusal? {
        let limits = configuration.limits
        guard open.count < limits.openRequests else {
            return .limitExceeded(
                limit: .openRequests,
                value: open.count + 1,
                maximum: limits.openRequests
            )
        }
        switch content {
        case .add(let operations):
            guard operations.count > limits.additionBytes else { return nil }
            return .limitExceeded(
                limit: .additionBytes,
                value: operations.count,
                maximum: limits.additionBytes
            )
        }
    }

    /// Numbers an event for it.
    private mutating func tell(_ place: Int) {
        let request = open[place]
        switch request.content {
        case .add(let operations):
            let addition = AdditionRequest(number: request.number, operations: operations)
            record(.added(request.held, addition))
        }
        open[place].event = firstEvent + UInt64(events.count) - 1
    }

    /// Those that a beat lists.
    var openRequests: [OpenRequest] {
        guard configuration.violation != .hidesOpenRequests else { return [] }
        return open.map { OpenRequest(number: $0.number, held: $0.held, event: $0.event) }
    }

    mutating func take(_ verdict: Verdict, into effects: inout Effects) {
        // benign: said before and repeated, or the attempt has ended meanwhile.
        guard let place = open.firstIndex(where: { $0.number == verdict.number }) else { return }
        switch verdict.content {
        case .added(let count): answer(place, .added(count), into: &effects)
        case .refused(let refusal): answer(place, .refused(refusal), into: &effects)
        case .again:
            // benign: said twice, and it was told anew in between.
            if open[place].event == verdict.event { tell(place) }
        }
    }

    private mutating func answer(
        _ place: Int,
        _ content: RequestAnswer.Content,
        into effects: inout Effects
    ) {
        let request = open.remove(at: place)
        effects.answers.append(RequestAnswer(number: request.number, content: content))
    }

    /// Nobody waits for what an attempt asked that is not held any more.
    mutating func closeRequests(into effects: inout Effects) {
        guard !open.isEmpty else { return }
        var left: [OpenState] = []
        for request in open {
            if let holding = held[request.held.attempt], holding.end != .silent {
                left.append(request)
            } else {
                effects.answers.append(
                    RequestAnswer(number: request.number, content: .ended)
                )
            }
        }
        open = left
    }
}
