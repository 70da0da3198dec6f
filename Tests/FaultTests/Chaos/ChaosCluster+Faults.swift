import Glibc
import OperonFaultKit

/// Faults of the coordinator, of its disk and clock, and of the broker.
extension ChaosCluster {
    /// Injects a fault, and returns when the cluster has recovered.
    func inject(_ kind: FaultKind) async throws -> InjectedFault {
        switch kind {
        case .workerKilled: try await killWorker()
        case .workerFrozen: try await freezeWorker()
        case .workerDrained: try await drainWorker()
        case .workerCut: try await cutWorker()
        case .workerSilent: try await silenceWorker()
        case .workerSlow: try await slowWorker()
        case .workerWithoutDescriptors: try await limitWorker(.descriptors)
        case .workerWithoutMemory: try await limitWorker(.memory)
        case .coordinatorKilled: try await killCoordinator()
        case .coordinatorFrozen: try await freezeCoordinator()
        case .coordinatorCut: try await cutCoordinator()
        case .clockForward: try await setClock(.seconds(3_600))
        case .clockBack: try await setClock(.seconds(-3_600))
        case .diskFull: try await fillDisk()
        case .brokerKilled: try await killBroker(losesDisk: false)
        case .brokerWiped: try await killBroker(losesDisk: true)
        case .memoryAlarm: try await raiseAlarm()
        }
    }

    private func killCoordinator() async throws -> InjectedFault {
        let begin = try Ledger.now()
        try await lives.kill()
        let count = try entryCount()
        let end = try Ledger.now()
        try await lives.start()
        return InjectedFault(
            begin: begin,
            end: end,
            recovery: try await recoveryOfDependents(since: begin, after: count)
        )
    }

    private func freezeCoordinator() async throws -> InjectedFault {
        guard let program = lives.program else { throw failure("no coordinator") }
        let begin = try Ledger.now()
        try await program.freeze()
        let count = try entryCount()
        // It is the length of the silence that is tried: shorter and longer than a lease.
        try await Task.sleep(for: schedule.duration(2_000...9_000))
        let end = try Ledger.now()
        program.signal(SIGCONT)
        return InjectedFault(
            detail: "for \((end - begin).secondsText)",
            begin: begin,
            end: end,
            recovery: try await recoveryOfDependents(since: end, after: count)
        )
    }

    private func cutCoordinator() async throws -> InjectedFault {
        let before = await coordinatorProxy.state.connections
        let begin = try Ledger.now()
        await coordinatorProxy.cutAll()
        let count = try entryCount()
        _ = try await recovery(since: begin, "the coordinator has not connected again") {
            await coordinatorProxy.state.connections > before
        }
        return InjectedFault(
            begin: begin,
            end: begin,
            recovery: try await recoveryOfDependents(since: begin, after: count)
        )
    }

    /// Sets the coordinator's wall clock this far from the machine's, up to ten seconds less.
    private func setClock(_ offset: Duration) async throws -> InjectedFault {
        let offset = offset - schedule.duration(0...10_000)
        let begin = try Ledger.now()
        try clock.set(offset)
        let count = try entryCount()
        let difference = try await client.clockOffset() - offset
        guard abs(difference / .seconds(1)) < 5 else {
            throw failure("the clock was not set: it is \(difference.secondsText) off")
        }
        return InjectedFault(
            detail: "\(offset.secondsText) from the machine's",
            begin: begin,
            end: begin,
            recovery: try await recoveryOfDependents(since: begin, after: count)
        )
    }

    private func fillDisk() async throws -> InjectedFault {
        guard let program = lives.program else { throw failure("no coordinator") }
        let word = "is full: nothing new starts until there is room"
        let before = program.errors.text.count(of: word)
        let begin = try Ledger.now()
        try disk.fill()
        // SQLite writes into its log again where it has been copied, and so may need no room yet.
        let isNoticed = try await follower.wait(within: .seconds(20)) {
            program.errors.text.count(of: word) > before
        }
        let count = try entryCount()
        // It is the length of the shortage that is tried.
        try await Task.sleep(for: schedule.duration(1_000...4_000))
        try disk.clear()
        let end = try Ledger.now()
        let recovery = try await recoveryOfDependents(since: end, after: count)
        return InjectedFault(
            detail: "for \((end - begin).secondsText)"
                + (isNoticed ? "" : ", and the store needed no room"),
            begin: begin,
            end: end,
            recovery: isNoticed ? recovery : nil
        )
    }

    // MARK: - The broker

    private func killBroker(losesDisk: Bool) async throws -> InjectedFault {
        let begin = try Ledger.now()
        if losesDisk { try await broker.wipe() } else { try await broker.kill9() }
        let count = try entryCount()
        let dead = try Ledger.now()
        try await broker.restart()
        let end = try Ledger.now()
        return InjectedFault(
            detail: "boot of \((end - dead).secondsText)",
            begin: begin,
            end: end,
            recovery: try await recoveryOfDependents(since: end, after: count)
        )
    }

    private func raiseAlarm() async throws -> InjectedFault {
        let word = "the broker takes nothing more"
        let worker = workers[schedule.index(below: workers.count)].program
        let before = worker.errors.text.count(of: word)
        let begin = try Ledger.now()
        try await broker.setMemoryAlarm(true)
        try await worker.says(word, times: before + 1)
        let count = try entryCount()
        // It is the length of the alarm that is tried.
        try await Task.sleep(for: schedule.duration(1_000...8_000))
        try await broker.setMemoryAlarm(false)
        let end = try Ledger.now()
        return InjectedFault(
            detail: "for \((end - begin).secondsText)",
            begin: begin,
            end: end,
            recovery: try await recoveryOfDependents(since: end, after: count)
        )
    }
}
