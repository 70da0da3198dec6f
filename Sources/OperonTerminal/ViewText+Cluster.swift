package import OperonModel

extension ViewText {
    /// `status` without a graph.
    package func cluster(_ cluster: ClusterView) -> [String] {
        let clock = TimeFormat.clock(cluster.now.time - cluster.startedAt.time)
        let age = "up \(clock), epoch \(cluster.epoch)"
        let workers =
            cluster.workers == 0
            ? style.tinted("none; to start one: operon-worker", .attention)
            : "\(cluster.workers), \(cluster.busySlots) of \(plural(cluster.slots, "slot")) busy"
        let facts: [(name: String, value: String?)] = [
            ("coordinator", shown("version \(cluster.version), \(age)")),
            (
                "broker",
                cluster.broker == ClusterView.noBroker
                    ? "none: operations run in the coordinator’s process" : health(cluster.broker)
            ),
            ("store", health(cluster.store)),
            ("workers", workers),
            ("resources", resources(of: cluster)),
            ("graphs", "\(cluster.openGraphs) not finished"),
            ("operations", counts(cluster.counts, noun: nil)),
        ]
        return block(facts + waiting(in: cluster), indent: 0)
    }

    /// `cpus 3.5 of 8, memory 12GiB of 32GiB free`; `nil`: nothing is offered.
    private func resources(of cluster: ClusterView) -> String? {
        guard let resources = cluster.resources, !resources.isEmpty else { return nil }
        let parts = resources.map { one in
            "\(shown(one.name)) \(Self.amount(one.free, of: one.name)) of "
                + Self.amount(one.offered, of: one.name)
        }
        return parts.joined(separator: ", ") + " free"
    }

    /// The most demands that `status` lists.
    private static let waitingMax = 10

    /// A line for each demand that waits and asks for more than a slot, or that no worker meets.
    private func waiting(in cluster: ClusterView) -> [(name: String, value: String?)] {
        // Without a worker everything waits for one.
        let isMissing = cluster.workers > 0
        let demands = (cluster.demands ?? []).filter { demand in
            demand.ready > 0 && (!demand.isPlain || isMissing && demand.unrunnable > 0)
        }
        var lines = demands.prefix(Self.waitingMax).map { demand in
            var text = "\(plural(demand.ready, "operation")) for \(shown(demand.text))"
            if isMissing, demand.unrunnable > 0, let missing = demand.missing {
                let part = demand.unrunnable < demand.ready ? "\(demand.unrunnable) of " : ""
                let what = demand.ready == 1 ? "it" : part + "them"
                let why = "no worker could ever run \(what): \(shown(missing))"
                text += "; " + style.tinted(why, .attention)
            }
            return text
        }
        let more = demands.count - lines.count + (cluster.moreDemands ?? 0)
        if more > 0 { lines.append(said("… and \(more) more demands")) }
        return lines.enumerated().map { ($0 == 0 ? "waiting" : "", $1) }
    }

    private func health(_ text: String) -> String {
        style.tinted(shown(text), text == ClusterView.well ? .good : .bad)
    }

    // MARK: - Queues

    /// `queue list`.
    package func queues(_ queues: [QueueView]) -> [String] {
        guard !queues.isEmpty else { return [] }
        var table = TextTable([
            TextTable.Column(title: "QUEUE", isFlexible: true),
            TextTable.Column(title: "READY", isRight: true),
            TextTable.Column(title: "RUNNING", isRight: true),
            TextTable.Column(title: "MAX", isRight: true),
            TextTable.Column(title: "PRIORITY", importance: 1),
            TextTable.Column(title: "SUSPENDED", isFlexible: true, importance: 2),
        ])
        for queue in queues {
            table.add([
                TextTable.Cell(shown(queue.name)),
                TextTable.Cell(String(queue.ready)),
                TextTable.Cell(String(queue.inFlight)),
                TextTable.Cell(queue.maxConcurrentOperationCount.map(String.init) ?? "-"),
                TextTable.Cell(queue.priority.name),
                TextTable.Cell(suspended(queue) ?? "", .attention),
            ])
        }
        return table.lines(style: style, width: width)
    }

