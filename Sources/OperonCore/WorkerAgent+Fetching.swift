package import OperonModel

// Getting inputs that were too large for a dispatch, before what needs them is started. Until then
// an attempt waits as any other does, and can be recalled, given back and dropped; but it has a
// slot.
extension WorkerAgent {
    /// What the shell says of the steps that it was asked for.
    package enum InputProgress: Sendable {
        /// Whether the bytes of an output have the hash that they should have.
        case checked(ContentHash, isRight: Bool)
        /// What an attempt was given last is stored.
        case stored(AttemptID, job: UInt64)
        /// It cannot be: the attempt ends with this, or is given back.
        case failed(AttemptID, job: UInt64, OutputFetcher.Failure)
    }

    mutating func inputsAdvanced(_ progress: InputProgress, at now: Timestamp) {
        switch progress {
        case .checked(let hash, let isRight): fetcher.checked(hash, isRight: isRight)
        case .stored(let attempt, let job): fetcher.stored(attempt, job: job)
        case .failed(let attempt, let job, let failure):
            fetcher.refused(attempt, job: job, failure)
        }
        endWithoutInputs(at: now)
    }

    /// Takes a slot for it and what it needs.
    mutating func fetchInputs(of operation: DispatchedOperation, at now: Timestamp) {
        let bytes = operation.inputs.reduce(0) { sum, input in
            let (total, overflow) = sum.addingReportingOverflow(input.byteCount)
            return overflow ? .max : total
        }
        let limit = configuration.limits.inputsBytes
        guard bytes <= limit else {
            fail(operation.held, .inputTooLarge(bytes: bytes, limit: limit), at: now)
            return
        }
        fetcher.begin(operation)
    }

    /// Starts whatever has its inputs. Its slot is its own already.
    mutating func startFetched(at now: Timestamp, into effects: inout Effects) {
        while let attempt = fetcher.nextComplete() {
            guard mayStart(at: now, into: &effects) else { return }
            fetcher.started(attempt)
            start(attempt, at: now, into: &effects)
        }
    }

    mutating func takeChunks(
        _ chunks: [OutputChunk],
        of envelope: CoordinatorEnvelope,
        at now: Timestamp
    ) {
        // Bytes are judged by their hash, whoever sent them; what else is said is for who rules.
        guard envelope.reign == reign, envelope.epoch == epoch else { return }
        heardAt = now
        for chunk in chunks { fetcher.received(chunk) }
        endWithoutInputs(at: now)
    }

    /// Asks for what may be asked for, and hands the shell what is to be done.
    mutating func fetchInputs(at now: Timestamp, into effects: inout Effects) {
        if link == .welcomed {
            fetcher.ask()
            let requests = fetcher.takeUnsent()
            if !requests.isEmpty { append(.fetch(requests), lane: .events, into: &effects) }
        }
        effects.inputSteps += fetcher.takeSteps()
    }

    /// What cannot have its inputs ends here, or is nobody's here any more.
    private mutating func endWithoutInputs(at now: Timestamp) {
        for (attempt, failure) in fetcher.takeFailures() {
            guard let holding = held[attempt], holding.state == .waiting else { continue }
            switch failure {
            case .gone: remove(attempt)
            case .failed(let error): fail(holding.operation.held, error, at: now)
            case .postponed(let pause): end(holding.operation.held, .notYet(after: pause), at: now)
            }
        }
    }

    private mutating func fail(_ held: HeldAttempt, _ error: OperationError, at now: Timestamp) {
        end(held, .failed(error), at: now)
    }

    private mutating func end(_ held: HeldAttempt, _ end: AttemptEnd, at now: Timestamp) {
        remove(held.attempt)
        record(.finished(held, AttemptResult(end: end, startedAt: now, endedAt: now)))
    }
}
