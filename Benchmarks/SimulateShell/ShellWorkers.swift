import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import OperonWire

/// A place where workers run, one process after the other. Each has the real agent.
struct ShellWorker {
    var starts: UInt64 = 0
    var agent: WorkerAgent?
    var connection: UInt32 = 0
    var isUp = false
    var wake: Timestamp?
    /// What attempts were given before their starts.
    var inputs: [AttemptID: [NamedInput]] = [:]
    var running: [AttemptID: Run] = [:]
    var lastRequest: UInt64 = 0
    /// The open requests.
    var asked: [UInt64: (attempt: AttemptID, request: Request)] = [:]

    struct Run {
        let operation: DispatchedOperation
        let startedAt: Timestamp
        /// What it asks before it ends, the last first.
        var requests: [Request]
        /// The names of the operations that it has added.
        var added: [String] = []
    }

    /// What a running operation asks its coordinator.
    enum Request {
        /// To add operations of these names.
        case add([String])
        /// To wait for the operation of this name.
        case wait(String)
        /// For the output of the operation of this name.
        case read(String)
    }

    var incarnation: Incarnation? { agent?.configuration.incarnation }

    /// `nil`: it has no connection.
    var address: WorkerAddress? {
        guard isUp, let incarnation else { return nil }
        return WorkerAddress(incarnation: incarnation, connection: connection)
    }
}

extension ShellSimulation {
    static let kind = "work"
    private static let outputType = "text/plain"

    func boot(_ index: Int) {
        guard workers[index].agent == nil else { return }
        workers[index].starts += 1
        var configuration = WorkerAgent.Configuration(
            name: "w\(index)",
            incarnation: Incarnation(rawValue: UInt64(index + 1) << 32 | workers[index].starts),
            host: "simulated",
            processID: 1,
            slots: scenario.slots,
            kinds: Work.builtInKinds + [Self.kind]
        )
        configuration.limits = scenario.limits
        workers[index].agent = WorkerAgent(configuration: configuration)
        note("worker \(index) starts: \(configuration.incarnation)")
        connect(index)
    }

    private func connect(_ index: Int) {
        guard let incarnation = workers[index].incarnation else { return }
        machine.after(machine.draw(upTo: .milliseconds(400))) {
            guard self.workers[index].incarnation == incarnation, !self.workers[index].isUp else {
                return
            }
            guard self.brokerIsUp else { return self.connect(index) }
            self.workers[index].isUp = true
            self.workers[index].connection += 1
            self.drive(index, .linkUp(connection: self.workers[index].connection))
        }
    }

    func disconnect(_ index: Int) {
        guard workers[index].isUp else { return }
        workers[index].isUp = false
        drive(index, .linkDown)
        connect(index)
    }

    func kill(_ index: Int) {
        guard workers[index].agent != nil else { return }
        note("worker \(index) is killed")
        for attempt in workers[index].running.keys { ledger.stopped(attempt) }
        let starts = workers[index].starts
        workers[index] = ShellWorker(starts: starts)
        machine.after(machine.draw(upTo: .seconds(8))) { self.boot(index) }
    }

    func deliver(_ body: [UInt8], to index: Int, at address: WorkerAddress) {
        guard workers[index].address == address else { return }
        do throws(WireError) {
            drive(index, .message(try Wire.decodeCoordinator(body, limits: scenario.limits)))
        } catch {
            ledger.breaks("a worker cannot read what it is sent: \(error)")
        }
    }

    private func drive(_ index: Int, _ event: WorkerAgent.Event) {
        var effects = WorkerAgent.Effects()
        workers[index].agent?.handle(event, at: machine.now, into: &effects)
        perform(effects, index)
    }

    /// Does this later, if the worker has not been killed.
    private func later(
        _ index: Int,
        _ duration: Duration,
        _ action: @escaping @Sendable () -> Void
    ) {
        let incarnation = workers[index].incarnation
        machine.after(duration) {
            if self.workers[index].incarnation == incarnation { action() }
        }
    }

    private func perform(_ effects: WorkerAgent.Effects, _ index: Int) {
        for step in effects.inputSteps { perform(step, index) }
        for operation in effects.starts { start(operation, index) }
        for (lane, envelope) in effects.messages { send(envelope, lane, index) }
        for answer in effects.answers { take(answer, index) }
        for stop in effects.stops { perform(stop, index) }
        if effects.wantsReconnect { disconnect(index) }
        if effects.wantsExit { return kill(index) }
        guard workers[index].agent != nil, let wake = effects.wakeAt,
            wake < workers[index].wake ?? .distantFuture
        else { return }
        workers[index].wake = wake
        later(index, max(.zero, wake - machine.now)) {
            guard let wake = self.workers[index].wake, wake <= self.machine.now else { return }
            self.workers[index].wake = nil
            self.drive(index, .timeReached)
        }
    }

    private func send(_ envelope: WorkerEnvelope, _ lane: WorkerAgent.Lane, _ index: Int) {
        guard workers[index].isUp, envelope.sender.connection == workers[index].connection else {
            return
        }
        do throws(WireError) {
            let body = try Wire.encode(envelope, limits: scenario.limits)
            post(body, lane == .beats ? .beats : .events)
        } catch {
            ledger.breaks("a worker cannot send: \(error)")
        }
    }

    // MARK: - Inputs

