import OperonCore
import OperonModel

extension CoordinatorService {
    /// A reason as a sentence that tells the reader what to do.
    func view(of reason: Scheduler.Reason, for operation: OperationID) -> ReasonView {
        switch reason {
        case .dependencies(let operations, let more):
            return listed("dependencies", "It waits for ", operations, more, ".")
        case .operationSuspended:
            return suspended("operationSuspended", "It is", .operation(operation))
        case .graphSuspended:
            return suspended("graphSuspended", "Its graph is", .graph(operation.graph))
        case .queueSuspended(let queue, _):
            return suspended("queueSuspended", "Queue “\(queue)” is", .queue(queue))
        case .queueLimit(let queue, let maximum, let operations, let more):
            return limited(queue, maximum, operations, more, for: operation)
        case .queueRate(let queue, let rate, let next):
            return rated("queueRate", "Queue “\(queue)” starts", rate, next)
        case .keyRate(let key, let rate, let next):
            return rated("keyRate", "Operations with the key “\(key)” start", rate, next)
        case .notBefore(let due):
            return timed("notBefore", "It may not start before", due)
        case .retryAt(let due):
            return timed("retryAt", "Its last attempt failed; the next is due at", due)
        case .notYet(let due):
            return timed("notYet", "Its last attempt said “not yet”; the next is due at", due)
        case .keyHeld(let key, let named, let more):
            return held(key, by: named, more, for: operation)
        case .groupLimit(let group, let maximum, let operations, let more):
            return full(group, maximum, operations, more)
        case .noWorkerForKind(let kind):
            return missing("noWorkerForKind", "knows the kind “\(kind)”") {
                $0.runsAnyKind || $0.kinds.contains(kind)
            }
        case .noWorkerForQueue(let queue):
            return missing("noWorkerForQueue", "knows its kind and serves queue “\(queue)”") {
                $0.queues.isEmpty || $0.queues.contains(queue)
            }
        case .noWorkerForDemand(let demand): return unmet(demand, of: operation)
        case .resourcesTaken(let shortages, let more): return taken(shortages, more)
        case .reserved(let worker, let first): return reserved(worker, for: first)
        case .workersSilent:
            let text = "Every worker that can run it is silent or cannot be reached."
            return ReasonView(code: "noFreeSlot", text: text)
        case .noFreeSlot:
            let text = "Every worker that can run it is busy."
            return ReasonView(code: "noFreeSlot", text: text)
        case .dispatched(let worker): return dispatched(to: worker)
        case .behind(let first): return behind(first)
        case .cancelRequested(let reason):
            return ended("cancelRequested", "It was cancelled", reason)
        case .graphCancelled(let reason):
            return ended("graphCancelled", "Its graph was cancelled", reason)
        case .leaving:
            return ReasonView(code: "leaving", text: "The coordinator is shutting down.")
        case .dispatchedBytes(let bytes, let maximum):
            let text = "Dispatched operations take \(bytes) of \(maximum) bytes: "
            return ReasonView(code: "dispatchedBytes", text: text + "some must finish first.")
        case .awaits(let operations, let more):
            let free = "; others may use its slot meanwhile."
            return listed("awaits", "It has started, and waits for ", operations, more, free)
        case .awaitsSlot(let worker): return awaitsSlot(of: worker)
        case .awaitsCompletion:
            let name = "\(operation.graph)/\(catalog.name(of: operation).name)"
            let command = "operon complete \(CommandText.quoted(name))"
            let text = "It waits for a person to complete it: \(command)"
            return ReasonView(code: "awaitsCompletion", text: text)
        case .disconnected:
            let text = "The coordinator has no connection to its broker."
            return ReasonView(code: "disconnected", text: text)
        }
    }

    private func listed(
        _ code: String,
        _ lead: String,
        _ operations: [OperationID],
        _ more: Int,
        _ end: String
    ) -> ReasonView {
        let names = operations.map { name(of: $0) }
        var view = ReasonView(
            code: code,
            text: lead + Self.list(names.map(\.name), more: more) + end
        )
        view.operations = names
        view.more = more
        return view
    }

    /// - Parameter matches: Whether a worker would do if it were not draining.
    private func missing(
        _ code: String,
        _ what: String,
        _ matches: (Scheduler.WorkerStatus) -> Bool
    ) -> ReasonView {
        let alive = scheduler.workerStatus(at: time.now()).filter(\.isAlive)
        let text: String
        if alive.isEmpty {
            text = "There is no worker: start one that \(what)."
        } else if alive.contains(where: { $0.isDraining && matches($0) }) {
            text = "The only worker that \(what) is draining: start another."
        } else {
            text = "No worker \(what): start one that does."
        }
        return ReasonView(code: code, text: text)
    }

    /// What the worker that comes closest lacks.
    private func unmet(_ demand: ResourceDemand, of operation: OperationID) -> ReasonView {
        let lacking = lacking(demand, for: operation)
        return ReasonView(
            code: "noWorkerForResources",
            text: "No worker could ever run it: \(lacking). Start a worker that offers this."
        )
    }

    private func reserved(_ worker: Incarnation, for first: OperationID) -> ReasonView {
        let first = name(of: first)
        var view = ReasonView(
            code: "reserved",
            text:
                "Worker “\(name(of: worker))” is kept for “\(first.name)”, which is first in line; "
                + "this operation may not end before that can start."
        )
        view.operations = [first]
        return view
    }

