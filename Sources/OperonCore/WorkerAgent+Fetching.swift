package import OperonModel

// Gets inputs that were too large for a dispatch, before the attempt that needs them starts. Until
// then such an attempt waits like any other, and can be recalled, given back and dropped; but it
// has a slot.
extension WorkerAgent {
    /// The shell's reports on the steps that it was asked to do.
    package enum InputProgress: Sendable {
        /// Whether the bytes of an output have the expected hash.
        case checked(ContentHash, isRight: Bool)
        /// The input that an attempt was given last is stored.
        case stored(AttemptID, job: UInt64)
        /// The input cannot be stored: the attempt ends with this failure, or is given back.
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

    /// Takes a slot for an operation, and starts to fetch its inputs.
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

    /// Starts attempts whose inputs are complete. They have their slots already.
    mutating func startFetched(at now: Timestamp, into effects: inout Effects) {
        while let attempt = fetcher.nextComplete() {
            guard mayStart(at: now, into: &effects) else { return }
            fetcher.started(attempt)
            guard let operation = held[attempt]?.operation else { continue }
            start(operation, at: now, into: &effects)
        }
    }

    mutating func takeChunks(
        _ chunks: [OutputChunk],
        of envelope: CoordinatorEnvelope,
        at now: Timestamp
    ) {
        // Chunks need no sequence check, because their bytes are checked by their hash. But they
        // must come from the coordinator that this worker follows.
        guard envelope.reign == reign, envelope.epoch == epoch else { return }
        heardAt = now
        for chunk in chunks { fetcher.received(chunk) }
        endWithoutInputs(at: now)
    }

    /// Sends requests for the outputs that may be requested, and passes the shell its steps.
    mutating func fetchInputs(at now: Timestamp, into effects: inout Effects) {
        if link == .welcomed {
            fetcher.ask()
            let requests = fetcher.takeUnsent()
            if !requests.isEmpty { append(.fetch(requests), lane: .events, into: &effects) }
        }
        effects.inputSteps += fetcher.takeSteps()
    }

    /// Ends attempts that cannot have their inputs, and forgets those that this worker no longer
    /// holds.
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