    /// `queue show`, and after `queue set`.
    package func queue(_ queue: QueueView) -> [String] {
        let limit = queue.maxConcurrentOperationCount.map { "at most \($0) at once" }
        return ["queue " + style.tinted(quoted(queue.name), .strong)]
            + block([
                ("operations", "\(queue.ready) ready, \(queue.inFlight) running"),
                ("limit", limit ?? "none"),
                ("rate", rate(queue.rate, queue.burst)),
                ("priority", queue.priority.name),
                ("suspended", suspended(queue)),
            ])
    }

    private func rate(_ rate: String?, _ burst: Int?) -> String? {
        guard let rate else { return nil }
        return rate + (burst.map { $0 > 1 ? ", \($0) at once after a pause" : "" } ?? "")
    }

    private func suspended(_ queue: QueueView) -> String? {
        guard queue.isSuspended else { return nil }
        return suspension(queue.suspension)
    }

    // MARK: - Keys

    /// `key list`.
    package func keys(_ keys: [KeyView]) -> [String] {
        guard !keys.isEmpty else { return [] }
        var table = TextTable([
            TextTable.Column(title: "KEY", isFlexible: true),
            TextTable.Column(title: "LIMIT", isRight: true),
            TextTable.Column(title: "HELD", isRight: true),
            TextTable.Column(title: "WAITING", isRight: true),
            TextTable.Column(title: "HELD BY", isFlexible: true, importance: 1),
        ])
        for key in keys {
            table.add([
                TextTable.Cell(shown(key.name)),
                TextTable.Cell(String(key.limit)),
                TextTable.Cell(String(key.held), key.held > key.limit ? .attention : nil),
                TextTable.Cell(String(key.waiting)),
                TextTable.Cell(holders(key, limit: Self.holdersInList)),
            ])
        }
        return table.lines(style: style, width: width)
    }

    /// `key show`, and after `key set`.
    package func key(_ key: KeyView) -> [String] {
        var lines = ["key " + style.tinted(quoted(key.name), .strong)]
        lines += block([
            ("limit", "\(key.limit) at once"),
            ("rate", rate(key.rate, key.burst)),
            ("held by", key.held == 0 ? "none" : holders(key, limit: Self.holdersShown)),
            ("waiting", waiters(key)),
        ])
        if key.held > key.limit {
            let count = key.held - key.limit + 1
            let some = count == 1 ? "1 of them has" : "\(count) of them have"
            let sentence =
                "Operations that hold the key keep it. The next one gets it when \(some) finished."
            lines.append(said(sentence))
        }
        return lines
    }

    private func holders(_ key: KeyView, limit: Int) -> String {
        list(key.holders, more: key.held - key.holders.count, limit: limit)
    }

    private func waiters(_ key: KeyView) -> String {
        let count = plural(key.waiting, "operation")
        guard let waiters = key.waiters else { return count }
        let more = key.waiting - waiters.count
        return count + ": " + list(waiters, more: more, limit: Self.holdersShown)
    }

    private static let holdersInList = 3
    private static let holdersShown = 10

    // MARK: - Workers

