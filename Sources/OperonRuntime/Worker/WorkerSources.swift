import OperonCore
import OperonModel
import OperonPorts
import Synchronization

/// Runs the sources that a coordinator has this worker watch, and passes on what they report. A
/// `WatchAgent` decides.
final class WorkerSources: Sendable {
    private struct Run: Sendable {
        /// Opened when the watch ends.
        let end = Latch()
        /// Opened when the occurrence that it has reported is taken.
        var taken: Latch?
    }

    private struct Shared {
        var agent = WatchAgent()
        /// Only looked up.
        var runs: [WatchAgent.RunID: Run] = [:]
    }

    private typealias Start = (run: WatchAgent.RunID, source: WatchedSource, end: Latch)

    /// Batches of reports that wait to be sent. Further ones are dropped: the coordinator asks for
    /// them again.
    private static let waitingMax = 1_024
    /// How often the worker states what it holds.
    static let statementInterval = Duration.seconds(10)
    /// How long sources may take to end. One whose file system does not answer is left behind.
    private static let endPatience = Duration.seconds(15)

    let reports: AsyncStream<[WatchReport]>
    private let reported: AsyncStream<[WatchReport]>.Continuation
    private let starts: AsyncStream<Start>
    private let starting: AsyncStream<Start>.Continuation
    private let shared = Mutex(Shared())
    private let provider: any TriggerSourceProvider
    private let time: TimeSource

    init(_ provider: any TriggerSourceProvider, time: TimeSource = .system) {
        self.provider = provider
        self.time = time
        (reports, reported) = AsyncStream.makeStream(
            bufferingPolicy: .bufferingOldest(Self.waitingMax)
        )
        (starts, starting) = AsyncStream.makeStream()
    }

    /// Runs sources until its task is cancelled.
    func run() async {
        let ended = Latch()
        let running = Task {
            await withDiscardingTaskGroup { group in
                group.addTask { await self.stateRegularly() }
                for await start in starts { group.addTask { await self.run(start) } }
                group.cancelAll()
            }
            await provider.shutDown()
            ended.open()
        }
        await ended.wait()
        running.cancel()
        reported.finish()
        // The task that runs this is cancelled, so it can wait for nothing itself.
        await Task { await ended.wait(within: Self.endPatience) }.value
    }

    private func stateRegularly() async {
        while true {
            do { try await time.sleep(time.now() + Self.statementInterval) } catch { return }
            state()
        }
    }

    /// States what the worker holds. To be called after each welcome.
    func state() { handle([.statementDue]) }

    func obey(_ orders: [WatchOrder], by reign: Reign) {
        handle(orders.map { .ordered($0, by: reign) })
    }

    private func handle(_ events: [WatchAgent.Event]) {
        var effects = WatchAgent.Effects()
        let (begun, opened): ([Start], [Latch]) = shared.withLock { shared in
            for event in events { shared.agent.handle(event, into: &effects) }
            let begun = effects.begins.map { run, source in
                let entry = Run()
                shared.runs[run] = entry
                return Start(run, source, entry.end)
            }
            let opened =
                effects.ends.compactMap { shared.runs.removeValue(forKey: $0)?.end }
                + effects.releases.compactMap { shared.runs[$0]?.taken }
            // Under the lock, so that they keep their order.
            if !effects.reports.isEmpty { reported.yield(effects.reports) }
            return (begun, opened)
        }
        for start in begun { starting.yield(start) }
        for latch in opened { latch.open() }
        let answers = effects.questions.map { answer($0.number, $0.process) }
        if !answers.isEmpty { reported.yield(answers) }
    }

    private func answer(_ number: UInt64, _ process: Int32) -> WatchReport {
        do throws(TriggerSourceError) {
            let resolved = try provider.resolved(.process(.number(process)))
            guard case .process(.identity(let identity)) = resolved else {
                throw TriggerSourceError(.system, "process \(process) cannot be told from others")
            }
            return .identified(number, identity)
        } catch {
            return .unidentified(number, error)
        }
    }

    private func run(_ start: Start) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.observe(start.run, start.source) }
            group.addTask { await start.end.wait() }
            await group.next()
            group.cancelAll()
        }
    }

    private func observe(_ run: WatchAgent.RunID, _ source: WatchedSource) async {
        let observation = SourceObservation(time: time) {
            [provider] () throws(TriggerSourceError) in
            try provider.source(source)
        }
        let end = await observation.run { occurrence in
            try await self.report(occurrence, of: run)
        } status: { status in
            self.handle([.status(run, status)])
        }
        switch end {
        case .ended: handle([.ended(run, nil)])
        case .impossible(let problem): handle([.ended(run, problem)])
        case .unwanted, .cancelled: return
        }
    }

    /// Returns when the coordinator has taken the occurrence.
    private func report(_ occurrence: Occurrence, of run: WatchAgent.RunID) async throws {
        let taken = Latch()
        let isCurrent = shared.withLock { shared in
            shared.runs[run]?.taken = taken
            return shared.runs[run] != nil
        }
        guard isCurrent else { throw SourceObservation.Unwanted() }
        handle([.occurred(run, occurrence)])
        await taken.wait()
        try Task.checkCancellation()
    }
}
