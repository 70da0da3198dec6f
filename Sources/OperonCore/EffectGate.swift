import DequeModule
package import OperonModel

/// Holds effects back until the records they depend on are stored: the order of effects as a value.
///
/// The coordinator's shell drives it: the scheduler's effects go in as steps, and the effects that
/// may be performed come out. A step leaves once its records are committed. Five kinds of effects
/// wait longer, for the sync after which no power cut undoes the records: acknowledgements to
/// workers, because a worker forgets what is acknowledged; grants of operations that hold keys;
/// orders that cancel what runs; what running operations are told of the ends of others; and
/// answers to clients. A dispatch does not wait for the acknowledgement in it: it leaves with the
/// last number that is on the disk.
package struct EffectGate: Sendable {
    /// The effects of one call of the scheduler.
    package struct Step: Sendable {
        /// From 1, without gaps.
        package let number: UInt64
        package var effects: Scheduler.Effects
        package var batch: StoreBatch
        /// Workers that were lost: acknowledgements to them can be forgotten after this step.
        fileprivate var lost: [Incarnation] = []
    }

    private struct Acknowledgement: Sendable {
        let step: UInt64
        let incarnation: Incarnation
        let number: UInt64
    }

    /// Messages to one worker, from the first one that waits for the sync.
    private struct Held: Sendable {
        let address: WorkerAddress
        var messages: [(step: UInt64, message: Scheduler.Message)]

        /// Drops messages that the new message makes redundant. The first message of its kind
        /// stays, since the next sync releases it. If every beat replaced it, a slow disk would
        /// never answer.
        mutating func dropReplaced(by message: Scheduler.Message) {
            guard let new = Replaceable(message) else { return }
            let first = messages.firstIndex { Replaceable($0.message) == new }
            guard let last = messages.lastIndex(where: { Replaceable($0.message) == new }),
                last != first
            else { return }
            messages.remove(at: last)
        }
    }

    /// The most records in one transaction, unless a single step has more: a transaction of ten
    /// thousand takes some tens of milliseconds, and everything waits for it.
    package static let recordsPerTransaction = 10_000

    private var waiting = Deque<Step>()
    private var committing: [Step] = []
    private var lastStep: UInt64 = 0
    /// Every step up to this one is committed.
    package private(set) var committed: UInt64 = 0
    /// Every step up to this one survives a power cut.
    package private(set) var synced: UInt64 = 0
    private var acknowledgements = Deque<Acknowledgement>()
    /// The last acknowledgement that is on the disk, by worker. Never iterated.
    private var durable: [Incarnation: UInt64] = [:]
    private var held: [Held] = []
    /// Outputs of attempts whose step is not committed, so that no store can be asked for them.
    /// Never iterated.
    private var outputs: [OperationID: (step: UInt64, output: Payload)] = [:]
    /// By worker, the numbers of waiting steps that have a message to it, in ascending order. Some
    /// of these steps may have left. Never iterated.
    private var addressed: [Incarnation: Deque<UInt64>] = [:]

    package init() {}

    /// The number of the last step that was appended.
    package var last: UInt64 { lastStep }
    /// Whether a step waits to be committed.
    package var hasWaiting: Bool { !waiting.isEmpty }
    /// Whether a committed step is not synced yet.
    package var wantsSync: Bool { synced < committed }
    /// Whether messages wait for the sync already, so that it should not be delayed.
    package var isSyncUrgent: Bool { !held.isEmpty }

    // MARK: - In

    /// Takes the effects of one call. Returns the effects that may be performed at once: all of
    /// them if there is nothing to store and nothing waits before them, otherwise those that depend
    /// on no record; `nil`: there are none.
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

    /// Effects without records join the step before them. So while a store accepts nothing, the
    /// number of waiting steps is limited by what workers may report without an acknowledgement,
    /// however long that lasts.
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
            waiting.append(Step(number: lastStep, effects: effects, batch: batch, lost: lost))
        }
        let number = waiting[waiting.endIndex - 1].number
        for message in effects.messages {
            guard case .worker(let address) = message.destination,
                addressed[address.incarnation]?.last != number
            else { continue }
            addressed[address.incarnation, default: []].append(number)
        }
    }

    /// Drops waiting messages that a later message makes redundant: the answer to an older beat,
    /// and everything that was sent to a worker before its welcome. To the worker, such a message
    /// looks like one that was lost.
    private mutating func dropReplaced(by message: Scheduler.Message) {
        guard case .worker(let address) = message.destination,
            let new = Replaceable(message), let first = waiting.first?.number,
            var places = addressed[address.incarnation]
        else { return }
        while let place = places.first, place < first { places.removeFirst() }
        addressed[address.incarnation] = places
        for place in places {
            // Step numbers have no gaps.
            waiting[waiting.startIndex + Int(place - first)].effects.messages.removeAll { old in
                guard case .worker(let other) = old.destination,
                    other.incarnation == address.incarnation
                else { return false }
                return new == .welcome || Replaceable(old) == new
            }
        }
        if new == .welcome { addressed[address.incarnation] = nil }
    }

    /// Kinds of messages that a later message of the same kind to the same worker replaces.
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
                // Other messages bring verdicts that no beat repeats.
                guard control.answers != nil else { return nil }
                self = .answer
            case .resync: self = .resync
            case .refused: self = .refusal
            case .dispatch, .chunks, .watch: return nil
            }
        }
    }

    // MARK: - Outputs

    /// The output of an operation whose result is not committed yet; `nil`: no such result waits.
    package func waitingOutput(of operation: OperationID) -> Payload? {
        outputs[operation]?.output
    }

    /// The number of operations with an ended attempt that is not committed.
    package var waitingResultCount: Int { outputs.count }

    private mutating func forgetOutputs(of step: Step) {
        for result in step.batch.results where outputs[result.operation]?.step == step.number {
            outputs[result.operation] = nil
        }
    }

    /// The records that are to be committed next, in one transaction; `nil`: there are none, or a
    /// transaction is still under way.
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

    /// The transaction has ended: returns the effects that may be performed before the sync, in
    /// order.
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

    /// A sync that began after this step was committed has ended: returns the messages that it held
    /// back.
    package mutating func didSync(upTo step: UInt64) -> [Scheduler.Message] {
        synced = max(synced, min(step, committed))
        settleAcknowledgements()
        var free: [Scheduler.Message] = []
        for place in held.indices {
            let messages = held[place].messages
            held[place].messages = []
            for (step, message) in messages {
                // Everything after a message that is still held is held as well.
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
            // The holder of a key may act on something that nothing else may touch: its grant must
            // survive.
            return grants.contains { $0.exclusiveLease != nil }
        case .plain(let plain):
            if plain.cancelsWhatRuns || message.verdicts.contains(where: \.tellsOutcome) {
                return true
            }
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
        // A worker that followed another reign for a while counts events anew, from the number in
        // its welcome.
        if case .plain(.welcome) = message.body { forgetAcknowledgements(to: address.incarnation) }
        acknowledgements.append(
            Acknowledgement(step: step, incarnation: address.incarnation, number: number)
        )
    }

    /// The number of workers whose acknowledgements are remembered.
    package var workerCount: Int { durable.count }

    /// From now on every acknowledgement to this worker waits for the sync.
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

extension VerdictOf {
    /// Whether a running operation learns from it how another one has ended. It may act on that.
    fileprivate var tellsOutcome: Bool {
        switch content {
        case .ended, .output: true
        case .added, .refused, .again: false
        }
    }
}

extension CoordinatorMessage {
    /// Whether it cancels a running attempt. If a power cut undid the cancel, its operation would
    /// end as cancelled, and nobody would have cancelled it. What is stopped reports no end, so it
    /// may run again.
    fileprivate var cancelsWhatRuns: Bool {
        let orders: [Order] =
            switch self {
            case .welcome(let welcome): welcome.orders
            case .control(let control): control.orders
            case .dispatch, .resync, .refused, .chunks, .watch: []
            }
        return orders.contains { if case .cancel = $0 { true } else { false } }
    }

    /// The number of the last event that the message acknowledges; `nil`: it acknowledges none.
    fileprivate var acknowledged: UInt64? {
        switch self {
        case .welcome(let welcome): welcome.acknowledged
        case .control(let control): control.acknowledged
        case .dispatch(let dispatch): dispatch.acknowledged
        case .resync, .refused, .chunks, .watch: nil
        }
    }
}
