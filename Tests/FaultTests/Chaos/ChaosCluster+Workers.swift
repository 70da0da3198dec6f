import Glibc
import OperonFaultKit

/// What a fault was, as far as it is known once the cluster has recovered.
struct InjectedFault {
    /// The worker that it hit; `nil`: the whole cluster.
    var worker: String?
    var detail = ""
    var begin: Duration
    var end: Duration
    var recovery: Duration?
}

/// Faults of workers and of their links.
extension ChaosCluster {
    func killWorker() async throws -> InjectedFault {
        let place = try await busyWorker()
        let worker = workers[place]
        let begin = try Ledger.now()
        worker.program.signal(SIGKILL)
        let ended = try await worker.program.end()
        guard ended.end == .signal(SIGKILL) else { throw failure("\(worker.name): \(ended.end)") }
        try follower.read()
        let held = follower.running(on: worker.name)
        let end = try Ledger.now()
        try replace(place)
        var fault = InjectedFault(worker: worker.name, begin: begin, end: end)
        fault.detail = "\(held.count) operations"
        if !held.isEmpty {
            fault.recovery = try await recovery(since: begin, "the operations of \(worker.name)") {
                await hasResolved(held)
            }
        }
        return fault
    }

    /// It is silent for longer than its lease. Its operations run on, and nobody hears of them.
    func freezeWorker() async throws -> InjectedFault {
        let worker = workers[try await busyWorker()]
        let length = Duration.seconds(9)
        let begin = try Ledger.now()
        try await worker.program.freeze()
        try follower.read()
        let held = follower.running(on: worker.name)
        var recovered: Duration?
        if try await follower.wait(within: length, until: { await hasResolved(held) }) {
            recovered = try Ledger.now() - begin
        }
        // It is the length of the silence that is tried.
        try await Task.sleep(for: max(.zero, length - (try Ledger.now() - begin)))
        worker.program.signal(SIGCONT)
        let end = try Ledger.now()
        var fault = InjectedFault(worker: worker.name, begin: begin, end: end)
        fault.detail = "\(held.count) operations, for \((end - begin).secondsText)"
        if !held.isEmpty, recovered == nil {
            recovered = try await recovery(since: begin, "the operations of \(worker.name)") {
                await hasResolved(held)
            }
        }
        fault.recovery = held.isEmpty ? nil : recovered
        return fault
    }

    func drainWorker() async throws -> InjectedFault {
        let place = try await busyWorker()
        let worker = workers[place]
        let begin = try Ledger.now()
        try follower.read()
        let held = follower.running(on: worker.name)
        worker.program.signal(SIGTERM)
        let ended = try await worker.program.end(within: .seconds(60))
        guard ended.end == .exit(0) else {
            throw failure("\(worker.name) was drained, and ended with \(ended.end)")
        }
        let end = try Ledger.now()
        try replace(place)
        var fault = InjectedFault(worker: worker.name, begin: begin, end: end)
        fault.detail = "\(held.count) operations"
        fault.recovery = try await recovery(since: begin, "the operations of \(worker.name)") {
            for attempt in held where !follower.hasEnded(attempt) {
                guard await hasResolved([attempt]) else { return false }
            }
            return true
        }
        return fault
    }

    // MARK: - Links

    func cutWorker() async throws -> InjectedFault {
        let place = try await busyWorker()
        let before = await proxy(place).state.connections
        let begin = try Ledger.now()
        await proxy(place).cutAll()
        let end = try Ledger.now()
        _ = try await recovery(since: begin, "\(workers[place].name) has not connected again") {
            await proxy(place).state.connections > before
        }
        let recovery = try await recoveryOfStarts(on: place, since: begin)
        return InjectedFault(
            worker: workers[place].name,
            begin: begin,
            end: end,
            recovery: recovery
        )
    }

    /// Nothing arrives in one direction for longer than a lease.
    func silenceWorker() async throws -> InjectedFault {
        let place = try await busyWorker()
        let directions = FaultProxy.Direction.allCases
        let direction = directions[schedule.index(below: directions.count)]
        let begin = try Ledger.now()
        await proxy(place).drop(direction, true)
        // It is the length of the silence that is tried.
        try await Task.sleep(for: schedule.duration(7_000...11_000))
        await proxy(place).drop(direction, false)
        let end = try Ledger.now()
        return InjectedFault(
            worker: workers[place].name,
            detail: "\(direction.rawValue), for \((end - begin).secondsText)",
            begin: begin,
            end: end,
            recovery: try await recoveryOfStarts(on: place, since: end)
        )
    }

    func slowWorker() async throws -> InjectedFault {
        let place = try await busyWorker()
        let begin = try Ledger.now()
        for direction in FaultProxy.Direction.allCases {
            await proxy(place).change(direction) {
                $0.delay = .milliseconds(300)
                $0.bytesPerSecond = 4_000
            }
        }
        // It is the length of the fault that is tried.
        try await Task.sleep(for: schedule.duration(3_000...7_000))
        for direction in FaultProxy.Direction.allCases {
            await proxy(place).change(direction) { $0 = FaultProxy.Conditions() }
        }
        let end = try Ledger.now()
        return InjectedFault(
            worker: workers[place].name,
            detail: "for \((end - begin).secondsText)",
            begin: begin,
            end: end,
            recovery: try await recoveryOfStarts(on: place, since: end)
        )
    }

    // MARK: - Limits

    /// It gets no more of this than it has, and may end for that.
    func limitWorker(_ resource: ResourceLimit.Resource) async throws -> InjectedFault {
        let place = try await busyWorker()
        let worker = workers[place]
        let word = "cannot run processes now"
        let before = worker.program.errors.text.count(of: word)
        let begin = try Ledger.now()
        let limit = try await ResourceLimit(resource, of: worker.program.process)
        if resource == .descriptors {
            do {
                try await worker.program.says(word, times: before + 1)
            } catch {
                // It need not say so if it has ended for that.
                guard worker.program.hasEnded else { throw error }
            }
        }
        // It is the length of the shortage that is tried.
        try await Task.sleep(for: schedule.duration(2_000...4_000))
        try await limit.lift()
        let end = try Ledger.now()
        var detail = "for \((end - begin).secondsText)"
        if worker.program.hasEnded {
            let ended = try await worker.program.end()
            detail += ", and it ended with \(ended.end): \(ended.errors.suffix(400))"
            try replace(place)
        }
        return InjectedFault(
            worker: worker.name,
            detail: detail,
            begin: begin,
            end: end,
            recovery: try await recoveryOfStarts(on: place, since: end)
        )
    }
}
