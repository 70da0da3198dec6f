import OperonCore
import OperonModel

// Outputs that workers fetch: small ones in smaller pieces, so that the conversation is that of
// large ones. They cross the same network as everything else, in a lane of their own.
extension Simulator {
    /// Limits with pieces that are smaller than the outputs.
    static func smallPieces(_ limits: Limits) -> Limits {
        var limits = limits
        limits.chunkBytes = 16
        limits.chunksAhead = 2
        limits.cachedBytes = 120
        return limits
    }

    /// The output of an operation, the same in every run.
    static func output(of operation: OperationID) -> [UInt8] {
        let count = 1 + Int(operation.index) % 5 * 10
        return (0..<count).map { UInt8(truncatingIfNeeded: Int(operation.index) &* 37 &+ $0) }
    }

    /// Not a hash: it tells whose it is.
    private static func hash(of operation: OperationID) -> ContentHash {
        let bytes = (0..<ContentHash.byteCount).map {
            UInt8(truncatingIfNeeded: operation.index >> UInt32($0 % 4 * 8))
        }
        guard let hash = ContentHash(bytes: bytes) else {
            preconditionFailure("there are as many bytes as a hash has")
        }
        return hash
    }

    private static func operation(of hash: ContentHash) -> OperationID {
        let index = hash.bytes.prefix(4).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        return OperationID(graph: GraphID(rawValue: 0), index: index)
    }

    /// What is dispatched with an operation: all outputs of its dependencies, to be fetched.
    func inputs(of operation: OperationID) -> [NamedInput] {
        guard scenario.fetchesOutputs, let topology = ledger.topology,
            operation.graph.rawValue == 0, operation.index < topology.operationCount
        else { return [] }
        return topology.dependencies(of: operation.index).map { edge in
            let dependency = OperationID(graph: operation.graph, index: edge.operation)
            return NamedInput(
                name: "\(edge.operation)",
                output: nil,
                reference: OutputReference(
                    operation: dependency,
                    byteCount: Self.output(of: dependency).count,
                    hash: Self.hash(of: dependency)
                )
            )
        }
    }

    // MARK: The coordinator

    /// Answers what workers asked for.
    mutating func answer(_ effects: Scheduler.Effects) {
        for case .workerLost(let worker) in effects.notices {
            outputServer.forget(worker.incarnation)
        }
        for order in effects.fetches {
            if order.isRepeated { ledger.met(.outputAskedAgain) }
            outputServer.take(order)
        }
        while let (address, answers) = outputServer.next() {
            let chunks = answers.map { answer in
                switch answer {
                case .gone(let number): OutputChunk(number: number, content: .gone)
                case .sent(let number):
                    OutputChunk(number: number, content: .sent)
                case .piece(let request):
                    OutputChunk(number: request.number, content: .bytes(piece(request)))
                }
            }
            watchIntruder(chunks, to: address)
            let envelope = CoordinatorEnvelope(
                reign: scheduler.reign,
                epoch: scheduler.epoch,
                sequence: 0,
                sender: .none,
                body: .chunks(chunks)
            )
            post(envelope, to: address)
        }
    }

    private func piece(_ request: OutputRequest) -> [UInt8] {
        let bytes = Self.output(of: request.operation)
        return Array(bytes.dropFirst(request.offset).prefix(request.length))
    }

    private mutating func post(_ envelope: CoordinatorEnvelope, to address: WorkerAddress) {
        let index = workers.firstIndex { $0.incarnation == address.incarnation }
        guard let index, !isLost() else { return }
        let time = arrival(on: .outputs(address.incarnation, address.connection))
        at(time, .toWorker(index, address, envelope))
    }

    // MARK: Workers

    mutating func perform(
        _ steps: [OutputFetcher.Step],
        _ index: Int,
        _ incarnation: Incarnation
    ) {
        for step in steps {
            switch step {
            case .begin(let operation, _):
                workers[index].inputs[operation.held.attempt] = []
            case .abandon(let attempt, _): workers[index].inputs[attempt] = nil
            case .check(let hash, let bytes):
                if scenario.isDamaging, !isHealed, work.fraction() < 0.05 {
                    ledger.met(.outputDamaged)
                    advance(.checked(hash, isRight: false), index, incarnation)
                } else {
                    ledger.met(.outputFetched)
                    // What is said to be right must be, whatever was lost or came twice.
                    let operation = Self.operation(of: hash)
                    if bytes != Self.output(of: operation) {
                        ledger.broken("the output of \(operation) was put together wrongly")
                    }
                    advance(.checked(hash, isRight: true), index, incarnation)
                }
            case .give(let attempt, let job, let inputs):
                workers[index].inputs[attempt, default: []] += inputs
                advance(.stored(attempt, job: job), index, incarnation)
            }
        }
    }

    private mutating func advance(
        _ progress: WorkerAgent.InputProgress,
        _ index: Int,
        _ incarnation: Incarnation
    ) {
        let length = Duration.microseconds(Int64(work.next() % 1_000))
        at(now + length, .inputs(index, incarnation: incarnation, progress))
    }

    /// Whether an attempt that starts has been given what its operation depends on, in order.
    mutating func checkInputs(of held: HeldAttempt, _ index: Int) {
        let given = workers[index].inputs.removeValue(forKey: held.attempt) ?? []
        let wanted = inputs(of: held.operation).map { input in
            let operation = input.reference?.operation ?? held.operation
            return NamedInput(
                name: input.name,
                output: Payload(bytes: Self.output(of: operation))
            )
        }
        if given != wanted {
            ledger.broken("\(held.operation) started with \(given.count) inputs that are not its")
        }
    }
}
