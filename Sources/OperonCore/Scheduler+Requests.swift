package import OperonModel

// What running operations ask. Their names mean nothing here: whether an addition fits is found out
// by whoever knows them, with `CompiledAddition`, before anything else of that worker is handled.
extension Scheduler {
    /// An addition of a running operation that is to be compiled. Nothing that its worker said
    /// after it is handled until `additionJudged` is given back.
    package struct AdditionOrder: Hashable, Sendable {
        /// The worker's place.
        let worker: Int
        package let held: HeldAttempt
        /// The number of the event.
        package let event: UInt64
        package let request: AdditionRequest
    }

    /// What came of compiling it.
    package enum AdditionJudgement: Sendable {
        case fits(CompiledAddition)
        /// All of it was added before.
        case known
        case refused(Refusal)
    }

    /// What an addition of a running operation is compiled against: also of a graph that takes none
    /// from clients.
    package func additionBase(inside id: GraphID) throws(Refusal) -> CompiledAddition.Base {
        guard exists(id) else { throw unknown(.graph(id)) }
        return base(of: id)
    }

    /// A worker waits for an answer: nothing that it said after the question is handled before it.
    /// Only who runs may ask.
    ///
    /// - Returns: Whether the question is to be judged.
    mutating func beginJudging(
        _ held: HeldAttempt,
        from worker: Int,
        acceptsStale: Bool = false,
        into effects: inout Effects
    ) -> Bool {
        let attempt = attemptPlace(of: held, ownedBy: worker).flatMap { attempts[Int($0)] }
        guard attempt?.hasStarted == true || acceptsStale else {
            effects.notices.append(.eventRefused(held.attempt))
            return false
        }
        workers[worker].isJudging = true
        return true
    }

    /// Whether it had begun.
    mutating func endJudging(of worker: Int) -> Bool {
        // benign: a judgement that nobody asked for.
        guard workers.indices.contains(worker), workers[worker].isJudging else { return false }
        workers[worker].isJudging = false
        return true
    }

    mutating func order(
        _ request: AdditionRequest,
        of held: HeldAttempt,
        event: UInt64,
        from worker: Int,
        into effects: inout Effects
    ) {
        let acceptsStale = configuration.violation == .acceptsStaleAdditions
        guard beginJudging(held, from: worker, acceptsStale: acceptsStale, into: &effects)
        else { return }
        effects.additions.append(
            AdditionOrder(worker: worker, held: held, event: event, request: request)
        )
    }

    /// Adds what fits, keeps the verdict until the worker has it, and goes on with what else the
    /// worker said.
    mutating func judge(
        _ order: AdditionOrder,
        _ judgement: AdditionJudgement,
        at now: Moment,
        into effects: inout Effects
    ) {
        guard endJudging(of: order.worker) else { return }
        let content: Verdict.Content
        switch judgement {
        case .known: content = .added(0)
        case .refused(let refusal): content = .refused(refusal.cutShort)
        case .fits(let addition):
            let graph = order.held.operation.graph
            let closed = refusalOfCancelled(graph)
            if let refusal = closed ?? refusal(of: addition, to: graph) {
                content = .refused(refusal.cutShort)
            } else {
                let count = grow(graph, by: addition, of: order.held, at: now, into: &effects)
                content = .added(UInt32(count))
            }
        }
        let verdict = Verdict(
            number: order.request.number,
            event: order.event,
            content: content
        )
        give(verdict, to: order.worker, into: &effects)
        handleRest(of: order.worker, at: now, into: &effects)
    }

    /// Kept until the worker has it.
    mutating func give(_ verdict: Verdict, to worker: Int, into effects: inout Effects) {
        workers[worker].verdicts.append(verdict)
        let control = Control(acknowledged: workers[worker].handled, verdicts: [verdict])
        send(.plain(.control(control)), to: worker, into: &effects)
    }

    /// Goes on with what the worker said behind a request that is judged by now.
    mutating func handleRest(of worker: Int, at now: Moment, into effects: inout Effects) {
        guard let rest = workers[worker].rest else { return }
        workers[worker].rest = nil
        receive(rest, from: worker, at: now, into: &effects)
    }

    /// Cancelling a graph closed it for whatever was not there yet.
    private func refusalOfCancelled(_ id: GraphID) -> Refusal? {
        let graph = graphs[Int(id.rawValue)]
        return graph.isCancelled ? .graphClosed(name: graph.compiled.name) : nil
    }

    /// The verdicts on what a beat lists. One that was lost with whoever gave it is asked for anew:
    /// the same addition gets the same answer.
    mutating func verdicts(
        on beat: Beat,
        of worker: Int,
        into effects: inout Effects
    ) -> [Verdict] {
        let listed = Set(beat.open.map(\.number))
        workers[worker].verdicts.removeAll { verdict in
            verdict.event <= beat.sent && !listed.contains(verdict.number)
        }
        dropWaits(of: worker, notIn: listed, sent: beat.sent, into: &effects)
        var verdicts: [Verdict] = []
        let limits = configuration.limits
        for request in beat.open.prefix(limits.openRequests + limits.yieldedOperations) {
            // It is on its way, or behind a gap.
            guard request.event <= workers[worker].handled else { continue }
            if isWaiting(request) { continue }
            let known = workers[worker].verdicts.last { $0.number == request.number }
            if let known {
                verdicts.append(known)
            } else if attemptPlace(of: request.held, ownedBy: worker) != nil {
                verdicts.append(
                    Verdict(number: request.number, event: request.event, content: .again)
                )
            }
        }
        return verdicts
    }
}

extension Refusal {
    /// Of a cycle only so much as a person reads: a verdict travels with every beat until it has
    /// arrived.
    var cutShort: Refusal {
        let shown = 64
        guard case .dependencyCycle(let path) = self, path.count > shown else { return self }
        return .dependencyCycle(path: path.prefix(shown / 2) + ["…"] + path.suffix(shown / 2))
    }
}