    /// `workers`.
    package func workers(_ workers: [WorkerView]) -> [String] {
        guard !workers.isEmpty else { return [] }
        var table = TextTable([
            TextTable.Column(title: "WORKER", isFlexible: true),
            TextTable.Column(title: "STATUS"),
            TextTable.Column(title: "BUSY", isRight: true),
            TextTable.Column(title: "FREE", isFlexible: true, importance: 4),
            TextTable.Column(title: "LABELS", isFlexible: true, importance: 0),
            TextTable.Column(title: "HOST", isFlexible: true, importance: 4),
            TextTable.Column(title: "QUEUES", isFlexible: true, importance: 3),
            TextTable.Column(title: "KINDS", isFlexible: true, importance: 2),
            TextTable.Column(title: "HEARD", isRight: true, importance: 1),
        ])
        for worker in workers {
            // Whoever is gone has nothing that could be taken.
            let isGone = worker.status == "gone"
            table.add([
                TextTable.Cell(shown(worker.name)),
                TextTable.Cell(shown(worker.status), worker.status == "alive" ? nil : .attention),
                TextTable.Cell(isGone ? "" : "\(worker.busySlots)/\(worker.slots)"),
                TextTable.Cell(isGone ? "" : shown(Self.resources(of: worker))),
                TextTable.Cell(shown(Self.labels(of: worker))),
                TextTable.Cell(shown(worker.host)),
                TextTable.Cell(shown(worker.queues.joined(separator: ","))),
                TextTable.Cell(shown(Self.kinds(of: worker))),
                TextTable.Cell(heard(worker.heardSecondsAgo)),
            ])
        }
        return table.lines(style: style, width: width)
    }

    /// What is free of what is offered: `cpus 2/4 memory 3.5GiB/8GiB`, and whether the worker
    /// enforces it for operations that ask for that.
    private static func resources(of worker: WorkerView) -> String {
        let amounts = (worker.resources ?? []).map { one in
            "\(one.name) \(amount(one.free, of: one.name))/\(amount(one.offered, of: one.name))"
        }
        return (amounts + (worker.enforces == true ? ["(enforced)"] : [])).joined(separator: " ")
    }

    private static func amount(_ amount: Double, of name: String) -> String {
        // What a coordinator says is not trusted, and a Double may be anything.
        // The sum over many workers exceeds what one may offer.
        guard amount >= 0, amount < 0x1p63 else { return "?" }
        if name == ResourceAmount.memoryName { return memory(amount) }
        if amount >= 0x1p50 { return String(Int(amount)) }
        let thousandths = Int((amount * 1_000).rounded())
        return ResourceText.text(thousandths, of: ResourceAmount.cpusName)
    }

    private static func memory(_ bytes: Double) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"]
        var amount = bytes
        var place = 0
        while amount >= 1_024, place < units.count - 1 {
            amount /= 1_024
            place += 1
        }
        let tenths = Int((amount * 10).rounded())
        let rest = tenths % 10 == 0 ? "" : ".\(tenths % 10)"
        return "\(tenths / 10)\(rest)\(units[place])"
    }

    private static func labels(of worker: WorkerView) -> String {
        (worker.labels ?? [:]).filter { $0.key != "name" || $0.value != worker.name }
            .sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            .joined(separator: ",")
    }

    private static func kinds(of worker: WorkerView) -> String {
        worker.runsAnyKind == true ? "any" : worker.kinds.joined(separator: ",")
    }

    private func heard(_ seconds: Double) -> String {
        // Beyond a year the number is meaningless, and a Duration could overflow.
        guard seconds.isFinite, seconds >= 0, seconds < 365 * 86_400 else { return "?" }
        return TimeFormat.short(.nanoseconds(Int64(seconds * 1e9))) + " ago"
    }

    /// After `backup`.
    package func wroteReport(of graph: GraphView, _ path: String, _ bytes: Int) -> [String] {
        [said("Wrote the report of graph \(graph.id) to \(shown(path)): \(bytes) bytes.")]
    }

    package func copied(_ path: String, _ bytes: Int) -> [String] {
        [
            said(
                "Copied the coordinator's store to \(shown(path)): \(bytes) bytes."
                    + " To check it: operon store check \(shown(path))"
            )
        ]
    }

    /// After `drain`.
    package func draining(_ worker: WorkerView) -> [String] {
        let name = "Worker \(quoted(worker.name))"
        let drains = "\(name) is draining: it takes no more operations and ends"
        guard worker.held > 0 else { return [said(drains + ".")] }
        let held = plural(worker.held, "operation")
        let ends = "when it has finished the \(held) it holds, or when its drain timeout has passed"
        return [said("\(drains) \(ends).")]
    }
}
