package import OperonModel

// Requests of running operations: to add operations, to wait for others, to read an output.
extension Scheduler {
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

    /// Whether a request comes from the owner of an attempt that has started.
    func mayAsk(_ event: WorkerEvent, from worker: Int) -> Bool {
        if case .added = event, configuration.violation == .acceptsStaleAdditions { return true }
        let place =
            configuration.violation == .addsForStrangers
            ? attemptPlace(of: event.held) : attemptPlace(of: event.held, ownedBy: worker)
        return place.flatMap { attempts[$0] }?.hasStarted == true
    }

    /// Answers a request that `mayAsk` accepts.
    mutating func answer(
        _ event: WorkerEvent,
        _ number: UInt64,
        from worker: Int,
        at now: Moment,
        resolving resolver: inout some RequestResolver,
        into effects: inout Effects
    ) {
        let held = event.held
        switch event {
        case .added(_, let request):
            let content = add(request, of: held, at: now, resolving: &resolver, into: &effects)
            let verdict = Verdict(number: request.number, event: number, content: content)
            give(verdict, to: worker, into: &effects)
        case .yielded(_, let request):
            let content = wait(
                request,
                of: held,
                event: number,
                from: worker,
                resolving: &resolver,
                into: &effects
            )
            guard let content else { return }
            let verdict = Verdict(number: request.number, event: number, content: content)
            give(verdict, to: worker, into: &effects)
        case .read(_, let request):
            let content = read(request, of: held, resolving: &resolver, effects.notices)
            // Unlike other verdicts this one is not kept, because an output is large: if it is
            // lost, the worker is told to ask again.
            let verdict = Verdict(number: request.number, event: number, content: content)
            send(verdict, to: worker, into: &effects)
        case .started, .finished, .returned:
            preconditionFailure("`receive` handles what is no request")
        }
    }

    private mutating func add(
        _ request: AdditionRequest,
        of held: HeldAttempt,
        at now: Moment,
        resolving resolver: inout some RequestResolver,
        into effects: inout Effects
    ) -> Verdict.Content {
        let graph = held.operation.graph
        let addition: CompiledAddition
        do throws(Refusal) {
            let base = try additionBase(inside: graph)
            let new = try resolver.compile(request, of: held, to: base, effects.notices)
            guard let new else { return .added(0) }
            addition = new
        } catch {
            return .refused(NumberedRefusal.worded(error).cutShort)
        }
        let refused = refusalOfCancelled(graph) ?? refusal(of: addition, to: graph)
        let refusedQueue = refused ?? refusalOfQueues(of: addition, inside: graph)
        if let refusal = refusedQueue ?? refusalToJoin(addition, of: graph) {
            return .refused(refusal.cutShort)
        }
        resolver.added(addition, by: held)
        return .added(UInt32(grow(graph, by: addition, of: held, at: now, into: &effects)))
    }

    private func read(
        _ request: ReadRequest,
        of held: HeldAttempt,
        resolving resolver: inout some RequestResolver,
        _ notices: [Notice]
    ) -> Verdict.Content {
        let found: FoundOutput
        do throws(Refusal) {
            found = try resolver.output(request, of: held, notices)
            guard isKnown(found.operation) else {
                throw .unknownOperation(name: request.name, namedBy: "\(held.operation)")
            }
        } catch {
            return .refused(NumberedRefusal.worded(error).cutShort)
        }
        switch outcomeKind(of: found.operation) {
        case .succeeded:
            guard case .loaded(let output) = found.content else { return .again }
            return .output(output)
        case .failed, .cancelled, .skipped: return .output(nil)
        case nil:
            let why = "“\(request.name)” has not ended: wait for it first"
            return .refused(.worded(.invalid(field: "output", why: why)))
        }
    }

    /// Sends a verdict and keeps it until the worker has it. If there are more verdicts than a beat
    /// may list requests, the oldest is forgotten: if it was lost, the worker is told to ask again.
    mutating func give(_ verdict: Verdict, to worker: Int, into effects: inout Effects) {
        if workers[worker].verdicts.count >= listedRequestsMax {
            workers[worker].verdicts.removeFirst()
        }
        workers[worker].verdicts.append(verdict)
        send(verdict, to: worker, into: &effects)
    }

    private mutating func send(_ verdict: Verdict, to worker: Int, into effects: inout Effects) {
        let control = Control(acknowledged: workers[worker].handled)
        send(.plain(.control(control)), verdicts: [verdict], to: worker, into: &effects)
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
