import OperonCore
package import OperonModel
package import OperonPorts

/// Random batches as a coordinator might make them, with every kind of record, and what a store
/// must then have: the same seed gives the same batches.
package struct StoreWorkload: Sendable {
    private enum Phase: Hashable, Sendable {
        case waiting
        case open(AttemptID)
        case finished
    }

    private struct Member: Sendable {
        let id: OperationID
        var phase = Phase.waiting
        var ordinal: UInt32 = 0
        var lost: AttemptID?
    }

    /// What a store has that was given all batches so far.
    package private(set) var image: StoreImage
    private var generator: SeededGenerator
    private var members: [Member] = []
    private var isOpen: [Bool] = []
    private var counts: [UInt32] = []
    private var attempts: UInt64 = 0
    private var triggers: TriggerWorkload
    private var time: Int64 = 1_700_000_000_000_000_000
    private let isOldFormat: Bool

    /// - Parameter isOldFormat: Whether it has nothing that older formats do not have: operations
    ///   that finish in ranges, and logs of which a part is missing.
    package init(
        seed: UInt64,
        reign: Reign,
        limits: Limits = Limits(),
        isOldFormat: Bool = false
    ) {
        self.isOldFormat = isOldFormat
        generator = SeededGenerator(seed: seed)
        triggers = TriggerWorkload(seed: seed)
        image = StoreImage(reign: reign, limits: limits)
    }

    /// A coordinator opens the store.
    package mutating func open() { image.raiseEpoch() }

    /// The next batch; the image has it already.
    package mutating func next() -> StoreBatch {
        time += Int64(generator.next() % 5_000_000_000)
        var batch = StoreBatch(wall: WallTime(nanosecondsSince1970: time))
        let wanted = 1 + Int(generator.next() % 12)
        for _ in 0..<wanted { act(into: &batch) }
        batch.records += triggers.next(at: batch.wall)
        for _ in 0..<(generator.next() % 4) {
            let sequence = image.lastEvent + UInt64(batch.events.count) + 1
            batch.events.append(StoredEvent(sequence: sequence, body: bytes(upTo: 60)))
        }
        do {
            try image.apply(batch)
        } catch {
            preconditionFailure("the workload makes sound batches: \(error)")
        }
        return batch
    }

    /// Drops finished graphs from the image; the number of them.
    package mutating func prune(finishedBefore before: WallTime?, keeping count: Int?) -> Int {
        let dropped = image.prunable(
            beyond: StoreRetention.Bounds(finishedBefore: before, graphs: count)
        )
        image.drop(dropped)
        let kept = Set(image.state.graphs.filter { !$0.isTombstone }.map(\.id))
        members.removeAll { !kept.contains($0.id.graph) }
        return dropped.count
    }

    /// All operations that the workload knows, in their order.
    package var operations: [OperationID] { members.map(\.id).sorted() }

    package var now: WallTime { WallTime(nanosecondsSince1970: time) }

    // MARK: - Actions

    private mutating func act(into batch: inout StoreBatch) {
        switch generator.next() % 100 {
        case 0..<8: addGraph(to: &batch)
        case 8..<11: addOperations(to: &batch)
        case 11..<14: closeGraph(in: &batch)
        case 14..<36: grant(in: &batch)
        case 36..<44: start(in: &batch)
        case 44..<62: finish(in: &batch)
        case 62..<65: settleWaiting(in: &batch)
        case 65..<67: settleRange(in: &batch)
        case 67..<77: endWithoutResult(in: &batch)
        case 77..<80: resume(in: &batch)
        case 80..<84: reopen(in: &batch)
        case 84..<88: cancel(in: &batch)
        case 88..<92: suspend(in: &batch)
        case 92..<95: setQueue(in: &batch)
        case 95: setPriority(in: &batch)
        case 96: setTimes(in: &batch)
        case _: changeDependencies(in: &batch)
        }
    }

    private mutating func addGraph(to batch: inout StoreBatch) {
        let id = GraphID(rawValue: UInt32(counts.count))
        let count = generator.next() % 12
        batch.records.append(.graphAdded(id))
        let isOpen = generator.next() % 3 == 0
        var contents = StoredContents(
            graph: id,
            name: text(),
            submitter: text(),
            isOpen: isOpen,
            idempotencyKey: text(),
            traceParent: text(),
            operationCount: Int(count),
            body: bytes(upTo: 3_000)
        )
        if id.rawValue > 0, generator.next() % 4 == 0 {
            contents.needs = [GraphID(rawValue: UInt32(generator.next() % UInt64(id.rawValue)))]
        }
        batch.graphs.append(contents)
        self.isOpen.append(isOpen)
        counts.append(0)
        join(id, count)
    }

    private mutating func addOperations(to batch: inout StoreBatch) {
        guard let graph = anyOpenGraph() else { return }
        let first = counts[Int(graph.rawValue)]
        let count = generator.next() % 5
        batch.records.append(.operationsAdded(graph, first: first))
        batch.graphs.append(
            StoredContents(
                graph: graph,
                name: text(),
                first: first,
                operationCount: Int(count),
                body: bytes(upTo: 500)
            )
        )
        join(graph, count)
    }

    private mutating func join(_ graph: GraphID, _ count: UInt64) {
        for _ in 0..<count {
            let index = counts[Int(graph.rawValue)]
            members.append(Member(id: OperationID(graph: graph, index: index)))
            counts[Int(graph.rawValue)] += 1
        }
    }

    private mutating func anyOpenGraph() -> GraphID? {
        let open = isOpen.indices.filter { isOpen[$0] }
        guard !open.isEmpty else { return nil }
        return GraphID(rawValue: UInt32(open[Int(generator.next() % UInt64(open.count))]))
    }

    private mutating func closeGraph(in batch: inout StoreBatch) {
        guard let graph = anyOpenGraph() else { return }
        isOpen[Int(graph.rawValue)] = false
        batch.records.append(.graphClosed(graph))
    }

    private mutating func grant(in batch: inout StoreBatch) {
        guard let place = any({ $0.phase == .waiting }) else { return }
        attempts += 1
        let attempt = AttemptID(epoch: image.epoch, number: attempts)
        members[place].ordinal += 1
        members[place].phase = .open(attempt)
        // Some are for somebody outside.
        let worker = attempts % 5 == 0 ? .nobody : Incarnation(rawValue: generator.next())
        if attempts % 3 > 0, worker != .nobody {
            batch.workers.append(StoredWorker(worker, name: text()))
        }
        batch.records.append(
            .granted(attempt, members[place].id, ordinal: members[place].ordinal, to: worker)
        )
    }

    private mutating func start(in batch: inout StoreBatch) {
        guard let (place, attempt) = anyOpen() else { return }
        members[place].lost = nil
        batch.records.append(.started(attempt, members[place].id))
    }

    private mutating func finish(in batch: inout StoreBatch) {
        guard let (place, attempt) = anyOpen() else { return }
        let outcome: Outcome =
            switch generator.next() % 4 {
            case 0: .failed(error())
            case 1: .cancelled(reason: text())
            case _: .succeeded
            }
        settle(place, outcome, in: &batch)
        leaveResult(of: attempt, members[place].id, in: &batch)
    }

    private mutating func settleWaiting(in batch: inout StoreBatch) {
        guard let place = any({ $0.phase == .waiting }) else { return }
        let cause = members[Int(generator.next() % UInt64(members.count))].id
        let isSkipped = generator.next() % 2 == 0
        settle(place, isSkipped ? .skipped(cause: cause) : .cancelled(reason: text()), in: &batch)
    }

    /// Operations of one graph that wait, from one of them on.
    private mutating func settleRange(in batch: inout StoreBatch) {
        guard !isOldFormat else { return settleWaiting(in: &batch) }
        guard let place = any({ $0.phase == .waiting }) else { return }
        let first = members[place].id
        var index = first.index
        while let next = waiting(OperationID(graph: first.graph, index: index)) {
            members[next].phase = .finished
            members[next].lost = nil
            index += 1
        }
        let range = OperationRange(graph: first.graph, indices: first.index..<index)
        batch.records.append(.rangeFinished(range, .cancelled(reason: text())))
    }

    /// The place of an operation that waits.
    private func waiting(_ id: OperationID) -> Int? {
        members.firstIndex { $0.id == id && $0.phase == .waiting }
    }

    private mutating func settle(_ place: Int, _ outcome: Outcome, in batch: inout StoreBatch) {
        members[place].phase = .finished
        members[place].lost = nil
        batch.records.append(.finished(members[place].id, outcome))
    }

    /// A log that was kept whole, or one of which a part is missing.
    private mutating func log() -> KeptLog {
        let tail = bytes(upTo: 300)
        guard !isOldFormat, generator.next() % 3 == 0 else { return KeptLog(tail: tail) }
        return KeptLog(head: bytes(upTo: 30), missing: generator.next(), tail: tail)
    }

    private mutating func leaveResult(
        of attempt: AttemptID,
        _ operation: OperationID,
        in batch: inout StoreBatch
    ) {
        guard generator.next() % 4 > 0 else { return }
        let output = Payload(contentType: text(), bytes: bytes(upTo: 200))
        let start = WallTime(nanosecondsSince1970: time - 1_000)
        var result = StoredResult(
            operation: operation,
            attempt: attempt,
            output: output,
            log: log(),
            startedAt: generator.next() % 2 == 0 ? start : nil,
            endedAt: WallTime(nanosecondsSince1970: time + 1)
        )
        result.isUpToDate = generator.next() % 2 == 0
        batch.results.append(result)
    }

    private mutating func endWithoutResult(in batch: inout StoreBatch) {
        guard let (place, attempt) = anyOpen() else { return }
        let id = members[place].id
        members[place].phase = .waiting
        switch generator.next() % 4 {
        case 0:
            members[place].lost = attempt
            batch.records.append(.attemptEnded(attempt, id, .lost))
        case 1: batch.records.append(.attemptEnded(attempt, id, .crashed))
        case 2: batch.records.append(.attemptEnded(attempt, id, .returned))
        case _:
            batch.records.append(.attemptEnded(attempt, id, .failed(error())))
            let at = WallTime(nanosecondsSince1970: time + 1_000_000_000)
            batch.records.append(.retryScheduled(id, at: at))
            leaveResult(of: attempt, id, in: &batch)
        }
    }

    private mutating func resume(in batch: inout StoreBatch) {
        guard let place = any({ $0.phase == .waiting && $0.lost != nil }),
            let attempt = members[place].lost
        else { return }
        members[place].phase = .open(attempt)
        members[place].lost = nil
        batch.records.append(.resumed(attempt, members[place].id))
    }

    private mutating func reopen(in batch: inout StoreBatch) {
        guard let place = any({ $0.phase == .finished }) else { return }
        members[place].phase = .waiting
        batch.records.append(.reopened(members[place].id))
    }

    private mutating func cancel(in batch: inout StoreBatch) {
        guard let target = anyTarget() else { return }
        batch.records.append(.cancelled(target, reason: text(), cascade: false, by: text()))
    }

    private mutating func suspend(in batch: inout StoreBatch) {
        guard let target = anyTarget() else { return }
        let until = WallTime(nanosecondsSince1970: -time)
        let suspension = Suspension(
            by: text(),
            reason: text(),
            until: generator.next() % 2 == 0 ? until : nil
        )
        batch.records.append(.suspended(target, generator.next() % 3 == 0 ? nil : suspension))
    }

    private mutating func setQueue(in batch: inout StoreBatch) {
        if generator.next() % 4 == 0 {
            var settings = QueueSettings(name: queue())
            settings.priority = priority()
            settings.isSuspended = generator.next() % 2 == 0
            batch.records.append(.queueDefined(settings))
        } else if generator.next() % 4 == 0 {
            var settings = KeySettings(name: queue(), limit: 1 + Int(generator.next() % 100))
            // As the scheduler writes the record; the rate itself is set by another one.
            if settings.limit.isMultiple(of: 3) { settings.rate = StartRate(2) }
            batch.records.append(.keyLimit(settings, byCommand: generator.next() % 2 == 0))
            let scope = generator.next() % 2 == 0 ? RateScope.key("key") : .queue(queue())
            let rate = StartRate(1 + Int(generator.next() % 9), per: .seconds(7))
            batch.records.append(
                .rateSet(
                    scope,
                    generator.next() % 4 == 0 ? nil : rate,
                    byCommand: generator.next() % 2 == 0
                )
            )
            let fullAt = WallTime(nanosecondsSince1970: Int64(generator.next() % 1_000_000))
            batch.records.append(.rateUsed(scope, fullAt: fullAt))
        } else if generator.next() % 4 == 0 {
            let isKey = generator.next() % 2 == 0
            batch.records.append(isKey ? .keyReset(queue()) : .queueReset(queue()))
        } else if generator.next() % 2 == 0 {
            let maximum = generator.next() % 3 == 0 ? nil : Int(generator.next() % 100)
            batch.records.append(.queueLimit(queue: queue(), maximum: maximum))
        } else {
            batch.records.append(.queuePriority(queue: queue(), priority()))
        }
    }

    private mutating func setPriority(in batch: inout StoreBatch) {
        guard let place = any({ _ in true }) else { return }
        batch.records.append(.priority(members[place].id, priority()))
    }

    private mutating func setTimes(in batch: inout StoreBatch) {
        guard let place = any({ $0.phase == .waiting }) else { return }
        let id = members[place].id
        if generator.next() % 2 == 0 {
            batch.records.append(.deadlinePassed(id))
        } else {
            let until = WallTime(nanosecondsSince1970: time + 1_000)
            batch.records.append(.delayed(id, until: generator.next() % 2 == 0 ? nil : until))
        }
    }

    private mutating func changeDependencies(in batch: inout StoreBatch) {
        guard let one = any({ _ in true }), let other = any({ _ in true }) else { return }
        let condition = DependencyCondition.allCases[Int(generator.next() % 4)]
        batch.records.append(
            generator.next() % 2 == 0
                ? .dependencyAdded(members[one].id, on: members[other].id, condition)
                : .dependencyRemoved(members[one].id, on: members[other].id)
        )
    }

    // MARK: - Draws

    private mutating func any(_ isWanted: (Member) -> Bool) -> Int? {
        let places = members.indices.filter { isWanted(members[$0]) }
        guard !places.isEmpty else { return nil }
        return places[Int(generator.next() % UInt64(places.count))]
    }

    private mutating func anyOpen() -> (place: Int, attempt: AttemptID)? {
        let isOpen: (Member) -> Bool = { member in
            if case .open = member.phase { true } else { false }
        }
        guard let place = any(isOpen), case .open(let attempt) = members[place].phase
        else { return nil }
        return (place, attempt)
    }

    private mutating func anyTarget() -> Target? {
        guard let place = any({ _ in true }) else { return nil }
        return switch generator.next() % 3 {
        case 0: .operation(members[place].id)
        case 1: .graph(members[place].id.graph)
        case _: .queue(queue())
        }
    }

    private mutating func queue() -> String { ["default", "größer", "q", ""][draw(4)] }

    private mutating func priority() -> QueuePriority { QueuePriority.allCases[draw(5)] }

    /// Texts that a table or a field of one might choke on.
    private mutating func text() -> String {
        ["", "wordcount", "a|b\\c", "zero\u{0}inside", "Grüße, 世界", "'; DROP TABLE x"][draw(6)]
    }

    private mutating func error() -> OperationError {
        let bytes = bytes(upTo: 20)
        let errors: [OperationError] = [
            .kindUnknown(text()), .thrown(type: text(), message: text(), payload: bytes),
            .exit(code: -1), .signal(name: text()), .timeout, .deadline, .workerLost,
            .inputTooLarge(bytes: 7, limit: 3), .outputTooLarge(bytes: .max, limit: 0),
            .undecodable(text()), .versionUnsupported(text()), .conditionFailed(name: text()),
        ]
        return errors[draw(errors.count)]
    }

    private mutating func bytes(upTo most: Int) -> [UInt8] {
        let count = draw(most + 1)
        return (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }

    private mutating func draw(_ count: Int) -> Int { Int(generator.next() % UInt64(count)) }
}
