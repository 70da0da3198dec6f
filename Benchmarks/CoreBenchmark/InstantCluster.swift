import OperonCore
import OperonModel
import OperonTestKit

/// A scheduler and workers that finish at once whatever they are given. They speak as real ones do:
/// events are numbered, and travel in batches.
struct InstantCluster {
    let slots: Int
    /// Thousandths of a processor.
    private let offered: Int
    private let batch: Int
    private var scheduler: Scheduler
    private var effects = Scheduler.Effects()
    /// Its operations request nothing.
    private var resolver = BenchResolver()
    private var now = Moment(
        monotonic: Timestamp(nanoseconds: 1_000_000_000),
        wall: WallTime(nanosecondsSince1970: 0)
    )
    private var workers: [InstantWorker]
    private var numbers: [Incarnation: Int] = [:]
    private(set) var isFinished = false

    private struct InstantWorker {
        let identity: WorkerIdentity
        var held: [HeldAttempt] = []
        var nextEvent: UInt64 = 1
    }

    var workerCount: Int { workers.count }

    init(workers count: Int, slots: Int, cpus: Int?, batch: Int) {
        self.slots = slots
        // Without a number, slots bound what runs.
        offered = cpus.map { $0 * ResourceAmount.cpuUnit } ?? ResourceAmount.amountMax
        self.batch = batch
        var configuration = Scheduler.Configuration()
        configuration.operationsPerMessage = batch
        scheduler = Scheduler(
            configuration: configuration,
            reign: Reign(rawValue: 1),
            epoch: Epoch(rawValue: 1)
        )
        workers = (0..<count).map {
            InstantWorker(
                identity: WorkerIdentity(
                    name: "w\($0)",
                    incarnation: Incarnation(rawValue: UInt64($0 + 1)),
                    connection: 1
                )
            )
        }
        for index in workers.indices { numbers[workers[index].identity.incarnation] = index }
        drive(.transportUp)
        for index in workers.indices { hello(from: index) }
    }

    mutating func submit(_ graph: CompiledGraph) { drive(.graphSubmitted(graph)) }

    /// As the shell does: performs the effects of each event before the next.
    mutating func drive(_ event: Scheduler.Event) {
        effects.removeAll()
        scheduler.handle(event, at: now, resolving: &resolver, into: &effects)
        for message in effects.messages {
            guard case .worker(let address) = message.destination,
                case .dispatch(_, let grants) = message.body,
                let index = numbers[address.incarnation]
            else { continue }
            for grant in grants { workers[index].held.append(grant.held) }
        }
        for notice in effects.notices {
            if case .graphFinished = notice { isFinished = true }
        }
    }

    /// Ends everything that is dispatched, until nothing is.
    mutating func runToTheEnd() {
        var isIdle = false
        while !isIdle {
            isIdle = true
            for index in workers.indices where !workers[index].held.isEmpty {
                isIdle = false
                finishBatch(of: index)
            }
        }
    }

    private mutating func finishBatch(of index: Int) {
        // Two microseconds each: shorter than anything real, so the read-ahead is used.
        let count = min(batch, workers[index].held.count)
        let start = now.monotonic
        now.monotonic = start + .microseconds(2 * count)
        let finished = workers[index].held.prefix(count).map {
            WorkerEvent.finished(
                $0,
                AttemptResult(end: .succeeded, startedAt: start, endedAt: start + .microseconds(2))
            )
        }
        workers[index].held.removeFirst(count)
        let first = workers[index].nextEvent
        workers[index].nextEvent += UInt64(count)
        send(
            .events(EventBatch(firstNumber: first, sentAt: now.monotonic, events: finished)),
            from: index
        )
    }

    private mutating func hello(from index: Int) {
        var hello = Hello(
            sentAt: now.monotonic,
            host: "here",
            processID: 1,
            slots: UInt32(slots),
            queues: [],
            kinds: [Work.nothingKind],
            held: [],
            firstEvent: 1,
            lastEvent: 0,
            isDraining: false
        )
        hello.offer.resources["cpus"] = offered
        send(.hello(hello), from: index)
    }

    private mutating func send(_ body: WorkerMessage, from index: Int) {
        drive(
            .workerMessage(
                WorkerEnvelope(
                    reign: scheduler.reign,
                    epoch: scheduler.epoch,
                    sequence: 0,
                    sender: workers[index].identity,
                    body: body
                )
            )
        )
    }
}