    private func perform(_ step: OutputFetcher.Step, _ index: Int) {
        switch step {
        case .begin(let operation, _): workers[index].inputs[operation.held.attempt] = []
        case .abandon(let attempt, _): workers[index].inputs[attempt] = nil
        case .check(let hash, let bytes):
            let isRight = ContentHash(of: bytes) == hash
            if !isRight { ledger.breaks("an output was put together wrongly") }
            advance(.checked(hash, isRight: isRight), index)
        case .give(let attempt, let job, let inputs):
            workers[index].inputs[attempt, default: []] += inputs
            advance(.stored(attempt, job: job), index)
        }
    }

    private func advance(_ progress: WorkerAgent.InputProgress, _ index: Int) {
        later(index, machine.draw(upTo: .milliseconds(1))) { self.drive(index, .inputs(progress)) }
    }

    // MARK: - Operations

    private func start(_ operation: DispatchedOperation, _ index: Int) {
        let attempt = operation.held.attempt
        let inputs = workers[index].inputs.removeValue(forKey: attempt) ?? operation.inputs
        note("worker \(index) starts \(operation.graphName)/\(operation.name), \(attempt)")
        ledger.started(operation, inputs, latestDate: machine.latestDate)
        workers[index].running[attempt] = ShellWorker.Run(
            operation: operation,
            startedAt: machine.now,
            requests: requests(of: operation)
        )
        later(index, machine.draw(upTo: scenario.runMax)) { self.finish(attempt, index) }
    }

    private func finish(_ attempt: AttemptID, _ index: Int) {
        guard let run = workers[index].running[attempt] else { return }
        guard run.requests.isEmpty else { return ask(attempt, run, index) }
        let fails = machine.draw(scenario.failure)
        report(attempt, fails ? .failed(.exit(code: 1)) : .succeeded, index)
    }

    private func report(_ attempt: AttemptID, _ end: AttemptEnd, _ index: Int) {
        guard let run = workers[index].running.removeValue(forKey: attempt) else { return }
        var output = Payload.empty
        if end == .succeeded {
            let text = ledger.output(of: run.operation, isLong: attempt.number.isMultiple(of: 2))
            output = Payload(contentType: Self.outputType, bytes: Array(text.utf8))
        }
        ledger.ended(run.operation, end, output, added: run.added)
        let result = AttemptResult(
            end: end,
            startedAt: run.startedAt,
            endedAt: machine.now,
            output: output,
            log: KeptLog(tail: Array(ledger.log(of: attempt).utf8))
        )
        drive(index, .ended(attempt, result))
    }

    private func perform(_ stop: WorkerAgent.Stop, _ index: Int) {
        switch stop {
        case .cancel(let attempt), .kill(let attempt): report(attempt, .cancelled, index)
        }
    }

    // MARK: - Requests

    /// It waits for operations with lower numbers only, which cannot wait for it.
    private func requests(of operation: DispatchedOperation) -> [ShellWorker.Request] {
        var requests: [ShellWorker.Request] = []
        guard ledger.isSubmitted(operation) else { return [] }
        if machine.draw(scenario.addition) {
            requests.append(.add(["\(operation.name).a", "\(operation.name).b"]))
        }
        guard operation.held.operation.index > 0, machine.draw(scenario.addition) else {
            return requests
        }
        let other = ledger.name(
            of: machine.draw(below: Int(operation.held.operation.index)),
            in: operation.graphName
        )
        requests.append(.read(other))
        if machine.draw(0.5) { requests.append(.wait(other)) }
        return requests
    }

    private func ask(_ attempt: AttemptID, _ run: ShellWorker.Run, _ index: Int) {
        guard let request = workers[index].running[attempt]?.requests.popLast() else { return }
        let content: WorkerAgent.RequestContent
        switch request {
        case .add(let names):
            let addition = ledger.addition(of: names, by: run.operation)
            do throws(WireError) {
                content = .add(try StoreFormat.encode(addition, failFast: false))
            } catch {
                return ledger.breaks("an addition cannot be encoded: \(error)")
            }
        case .wait(let name): content = .wait([name])
        case .read(let name): content = .read(name)
        }
        workers[index].lastRequest += 1
        let number = workers[index].lastRequest
        workers[index].asked[number] = (attempt, request)
        drive(index, .asked(number, attempt, content))
    }

    private func take(_ answer: WorkerAgent.RequestAnswer, _ index: Int) {
        guard let (attempt, request) = workers[index].asked.removeValue(forKey: answer.number)
        else { return ledger.breaks("request \(answer.number) is answered twice") }
        guard let graph = workers[index].running[attempt]?.operation.graphName else { return }
        switch (request, answer.content) {
        case (.add(let names), .added): workers[index].running[attempt]?.added = names
        case (.wait(let name), .awaited(let outcomes)):
            ledger.awaited(name, outcomes, in: graph)
        case (.read(let name), .read(let output)):
            ledger.read(name, output, in: graph)
        case (_, .ended): return
        case (_, .refused(let refusal)):
            // The graph is being cancelled, or the operation that it names has not succeeded.
            note("a request is refused: \(refusal)")
            if case .add = request { return report(attempt, .failed(.exit(code: 2)), index) }
            // It may hold a key that the other operation needs.
            if case .dependencyCycle = refusal { break }
            if case .wait = request, !ledger.isCancelled(graph) {
                ledger.breaks("a wait is refused: \(refusal)")
            }
        case (.add, _), (.wait, _), (.read, _):
            return ledger.breaks("a request got the answer of another one")
        }
        finish(attempt, index)
    }
}
