import DequeModule
package import OperonModel

// What running operations ask of the coordinator: told by numbered events, listed in beats until
// the verdict has come, and told anew when the coordinator says that it has none.
extension WorkerAgent {
    /// What an operation asks; the shell gives it a number, and waits for the answer with it.
    package enum RequestContent: Hashable, Sendable {
        /// Add these operations to its graph: what they are made of, as a coordinator keeps it.
        case add([UInt8])
        /// Wait for operations of these names, without a slot meanwhile.
        case wait([String])
        /// What has the operation of this name left?
        case read(String)
    }

    /// What the shell hands to whoever asked.
    package struct RequestAnswer: Hashable, Sendable {
        package enum Content: Hashable, Sendable {
            /// This many operations are new.
            case added(UInt32)
            /// How those that it waited for ended, in the order of their names.
            case awaited([OutcomeKind])
            /// What it asked for; `nil`: nothing was left.
            case read(Payload?)
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
        guard let holding = held[attempt], holding.state != .waiting, holding.end == .report,
            drain != .left
        else {
            effects.answers.append(RequestAnswer(number: number, content: .ended))
            return
        }
        if let refusal = refusal(of: content, of: holding) {
            effects.answers.append(RequestAnswer(number: number, content: .refused(refusal)))
            return
        }
        // Whoever asks runs: the coordinator hears of that first.
        reportStart(attempt)
        let held = holding.operation.held
        open.append(OpenState(number: number, held: held, content: content, event: 0))
        tell(open.count - 1)
        guard case .wait = content else { return }
        self.held[attempt]?.state = .yielded
        runningCount -= 1
        yieldedCount += 1
    }

    private func refusal(of content: RequestContent, of holding: Holding) -> Refusal? {
        let limits = configuration.limits
        switch content {
        case .read(let name): return refusalOfMore ?? refusal(ofLong: [name], "read")
        case .add(let operations):
            if let refusalOfMore { return refusalOfMore }
            guard operations.count > limits.additionBytes else { return nil }
            return .limitExceeded(
                limit: .additionBytes,
                value: operations.count,
                maximum: limits.additionBytes
            )
        case .wait(let names):
            // The coordinator's word, without the way there: that it is a second one is known only
            // here once the first is on its way back.
            if holding.state == .yielded {
                let why = "this operation waits already: name all at once"
                return .invalid(field: "wait", why: why)
            }
            if names.count > limits.awaitedOperations {
                return .limitExceeded(
                    limit: .awaitedOperations,
                    value: names.count,
                    maximum: limits.awaitedOperations
                )
            }
            if let refusal = refusal(ofLong: names, "wait") { return refusal }
            guard yieldedCount >= limits.yieldedOperations else { return nil }
            return .limitExceeded(
                limit: .yieldedOperations,
                value: yieldedCount + 1,
                maximum: limits.yieldedOperations
            )
        }
    }

    /// So many names of any length would be in no message.
    private func refusal(ofLong names: [String], _ field: String) -> Refusal? {
        // A graph, the number of an operation, and its name: `GRAPH/7/NAME`.
        let maximum = 2 * configuration.limits.nameBytes + Self.numberBytes
        guard let long = names.first(where: { $0.utf8.count > maximum }) else { return nil }
        let why = "a name in it has \(long.utf8.count) bytes, and none has more than \(maximum)"
        return .invalid(field: field, why: why)
    }

    /// Of the number of an operation between two slashes.
    private static let numberBytes = 16

    /// What waits does not count: it must not keep out what would end its waiting.
    private var refusalOfMore: Refusal? {
        let limits = configuration.limits
        let others = open.count { if case .wait = $0.content { false } else { true } }
        guard others >= limits.openRequests else { return nil }
        return .limitExceeded(
            limit: .openRequests,
            value: others + 1,
            maximum: limits.openRequests
        )
    }

    /// Numbers an event for it.
    private mutating func tell(_ place: Int) {
        let request = open[place]
        switch request.content {
        case .add(let operations):
            let addition = AdditionRequest(number: request.number, operations: operations)
            record(.added(request.held, addition))
        case .wait(let names):
            record(.yielded(request.held, WaitRequest(number: request.number, names: names)))
        case .read(let name):
            record(.read(request.held, ReadRequest(number: request.number, name: name)))
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
        case .ended(let outcomes): answer(place, .awaited(outcomes), into: &effects)
        case .output(let output): answer(place, .read(output), into: &effects)
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
        let answer = RequestAnswer(number: request.number, content: content)
        guard case .wait = request.content, configuration.violation != .resumesWithoutSlot else {
            effects.answers.append(answer)
            return
        }
        resuming.append((request.held.attempt, answer))
    }

    /// What has its answer goes on before anything new starts, each as soon as there is a slot for
    /// it: another one may have started in its own.
    mutating func resumeYielded(into effects: inout Effects) {
        while runningCount + fetcher.count < configuration.slots, let next = resuming.popFirst() {
            takeSlot(next.attempt)
            effects.answers.append(next.answer)
        }
    }

    private mutating func takeSlot(_ attempt: AttemptID) {
        // benign: it has ended, and gave back what it had.
        guard held[attempt]?.state == .yielded else { return }
        held[attempt]?.state = .running
        yieldedCount -= 1
        runningCount += 1
    }

    /// It is not listed from here on, from which the coordinator learns it. What waited runs on, if
    /// need be on a slot too many: nobody can hold it back.
    mutating func withdraw(_ number: UInt64, into effects: inout Effects) {
        let answer = RequestAnswer(number: number, content: .ended)
        if let place = open.firstIndex(where: { $0.number == number }) {
            let request = open.remove(at: place)
            if case .wait = request.content { takeSlot(request.held.attempt) }
        } else if let place = resuming.firstIndex(where: { $0.answer.number == number }) {
            takeSlot(resuming.remove(at: place).attempt)
        } else {
            return  // benign: it was answered meanwhile.
        }
        effects.answers.append(answer)
    }

    /// Nobody waits for what an attempt asked that is not held any more.
    mutating func closeRequests(into effects: inout Effects) {
        resuming.removeAll { next in
            guard held[next.attempt]?.end ?? .silent == .silent else { return false }
            effects.answers.append(
                RequestAnswer(number: next.answer.number, content: .ended)
            )
            return true
        }
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
