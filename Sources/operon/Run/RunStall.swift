import OperonCore
import OperonModel
import OperonRuntime
import OperonTerminal

/// Explains to a person why a run without progress waits. Each reason is printed once.
///
/// The tick of the screen drives it. It asks about a few operations, and only while nothing runs or
/// changes.
struct RunStall {
    /// Where the graph runs, which determines what a person can do about a reason.
    enum Place: Sendable {
        /// No other worker can join.
        case thisProcess
        case broker
    }

    private let graph: LoadedGraph
    private let place: Place
    private let canAsk: Bool
    /// When workers could first be there to run operations.
    private var beganAt: Timestamp?
    private var askedAt: Timestamp?
    private var told: Set<Cause> = []

    /// A shorter wait is an ordinary pause between two messages, or a worker that is starting.
    private static let patience = Duration.seconds(2)
    /// How many operations it asks about at once.
    private static let subjectsMax = 8
    /// How many kinds one sentence lists.
    private static let kindsNamedMax = 3

    /// Identifies a reason, so that it is printed once.
    private enum Cause: Hashable {
        case noWorker
        case draining
        case kind(String)
        case unserved(queue: String)
        case demand(ResourceDemand)
        case suspended(queue: String)
        case noRoom(queue: String)
        case key(String)
        case group(String)
        case time
        case completion
        case notStarted(by: Incarnation)
        case silent
        case disconnected
    }

    /// - Parameter canAsk: Whether somebody is asked about external operations.
    init(graph: LoadedGraph, place: Place, canAsk: Bool) {
        self.graph = graph
        self.place = place
        self.canAsk = canAsk
    }

    /// The reasons that are known before anything has run.
    mutating func began(at now: Timestamp) -> [String] {
        beganAt = now
        return [unknownKinds()].compactMap { $0 }
    }

    /// In this process no worker with other kinds can join.
    private mutating func unknownKinds() -> String? {
        guard place == .thisProcess else { return nil }
        var counts: [String: Int] = [:]
        var kinds: [String] = []
        for operation in graph.description.operations {
            let kind = operation.work.kind
            guard !Work.reservedKinds.contains(kind) else { continue }
            if counts[kind] == nil { kinds.append(kind) }
            counts[kind, default: 0] += 1
        }
        guard !kinds.isEmpty else { return nil }
        let named = kinds.prefix(Self.kindsNamedMax).map { "“\($0)”" }.joined(separator: ", ")
        let more = kinds.count - Self.kindsNamedMax
        kinds.forEach { told.insert(.kind($0)) }
        return "warning: \(Self.count(counts.values.reduce(0, +), "cannot", "cannot")) run here: "
            + "without a broker, there is no worker that knows \(named)"
            + (more > 0 ? " and \(more) more" : "")
            + ". Start a worker of your own that does, and run with --broker."
    }

    // MARK: - Asking

    /// The operations to ask about now. None while something runs or changes, or right after the
    /// last question.
    mutating func subjects(
        of id: GraphID,
        _ state: ScreenState,
        at now: Timestamp
    ) -> [OperationID] {
        guard let beganAt, state.unfinishedCount > 0 else { return [] }
        // Operations that run on draining workers free no slots for others.
        let isQuiet = state.runningCount == state.externalCount || state.allWorkersDrain
        guard isQuiet else { return [] }
        let quietSince = max(beganAt, state.movedAt ?? beganAt, askedAt ?? beganAt)
        guard now - quietSince >= Self.patience else { return [] }
        askedAt = now
        // One operation per policy: the others with the same policy wait for the same reason.
        var subjects: [OperationID] = []
        var policies: Set<UInt32> = []
        for (index, phase) in state.phases.enumerated() {
            let isExternal = phase == .executing && state.operations[index].work.isExternal
            guard phase == .ready || isExternal else { continue }
            // An operation that was added during the run has no policy index and counts by itself.
            if index < graph.compiled.policy.count,
                !policies.insert(graph.compiled.policy[index]).inserted
            {
                continue
            }
            subjects.append(OperationID(graph: id, index: UInt32(index)))
            if subjects.count == Self.subjectsMax { break }
        }
        return subjects
    }

    /// Sentences for the reasons that were not printed before.
    mutating func sentences(
        _ reasons: [[Scheduler.Reason]],
        about subjects: [OperationID],
        _ state: ScreenState,
        at now: Timestamp
    ) -> [String] {
        var sentences: [String] = []
        for (subject, reasons) in zip(subjects, reasons) {
            // Without a connection, the other reasons about workers are meaningless.
            for reason in reasons.contains(.disconnected) ? [.disconnected] : reasons {
                let index = Int(subject.index)
                guard let (cause, sentence) = explain(reason, of: index, state, at: now),
                    told.insert(cause).inserted
                else { continue }
                sentences.append(sentence)
            }
        }
        return sentences
    }

    // MARK: - Words

