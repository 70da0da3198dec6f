import DequeModule
package import OperonModel

/// Holds effects back until what they rest on is kept: the order of effects as a value.
///
/// Driven by the coordinator's shell: what the scheduler asked for goes in as steps; what may be
/// performed comes out. A step leaves once its records are committed. Three things wait longer, for
/// the sync that no power cut undoes: acknowledgements to workers, as a worker forgets what is
/// acknowledged; grants of operations that hold keys; and what clients are told. An
/// acknowledgement in a dispatch is not waited for: the dispatch goes with the last number that is
/// on the disk.
package struct EffectGate: Sendable {
    /// What one call of the scheduler asked for.
    package struct Step: Sendable {
        /// From 1, without gaps.
        package let number: UInt64
        package var effects: Scheduler.Effects
        package var batch: StoreBatch
        /// Workers that were lost: what was acknowledged to them need not be known behind it.
        fileprivate var lost: [Incarnation] = []
    }

    private struct Acknowledgement: Sendable {
        let step: UInt64
        let incarnation: Incarnation
        let number: UInt64
    }

    /// Messages to one worker behind one that waits for the sync.
    private struct Held: Sendable {
        let address: WorkerAddress
        var messages: [(step: UInt64, message: Scheduler.Message)]

        /// Drops what says less than what comes after it. The first of its kind stays, since the
        /// next sync lets it go: were it replaced with every beat, a slow disk would never answer.
        mutating func dropReplaced(by message: Scheduler.Message) {
            guard let new = Replaceable(message) else { return }
            let first = messages.firstIndex { Replaceable($0.message) == new }
            guard let last = messages.lastIndex(where: { Replaceable($0.message) == new }),
                last != first
            else { return }
            messages.remove(at: last)
        }
    }

    /// Records in one transaction, beyond those of a single step: a transaction of ten thousand
    /// takes some tens of milliseconds, for which everybody waits.
    package static let recordsPerTransaction = 10_000

    private var waiting = Deque<Step>()
    private var committing: [Step] = []
    private var lastStep: UInt64 = 0
    /// Every step up to this one is committed.
    package private(set) var committed: UInt64 = 0
    /// Every step up to this one survives a power cut.
    package private(set) var synced: UInt64 = 0
    private var acknowledgements = Deque<Acknowledgement>()
    /// The last acknowledgement that is on the disk, by worker. Only looked up.
    private var durable: [Incarnation: UInt64] = [:]
    private var held: [Held] = []
    /// What attempts left whose step is not committed: no store can be asked for it. Only looked
    /// up.
    private var outputs: [OperationID: (step: UInt64, output: Payload)] = [:]
    /// Numbers of waiting steps that have a message to a worker, the first first; some of them may
    /// have left. Only looked up.
    private var addressed: [Incarnation: Deque<UInt64>] = [:]

    package init() {}

    /// The number of the last step that was taken.
    package var last: UInt64 { lastStep }
    /// Whether something waits to be committed.
    package var hasWaiting: Bool { !waiting.isEmpty }
    /// Whether something is committed that no sync has covered.
    package var wantsSync: Bool { synced < committed }
    /// Whether somebody waits for the sync already, so that it should not be put off.
    package var isSyncUrgent: Bool { !held.isEmpty }

    // MARK: - In

    /// Takes what one call asked for. Returns what may be performed at once: all of it if there is
    /// nothing to be kept and nothing before it, else what rests on no record; `nil`: nothing.
    package mutating func append(
        _ effects: Scheduler.Effects,
        _ batch: StoreBatch
    ) -> Scheduler.Effects? {
        var lost: [Incarnation] = []
        for case .workerLost(let worker) in effects.notices { lost.append(worker.incarnation) }
        guard batch.isEmpty, synced == lastStep else {
            var effects = effects
            let free = effects.takeFree()
            wait(with: effects, batch, lost)
            return free
        }
        lastStep += 1
        committed = lastStep
        synced = lastStep
        for message in effects.messages { keepAcknowledgement(of: message, step: lastStep) }
        for worker in lost { forgetAcknowledgements(to: worker) }
        settleAcknowledgements()
        return effects
    }

    /// What has no records joins the step before it. So what waits for a store that takes nothing
    /// is bounded by what workers may report without an acknowledgement, however long that lasts.
    private mutating func wait(
        with effects: Scheduler.Effects,
        _ batch: StoreBatch,
        _ lost: [Incarnation]
    ) {
        for message in effects.messages { dropReplaced(by: message) }
        if batch.isEmpty, !waiting.isEmpty {
            waiting[waiting.endIndex - 1].effects.append(effects)
            waiting[waiting.endIndex - 1].lost += lost
        } else if batch.isEmpty, effects.isNothing, lost.isEmpty {
            return
        } else {
            lastStep += 1
            for result in batch.results { outputs[result.operation] = (lastStep, result.output) }
            waiting.append(
                Step(number: lastStep, effects: effects, batch: batch, lost: lost)
            )
        }
        let number = waiting[waiting.endIndex - 1].number
        for message in effects.messages {
            guard case .worker(let address) = message.destination,
                addressed[address.incarnation]?.last != number
            else { continue }
            addressed[address.incarnation, default: []].append(number)
        }
    }

    /// Drops what waits and says less than what comes after it: the answer to an older beat, and
    /// whatever was meant for a worker before it was welcomed. To the worker that is a message that
    /// was lost on its way.
    private mutating func dropReplaced(by message: Scheduler.Message) {
        guard case .worker(let address) = message.destination,
            let new = Replaceable(message), let first = waiting.first?.number,
            var places = addressed[address.incarnation]
        else { return }
        while let place = places.first, place < first { places.removeFirst() }
        addressed[address.incarnation] = places
        for place in places {
            // Their numbers have no gaps.
            waiting[waiting.startIndex + Int(place - first)].effects.messages.removeAll { old in
                guard case .worker(let other) = old.destination,
                    other.incarnation == address.incarnation
                else { return false }
                return new == .welcome || Replaceable(old) == new
            }
        }
        if new == .welcome { addressed[address.incarnation] = nil }
    }

    /// What a later message of the same kind to the same worker says again.
    private enum Replaceable: Equatable {
        case welcome
        case answer
        case resync
        case refusal

        init?(_ message: Scheduler.Message) {
            guard case .plain(let plain) = message.body else { return nil }
            switch plain {
            case .welcome: self = .welcome
            case .control(let control):
                // Others bring verdicts that no beat repeats.
                guard control.answers != nil else { return nil }
                self = .answer
            case .resync: self = .resync
            case .refused: self = .refusal
            case .dispatch, .chunks: return nil
            }
        }
    }

    // MARK: - Outputs

    /// What an operation left whose result is not committed yet; `nil`: none is waiting.
    package func waitingOutput(of operation: OperationID) -> Payload? {
        outputs[operation]?.output
    }

    /// Operations of which an attempt has ended that is not committed.
    package var waitingResultCount: Int { outputs.count }

    private mutating func forgetOutputs(of step: Step) {
        for result in step.batch.results where outputs[result.operation]?.step == step.number {
            outputs[result.operation] = nil
        }
    }

    /// What is to be committed next, in one transaction; `nil`: nothing, or a transaction is not
    /// over yet.
    package mutating func nextBatch() -> StoreBatch? {
        guard committing.isEmpty, let first = waiting.popFirst() else { return nil }
        var batch = first.batch
        committing = [first]
        defer { if waiting.isEmpty { addressed.removeAll(keepingCapacity: true) } }
        while let next = waiting.first,
            batch.records.count + next.batch.records.count <= Self.recordsPerTransaction
        {
            waiting.removeFirst()
            batch.append(next.batch)
            committing.append(next)
        }
        return batch
    }

    // MARK: - Out

    /// The transaction is over: what of it may be performed before the sync, in its order.
    package mutating func didCommit() -> [Scheduler.Effects] {
        let steps = committing
        committing = []
        guard let last = steps.last else { return [] }
        committed = last.number
        for step in steps { forgetOutputs(of: step) }
        return steps.map { step in
            var effects = step.effects
            effects.messages = []
            for message in step.effects.messages {
                keepAcknowledgement(of: message, step: step.number)
                if let free = pass(message, step: step.number) { effects.messages.append(free) }
            }
            for worker in step.lost { forgetAcknowledgements(to: worker) }
            return effects
        }
    }

    /// A sync that began when this step was committed is over: what was held back for it.
    package mutating func didSync(upTo step: UInt64) -> [Scheduler.Message] {
        synced = max(synced, min(step, committed))
        settleAcknowledgements()
        var free: [Scheduler.Message] = []
        for place in held.indices {
            let messages = held[place].messages
            held[place].messages = []
            for (step, message) in messages {
                // Behind one that is held again everything is.
                if !held[place].messages.isEmpty || mustWait(message, step: step) {
                    held[place].messages.append((step, message))
                } else {
                    free.append(lowered(message))
                }
            }
        }
        held.removeAll { $0.messages.isEmpty }
        return free
    }

    // MARK: - Acknowledgements

    private mutating func pass(
        _ message: Scheduler.Message,
        step: UInt64
    ) -> Scheduler.Message? {
        guard case .worker(let address) = message.destination else { return message }
        if let place = held.firstIndex(where: { $0.address == address }) {
            held[place].dropReplaced(by: message)
            held[place].messages.append((step, message))
            return nil
        }
        guard mustWait(message, step: step) else { return lowered(message) }
        held.append(Held(address: address, messages: [(step, message)]))
        return nil
    }

    private func mustWait(_ message: Scheduler.Message, step: UInt64) -> Bool {
        guard step > synced else { return false }
        switch message.body {
        case .dispatch(_, let grants):
            // The holder of a key may act on what nobody else may touch: its grant must last.
            return grants.contains { $0.exclusiveLease != nil }
        case .plain(let plain):
            guard let number = plain.acknowledged,
                case .worker(let address) = message.destination
            else { return false }
            return number > durable[address.incarnation] ?? 0
        }
    }

    private func lowered(_ message: Scheduler.Message) -> Scheduler.Message {
        guard case .worker(let address) = message.destination,
            case .dispatch(let number, let grants) = message.body
        else { return message }
        let onDisk = durable[address.incarnation] ?? 0
        guard number > onDisk else { return message }
        var message = message
        message.body = .dispatch(acknowledged: onDisk, grants)
        return message
    }

    private mutating func keepAcknowledgement(of message: Scheduler.Message, step: UInt64) {
        guard case .worker(let address) = message.destination else { return }
        let number: UInt64
        switch message.body {
        case .dispatch(let acknowledged, _): number = acknowledged
        case .plain(let plain):
            guard let acknowledged = plain.acknowledged else { return }
            number = acknowledged
        }
        // A worker that followed another reign for a while counts anew: a welcome says from where.
        if case .plain(.welcome) = message.body {
            forgetAcknowledgements(to: address.incarnation)
        }
        acknowledgements.append(
            Acknowledgement(step: step, incarnation: address.incarnation, number: number)
        )
    }

    /// Workers whose acknowledgements are remembered.
    package var workerCount: Int { durable.count }

    /// Whatever it is sent next waits for the sync, if it acknowledges anything.
    private mutating func forgetAcknowledgements(to worker: Incarnation) {
        durable[worker] = nil
        acknowledgements.removeAll { $0.incarnation == worker }
    }

    private mutating func settleAcknowledgements() {
        while let first = acknowledgements.first, first.step <= synced {
            acknowledgements.removeFirst()
            durable[first.incarnation] = max(durable[first.incarnation] ?? 0, first.number)
        }
    }
}

extension CoordinatorMessage {
    /// The number of the last event that it says is handled; `nil`: it says none.
    fileprivate var acknowledged: UInt64? {
        switch self {
        case .welcome(let welcome): welcome.acknowledged
        case .control(let control): control.acknowledged
        case .dispatch(let dispatch): dispatch.acknowledged
        case .resync, .refused, .chunks: nil
        }
    }
}
