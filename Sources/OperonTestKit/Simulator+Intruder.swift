import OperonCore
import OperonModel
import OperonWire

// A hostile worker, and hostile operations on honest ones. None of it may change what becomes of
// the operations of others.
extension Simulator {
    /// Sends a message of the hostile worker, or has a running operation ask for something that it
    /// cannot have, and plans the next one. Nobody is hostile after the faults.
    mutating func intrude() {
        guard !isHealed, var intruder else { return }
        at(now + intruder.pause(), .intrudes)
        defer { self.intruder = intruder }
        if intruder.pick([true, false, false, false]) {
            askForTooMuch(&intruder)
            return
        }
        guard coordinatorIsUp, store?.isAlive != false else { return }
        let envelope = intruder.message(
            scheduler.reign,
            scheduler.epoch,
            addition: Self.strangeAddition,
            at: now
        )
        ledger.met(.intruderSpoke)
        let sender = envelope.sender
        let lane: Lane
        switch envelope.body {
        case .beat: lane = .beats(sender.incarnation, sender.connection)
        case _: lane = .events(sender.incarnation, sender.connection)
        }
        at(arrival(on: lane), .toCoordinator(connection: coordinatorConnection, envelope))
    }

    /// What no operation of the simulator adds by itself, but any could.
    private static let strangeAddition: [UInt8] = {
        var graph = GraphDescription(name: "added")
        graph.operations = [OperationDescription(name: Self.strangeName, work: .nothing)]
        graph.operations[0].queue = "a"
        do throws(WireError) {
            return try StoreFormat.encode(graph, failFast: false)
        } catch {
            preconditionFailure("one operation has a stored form: \(error)")
        }
    }()

    static let strangeName = "strange"

    // MARK: - Operations

    private mutating func askForTooMuch(_ intruder: inout SimulatedIntruder) {
        let running = workers.indices.filter { index in
            workers[index].agent != nil && workers[index].frozenUntil == nil
                && !workers[index].running.isEmpty
        }
        guard !running.isEmpty else { return }
        let index = intruder.pick(running)
        guard let attempt = workers[index].running.min(),
            let operation = ledger.kept.open.first(where: { $0.value == attempt })?.key
        else { return }
        let held = HeldAttempt(attempt: attempt, operation: operation)
        let content: WorkerAgent.RequestContent = intruder.pick([
            .add([]), .add([0xFF, 0xFF, 0xFF, 0xFF]), .add(.init(repeating: 0x0A, count: 64)),
            .read("nosuch"), .read(""), .read("4294967295/0"), .read("0/4294967295"),
        ])
        workers[index].lastRequest += 1
        let number = workers[index].lastRequest
        workers[index].asked[number] = SimulatedRequest(held: held, waits: false, isHostile: true)
        ledger.met(.operationAskedTooMuch)
        drive(index, .asked(number, attempt, content))
    }

    /// What cannot be had is refused, or nobody is there any more who asked.
    mutating func takeRefusal(_ content: WorkerAgent.RequestAnswer.Content, of held: HeldAttempt) {
        switch content {
        case .refused, .ended: return
        case .added(let count) where count == 0: return
        case .added, .awaited, .read:
            ledger.broken("\(held.operation) was given what cannot be had: \(content)")
        }
    }

    // MARK: - What the intruder must not get

    /// Notes what others are given; the intruder gets neither operations nor outputs.
    mutating func watchIntruder(_ message: Scheduler.Message) {
        guard intruder != nil else { return }
        guard case .dispatch(_, let grants) = message.body else { return }
        if case .worker(let address) = message.destination, isIntruder(address) {
            ledger.broken("a worker of another queue was given \(grants.map(\.held.operation))")
        }
        for grant in grants { intruder?.overhear(grant.held) }
    }

    mutating func watchIntruder(_ chunks: [OutputChunk], to address: WorkerAddress) {
        guard isIntruder(address) else { return }
        for chunk in chunks {
            guard case .bytes = chunk.content else { continue }
            ledger.broken("an output was sent to a worker that does not need it")
        }
    }

    private func isIntruder(_ address: WorkerAddress) -> Bool {
        intruder != nil && address.incarnation.rawValue >> 63 == 1
    }
}
