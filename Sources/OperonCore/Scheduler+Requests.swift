package import OperonModel

// Requests of running operations. The scheduler does not know names. So the shell, which does, uses
// `CompiledAddition` to find out whether an addition fits, before anything else from that worker is
// handled.
extension Scheduler {
    /// An addition of a running operation that is to be compiled. Nothing that its worker sent
    /// after it is handled until `additionJudged` is returned.
    package struct AdditionOrder: Hashable, Sendable {
        /// The worker's index.
        let worker: Int
        package let held: HeldAttempt
        /// The number of the event.
        package let event: UInt64
        package let request: AdditionRequest
    }

    /// The result of compiling an addition.
    package enum AdditionJudgement: Sendable {
        case fits(CompiledAddition)
        /// All of it was added before.
        case known
        case refused(Refusal)
    }

    /// The base for compiling an addition of a running operation. Also for a graph that takes no
    /// additions from clients.
    package func additionBase(inside id: GraphID) throws(Refusal) -> CompiledAddition.Base {
        guard exists(id) else { throw noGraph(id) }
        return base(of: id)
    }

    /// Whether an attempt is in flight and belongs to the sender. Requests that another worker
    /// makes in its name are ignored.
    package func owns(_ held: HeldAttempt, _ sender: WorkerIdentity) -> Bool {
        guard let worker = workerNumbers[sender.incarnation] else { return false }
        return attemptPlace(of: held, ownedBy: worker) != nil
    }

    /// Begins to judge a request: nothing that the worker sent after it is handled before its
    /// verdict. Only a running operation may ask.
    ///
    /// - Returns: Whether the request is to be judged.
    mutating func beginJudging(
        _ held: HeldAttempt,
        from worker: Int,
        acceptsStale: Bool = false,
        into effects: inout Effects
    ) -> Bool {
        let attempt = attemptPlace(of: held, ownedBy: worker).flatMap { attempts[$0] }
        guard attempt?.hasStarted == true || acceptsStale else {
            effects.notices.append(.eventRefused(held.attempt))
            return false
        }
        workers[worker].isJudging = true
        return true
    }

    /// Ends the judging. Returns whether it had begun.
    mutating func endJudging(of worker: Int) -> Bool {
        // benign: a judgement that the scheduler did not ask for.
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

    /// Adds what fits, keeps the verdict until the worker has it, and goes on with the rest of what
    /// the worker sent.
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
        case .refused(let refusal): content = .refused(NumberedRefusal.worded(refusal).cutShort)
        case .fits(let addition):
            let graph = order.held.operation.graph
            let closed = refusalOfCancelled(graph)
            let refused = closed ?? refusal(of: addition, to: graph)
            if let refusal = refused ?? refusalOfQueues(of: addition, inside: graph) {
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

    /// Sends a verdict and keeps it until the worker has it. If there are more verdicts than a beat
    /// may list requests, the oldest is forgotten: if it was lost, the worker is told to ask again.
    mutating func give(_ verdict: Verdict, to worker: Int, into effects: inout Effects) {
        if workers[worker].verdicts.count >= listedRequestsMax {
            workers[worker].verdicts.removeFirst()
        }
        workers[worker].verdicts.append(verdict)
        tell(verdict, to: worker, into: &effects)
    }

    mutating func tell(_ verdict: Verdict, to worker: Int, into effects: inout Effects) {
        let control = Control(acknowledged: workers[worker].handled)
        send(.plain(.control(control)), verdicts: [verdict], to: worker, into: &effects)
    }

    /// Goes on with what the worker sent after a request that is now judged.
    mutating func handleRest(of worker: Int, at now: Moment, into effects: inout Effects) {
        guard let rest = workers[worker].rest else { return }
        workers[worker].rest = nil
        receive(rest, from: worker, at: now, into: &effects)
    }

    /// Cancelling a graph also closes it to additions of running operations.
    private func refusalOfCancelled(_ id: GraphID) -> NumberedRefusal? {
        let graph = graphs[id]
        return graph.isCancelled ? .worded(.graphClosed(name: graph.compiled.name)) : nil
    }

    /// A running operation may add only to queues that its graph has. A worker may serve few
    /// queues, and an addition that it reports must not run on workers on which the graph does not
    /// run.
    private func refusalOfQueues(
        of addition: CompiledAddition,
        inside id: GraphID
    ) -> NumberedRefusal? {
        let graph = graphs[id]
        let submitted = Set(graph.compiled.queues.map(\.name))
        let others = addition.graph.queues.map(\.name).filter { !submitted.contains($0) }
        guard !others.isEmpty else { return nil }
        // Queues that clients added since. O(policies), and seldom needed.
        let used = Set(graph.rules.map(\.queue))
        let strange = others.first { queueNumbers[$0].map { used.contains($0) } != true }
        guard let name = strange else { return nil }
        let why =
            "“\(graph.compiled.name)” has no queue of this name: a running operation adds only to "
            + "queues of its graph"
        return .worded(.invalid(field: "queue “\(name)”", why: why))
    }

    /// The verdicts on the requests that a beat lists. If a verdict was lost with a previous
    /// coordinator, the worker is told to ask again: the same addition gets the same answer.
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
        guard !beat.open.isEmpty else { return [] }
        var verdicts: [Verdict] = []
        var given: [UInt64: Verdict] = [:]
        for verdict in workers[worker].verdicts { given[verdict.number] = verdict }
        visitCount += given.count
        var bytes = 0
        for request in beat.open.prefix(listedRequestsMax) {
            visitCount += 1
            // The event is on its way, or after a gap.
            guard request.event <= workers[worker].handled else { continue }
            if isWaiting(request) { continue }
            if let known = given[request.number] {
                let size = known.byteCount(configuration.limits)
                // The next beat lists the requests that had no room.
                guard
                    verdicts.isEmpty
                        || bytes + size <= configuration.limits.chunkBytes
                else { continue }
                bytes += size
                verdicts.append(known)
            } else if attemptPlace(of: request.held, ownedBy: worker) != nil {
                verdicts.append(
                    Verdict(number: request.number, event: request.event, content: .again)
                )
            }
        }
        return verdicts
    }

    /// How many requests of one worker a beat may list.
    private var listedRequestsMax: Int {
        configuration.limits.openRequests + configuration.limits.yieldedOperations
    }
}

extension Scheduler.Verdict {
    /// About how many bytes it takes in a message.
    fileprivate func byteCount(_ limits: Limits) -> Int {
        let fixed = 48
        switch content {
        case .added, .again: return fixed
        case .ended(let outcomes): return fixed + outcomes.count
        case .output(let output): return fixed + (output?.bytes.count ?? 0)
        case .refused(let refusal): return fixed + refusal.byteCount(limits)
        }
    }
}

extension String {
    /// Its first characters and an ellipsis, if it has more than `maximum` bytes.
    func cut(toBytes maximum: Int) -> String {
        guard utf8.count > maximum else { return self }
        var bytes = 0
        // Cuts by scalars, because one character may have any number of bytes.
        let kept = unicodeScalars.prefix { scalar in
            bytes += UTF8.width(scalar)
            return bytes <= maximum
        }
        return String(kept) + "…"
    }
}