    private func taken(_ shortages: [Scheduler.Shortage], _ more: Int) -> ReasonView {
        var clauses = shortages.map { one in
            let needed = ResourceText.text(one.needed, of: one.resource)
            let left = ResourceText.text(one.left, of: one.resource)
            return "worker “\(name(of: one.worker))” has \(left) \(one.resource) left of the "
                + "\(needed) that it needs"
        }
        if more > 0 { clauses.append("\(more) more workers have too little") }
        return ReasonView(
            code: "resourcesTaken",
            text: "Other operations have what it needs: \(clauses.joined(separator: "; "))."
        )
    }

    private func limited(
        _ queue: String,
        _ maximum: Int,
        _ operations: [OperationID],
        _ more: Int,
        for operation: OperationID
    ) -> ReasonView {
        let names = operations.map { name(of: $0) }
        var view = ReasonView(
            code: "queueLimit",
            text: maximum == 0
                ? "Queue “\(queue)” starts nothing: its limit is 0."
                : "Queue “\(queue)” is at its limit of \(maximum): "
                    + Self.list(names, more, for: operation) + "."
        )
        view.operations = names
        view.more = more
        return view
    }

    private func behind(_ first: OperationID) -> ReasonView {
        let name = name(of: first)
        var view = ReasonView(
            code: "noFreeSlot",
            text: "“\(name.name)” is ahead of it, and waits until dispatched operations have "
                + "finished."
        )
        view.operations = [name]
        return view
    }

    private func full(
        _ group: String,
        _ maximum: Int,
        _ operations: [OperationID],
        _ more: Int
    ) -> ReasonView {
        let lead = "Of “\(group)”, at most \(maximum) may be in flight (inFlight), and these are: "
        return listed("groupLimit", lead, operations, more, ".")
    }

    private func held(
        _ key: String,
        by holders: [OperationID],
        _ more: Int,
        for operation: OperationID
    ) -> ReasonView {
        let names = holders.map { name(of: $0) }
        let limit = scheduler.limit(ofKey: key)
        var view = ReasonView(
            code: "keyHeld",
            text: "It needs the key “\(key)”, held by " + Self.list(names, more, for: operation)
                + " (limit \(limit))."
        )
        view.operations = names
        view.more = more
        return view
    }

    private func dispatched(to worker: Incarnation) -> ReasonView {
        let name = name(of: worker)
        return ReasonView(
            code: "dispatched",
            text: "Worker “\(name)” has it and has not reported that it started."
        )
    }

    private func awaitsSlot(of worker: Incarnation) -> ReasonView {
        ReasonView(
            code: "awaitsSlot",
            text: "The operations that it waited for have finished. It continues when worker "
                + "“\(name(of: worker))” has a free slot and its queue has room."
        )
    }

    private func rated(
        _ code: String,
        _ what: String,
        _ rate: StartRate,
        _ next: Timestamp
    ) -> ReasonView {
        timed(code, "\(what) at a rate of \(rate.text); the next start is due at", .time(next))
    }

    private func timed(_ code: String, _ what: String, _ due: Scheduler.Due?) -> ReasonView {
        let date: WallTime
        switch due {
        case nil: return ReasonView(code: code, text: "Its time has not come.")
        case .time(let moment): date = time.wall() + max(.zero, moment - time.now())
        case .date(let named): date = named
        }
        let time = TimeText(date.rounded)
        var view = ReasonView(code: code, text: "\(what) \(time).")
        view.until = time
        return view
    }

    private func ended(_ code: String, _ what: String, _ reason: String) -> ReasonView {
        let why = reason.isEmpty ? "" : " (\(reason))"
        return ReasonView(code: code, text: what + why + "; its worker has not confirmed it yet.")
    }

    private func suspended(_ code: String, _ what: String, _ target: Target) -> ReasonView {
        let suspension = scheduler.suspension(of: target) ?? Suspension()
        var text = what + " suspended"
        if !suspension.by.isEmpty { text += " by \(suspension.by)" }
        if let until = suspension.until { text += " until \(TimeText(until))" }
        if !suspension.reason.isEmpty { text += ": \(suspension.reason)" }
        var view = ReasonView(code: code, text: text + (text.hasSuffix(".") ? "" : "."))
        view.until = suspension.until.map { TimeText($0) }
        return view
    }

    /// With the graphs of those that are of another one than the operation.
    private static func list(
        _ names: [OperationName],
        _ more: Int,
        for operation: OperationID
    ) -> String {
        let shown = names.map { name in
            name.graph == operation.graph.rawValue ? name.name : "\(name.graph)/\(name.name)"
        }
        return list(shown, more: more)
    }

    static func list(_ names: [String], more: Int) -> String {
        var names = names.map { "“\($0)”" }
        if more > 0 { names.append("\(more) more") }
        guard let last = names.popLast() else { return "nothing" }
        return names.isEmpty ? last : names.joined(separator: ", ") + " and " + last
    }
}

extension WallTime {
    /// Rounded to the second: a time that was converted from the monotonic clock is not more exact,
    /// and a date that a person gave is shown as it was given.
    fileprivate var rounded: WallTime {
        let second: Int64 = 1_000_000_000
        let (sum, overflow) = nanosecondsSince1970.addingReportingOverflow(second / 2)
        return overflow ? self : WallTime(nanosecondsSince1970: sum - sum % second)
    }
}
