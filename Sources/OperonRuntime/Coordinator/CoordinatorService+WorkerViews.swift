import OperonCore
import OperonModel
import OperonTrust

extension CoordinatorService {
    func workerViews() -> [WorkerView] {
        // A worker that has not been heard of since a restart of the coordinator has no name.
        let (now, wall) = (time.now(), time.wall())
        let known = scheduler.workerStatus(at: now).filter { worker in
            worker.isAlive || worker.ownsAttempts || !worker.identity.name.isEmpty
        }
        let peers = seals?.peers(of: known.map(\.identity.incarnation)) ?? [:]
        return known.map { worker in
            var view = WorkerView(
                id: worker.identity.incarnation.description,
                name: worker.identity.name.isEmpty
                    ? name(of: worker.identity.incarnation) : worker.identity.name,
                host: worker.host,
                slots: worker.slots,
                busySlots: min(worker.executing, worker.slots),
                held: worker.held,
                status: worker.isAlive ? (worker.isDraining ? "draining" : "alive") : "gone",
                queues: worker.queues,
                kinds: worker.kinds,
                heardSecondsAgo: max(0, worker.silence.seconds)
            )
            let peer = peers[worker.identity.incarnation]
            view.key = peer?.keyText
            view.token = peer?.grant.idText
            view.since = worker.aliveSince.map { TimeText((wall + ($0 - now)).wholeSecond) }
            let running = scheduler.running(on: worker)
            if !running.isEmpty {
                view.running = running.map { running in
                    WorkerOperationView(
                        name(of: running.operation),
                        startedAt: TimeText((wall + (running.since - now)).wholeSecond)
                    )
                }
            }
            if worker.runsAnyKind { view.runsAnyKind = true }
            if worker.offer.enforces { view.enforces = true }
            if !worker.offer.resources.isEmpty {
                view.resources = worker.offer.resources.all.map { offered in
                    ResourceView(offered, left: worker.left[offered.name] ?? 0)
                }
            }
            if !worker.offer.labels.isEmpty {
                let pairs = worker.offer.labels.map { ($0.name, $0.value) }
                view.labels = Dictionary(pairs) { first, _ in first }
            }
            return view
        }.sorted { ($0.name, $0.id) < ($1.name, $1.id) }
    }
}

extension WallTime {
    /// Otherwise, it would be another time with each answer: the two clocks are read one after
    /// the other.
    fileprivate var wholeSecond: WallTime {
        let second = Duration.seconds(1).nanoseconds
        return WallTime(nanosecondsSince1970: nanosecondsSince1970 / second * second)
    }
}