    private func explain(
        _ reason: Scheduler.Reason,
        of index: Int,
        _ state: ScreenState,
        at now: Timestamp
    ) -> (Cause, String)? {
        let name = state.operations[index].name
        switch reason {
        case .noWorkerForKind(let kind): return noWorker(kind, state)
        case .noWorkerForQueue(let queue):
            let waiting = Self.count(inQueue(queue, state), "waits", "wait")
            return (
                .unserved(queue: queue),
                "\(waiting) in queue “\(queue)”, which no worker serves: start one with --queues."
            )
        case .noWorkerForDemand(let demand):
            guard place == .broker else {
                // If nothing else can run, the run ends, and says what to do.
                return (.demand(demand), "“\(name)” can never run here: it needs \(demand.text).")
            }
            return (
                .demand(demand),
                "“\(name)” waits for a worker that offers \(demand.text): start one that does."
            )
        case .queueSuspended(let queue, _):
            let waiting = Self.count(inQueue(queue, state), "waits", "wait")
            return (
                .suspended(queue: queue),
                "\(waiting) in queue “\(queue)”, which the graph file suspends."
            )
        case .queueLimit(let queue, maximum: 0, _, _):
            let waiting = Self.count(inQueue(queue, state), "waits", "wait")
            return (
                .noRoom(queue: queue),
                "\(waiting) in queue “\(queue)”, whose limit is 0."
            )
        case .notBefore(let due), .retryAt(let due), .notYet(let due):
            return (.time, Self.wait(of: name, until: due, at: now))
        case .queueRate(_, let rate, let next), .keyRate(_, let rate, let next):
            let pause = TimeFormat.short(max(.zero, next - now))
            return (.time, "Waiting for \(pause): “\(name)” starts at a rate of \(rate.text).")
        case .keyHeld(let key, let holders, let more):
            let others = holders.map { "“\(state.operations[Int($0.index)].name)”" }
            let names = others.joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
            return (.key(key), "“\(name)” needs the key “\(key)”, held by \(names).")
        case .groupLimit(let group, let maximum, let holders, let more):
            return full(group, maximum, holders, more, of: name, state)
        case .dispatched(let worker):
            let who = state.workers[worker].map { "Worker \($0)" } ?? "A worker"
            return (
                .notStarted(by: worker),
                "\(who) has “\(name)” and has not reported that it started."
            )
        case .awaitsCompletion:
            guard !canAsk else { return nil }
            return (.completion, "“\(name)” waits for a person, and nobody can be asked here.")
        case .disconnected:
            return (.disconnected, "Waiting for the broker: there is no connection to it.")
        case .workersSilent:
            return (.silent, "Waiting: all workers that can run it are silent.")
        case .operationSuspended, .graphSuspended, .dependencies, .queueLimit, .noFreeSlot,
            .dispatchedBytes, .behind, .cancelRequested, .graphCancelled, .leaving,
            .awaits, .awaitsSlot, .resourcesTaken, .reserved:
            // The first three cannot occur here; the others end as soon as something changes.
            return nil
        }
    }

    private static func wait(
        of name: String,
        until due: Scheduler.Due?,
        at now: Timestamp
    ) -> String {
        let rest: Duration? =
            switch due {
            case .time(let moment): moment - now
            case .date(let date): date - SystemClock.wall()
            case nil: nil
            }
        let pause = rest.map { " for \(TimeFormat.short(max(.zero, $0)))" } ?? ""
        return "Waiting\(pause): “\(name)” may not start earlier."
    }

    private func full(
        _ group: String,
        _ maximum: Int,
        _ holders: [OperationID],
        _ more: Int,
        of name: String,
        _ state: ScreenState
    ) -> (Cause, String) {
        let others = holders.map { "“\(state.operations[Int($0.index)].name)”" }
        let names = others.joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
        return (
            .group(group),
            "“\(name)” waits: at most \(maximum) of “\(group)” may be in flight, now \(names)."
        )
    }

    private func noWorker(_ kind: String, _ state: ScreenState) -> (Cause, String)? {
        let isBuiltIn = Work.builtInKinds.contains(kind)
        if state.allWorkersDrain {
            return (.draining, "Waiting for a worker: all workers are draining.")
        }
        if isBuiltIn, state.workers.isEmpty {
            // In this process the worker joins a moment after the graph is submitted.
            guard place == .broker else { return nil }
            return (
                .noWorker,
                "Waiting for a worker: start operon-worker with the same broker and prefix."
            )
        }
        let waiting = Self.count(
            state.phases.indices.count {
                state.phases[$0] == .ready
                    && state.operations[$0].work.kind == kind
            },
            "waits",
            "wait"
        )
        let remedy = isBuiltIn ? "operon-worker does" : "start a worker of your own that does"
        return (.kind(kind), "\(waiting) for a worker that knows the kind “\(kind)”: \(remedy).")
    }

    private func inQueue(_ queue: String, _ state: ScreenState) -> Int {
        state.phases.indices.count {
            state.phases[$0] == .ready && state.operations[$0].queue == queue
        }
    }

    private static func count(_ count: Int, _ one: String, _ many: String) -> String {
        count == 1 ? "1 operation \(one)" : "\(count) operations \(many)"
    }
}
