import DequeModule
package import OperonModel

// Requests of running operations to the coordinator. They are reported by numbered events, listed
// in beats until the verdict has come, and reported again if the coordinator has no verdict.
extension WorkerAgent {
    /// A request of an operation. The shell numbers it, and waits for the answer under that number.
    package enum RequestContent: Hashable, Sendable {
        /// Add these operations to its graph. The bytes are their contents as a coordinator stores
        /// them.
        case add([UInt8])
        /// Wait for operations of these names, without a slot meanwhile.
        case wait([String])
        /// Get the output of the operation of this name.
        case read(String)
    }

    /// The answer that the shell passes to the requester.
    package struct RequestAnswer: Hashable, Sendable {
        package enum Content: Hashable, Sendable {
            /// This many operations are new.
            case added(UInt32)
            /// The outcomes of the operations that it waited for, in the order of their names.
            case awaited([OutcomeKind])
            /// The requested output; `nil`: the operation left none.
            case read(Payload?)
            case refused(Refusal)
            /// The attempt has ended, or belongs to another worker.
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
        /// The number of the last event that reported it.
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
        // Only a running operation can ask, so its start is reported first.
        reportStart(attempt)
        let held = holding.operation.held
        open.append(OpenState(number: number, held: held, content: content, event: 0))
        tell(open.count - 1)
        guard case .wait = content else { return }
        self.held[attempt]?.state = .yielded
        allocations.yield(attempt)
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
            // The same refusal that the coordinator would give, without the round trip. Once the
            // answer to the first wait is on its way back, only this worker knows that this is a
            // second one.
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

    /// Refuses names that are too long: so many of them, of any length, would not fit into a
    /// message.
    private func refusal(ofLong names: [String], _ field: String) -> Refusal? {
        // A graph, the number of an operation, and its name: `GRAPH/7/NAME`.
        let maximum = 2 * configuration.limits.nameBytes + Self.numberBytes
        guard let long = names.first(where: { $0.utf8.count > maximum }) else { return nil }
        let why = "a name in it has \(long.utf8.count) bytes, and none has more than \(maximum)"
        return .invalid(field: field, why: why)
    }

    /// For the number of an operation between two slashes.
    private static let numberBytes = 16

    /// An operation that waits does not count: it must not keep out the operations that would end
    /// its wait.
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

    /// Reports a request by a new numbered event.
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

    /// The requests that a beat lists.
    var openRequests: [OpenRequest] {
        guard configuration.violation != .hidesOpenRequests else { return [] }
        return open.map { OpenRequest(number: $0.number, held: $0.held, event: $0.event) }
    }

    mutating func take(_ verdict: Verdict, into effects: inout Effects) {
        // benign: the verdict was repeated, or the attempt has ended meanwhile.
        guard let place = open.firstIndex(where: { $0.number == verdict.number }) else { return }
        switch verdict.content {
        case .added(let count): answer(place, .added(count), into: &effects)
        case .ended(let outcomes): answer(place, .awaited(outcomes), into: &effects)
        case .output(let output): answer(place, .read(output), into: &effects)
        case .refused(let refusal): answer(place, .refused(refusal), into: &effects)
        case .again:
            // benign: the verdict was repeated, and the request was reported again in between.
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

    /// Resumes operations that have their answers, before anything new starts. Each resumes as soon
    /// as it has a slot and its own resources, since another operation may have started with them.
    /// One that waits for its graphics processors does not hold up those behind it.
    mutating func resumeYielded(into effects: inout Effects) {
        while runningCount + fetcher.count < configuration.slots,
            let place = resuming.firstIndex(where: { allocations.canResume($0.attempt) })
        {
            let next = resuming.remove(at: place)
            takeSlot(next.attempt)
            effects.answers.append(next.answer)
        }
    }

    private mutating func takeSlot(_ attempt: AttemptID) {
        // benign: it has ended, and has given back its resources.
        guard held[attempt]?.state == .yielded else { return }
        held[attempt]?.state = .running
        allocations.resume(attempt)
        yieldedCount -= 1
        runningCount += 1
    }

    /// Withdraws a request. Beats no longer list it, and that is how the coordinator learns of it.
    /// An operation that waited runs on, if necessary beyond the number of slots, because nothing
    /// can hold it back.
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

    /// Closes the requests of attempts that are no longer held.
    mutating func closeRequests(into effects: inout Effects) {
        resuming.removeAll { next in
            guard held[next.attempt]?.end ?? .silent == .silent else { return false }
            effects.answers.append(RequestAnswer(number: next.answer.number, content: .ended))
            return true
        }
        guard !open.isEmpty else { return }
        var left: [OpenState] = []
        for request in open {
            if let holding = held[request.held.attempt], holding.end != .silent {
                left.append(request)
            } else {
                effects.answers.append(RequestAnswer(number: request.number, content: .ended))
            }
        }
        open = left
    }
}
