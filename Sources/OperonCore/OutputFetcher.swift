import DequeModule
package import OperonModel

/// Decides how a worker fetches inputs from the coordinator before it starts the attempts that need
/// them: what to request next and how much at once, what to give to which attempt, and what to keep
/// for others.
///
/// It is part of a `WorkerAgent`, which tells it whose inputs are wanted, and starts the attempts
/// that have them. Each attempt gets its inputs in the order of its dependencies, piece by piece.
/// They are not held longer than that takes, except in a cache. Attempts take turns. Outputs are
/// identified by their hash, so two attempts that need the same output cost one fetch.
package struct OutputFetcher: Sendable {
    /// What the shell is to do, in this order. `job` numbers the fetches of this worker, so that a
    /// report about one fetch is not taken for a report about another one of the same attempt.
    package enum Step: Hashable, Sendable {
        /// Make room for the inputs of an operation.
        case begin(DispatchedOperation, job: UInt64)
        /// Compare the hash of these bytes, and report the result.
        case check(ContentHash, [UInt8])
        /// The next inputs of an attempt. Report when they are stored.
        case give(AttemptID, job: UInt64, [NamedInput])
        /// The attempt will not be started: discard its inputs.
        case abandon(AttemptID, job: UInt64)
    }

    /// Why an attempt cannot have its inputs.
    package enum Failure: Hashable, Sendable {
        /// The attempt no longer belongs to this worker.
        case gone
        case failed(OperationError)
        /// The worker cannot store the inputs for now, and gives the attempt back.
        case postponed(by: Duration)
    }

    /// One attempt that waits for its inputs.
    struct Job: Sendable {
        let number: UInt64
        let operation: DispatchedOperation
        /// The inputs before this index are here or requested.
        var asked = 0
        /// The inputs before this index are stored.
        var given = 0
        /// The end of the inputs that are being stored; `nil`: none are.
        var giving: Int?
        /// Bytes of the fetched inputs from `given` up to `asked`.
        var aheadBytes = 0
        var isInLine = true
    }

    struct Output: Sendable {
        enum State: Hashable, Sendable {
            /// Some of it is not requested yet, or is on its way.
            case arriving
            /// All of it is here, and its hash is being compared.
            case checking
            case here
        }

        let reference: OutputReference
        var state = State.arriving
        var bytes: [UInt8] = []
        /// Bytes that have not arrived.
        var missing: Int
        /// The offset of the next request.
        var nextOffset = 0
        /// The attempt in whose name it is requested, and the operation whose output it is
        /// according to that attempt: another attempt may know the same bytes as the output of
        /// another operation.
        var owner: AttemptID
        var operation: OperationID
        /// How many attempts wait for it or are being given it.
        var pins = 1
        /// The attempts that pinned it, each as often as it did. Some may be gone.
        var waiters: [AttemptID]
        /// How often it arrived damaged.
        var damages = 0
        /// Orders the outputs that no attempt needs at the moment: the least recently used is
        /// dropped first.
        var lastUse: UInt64 = 0

        init(_ reference: OutputReference, for owner: AttemptID) {
            self.reference = reference
            self.owner = owner
            operation = reference.operation
            waiters = [owner]
            missing = reference.byteCount
        }
    }

    struct OpenRequest: Sendable {
        var request: OutputRequest
        let hash: ContentHash
    }

    let limits: Limits
    /// Never iterated.
    var jobs: [AttemptID: Job] = [:]
    /// Attempts that may request more, in turn. Some may be gone.
    var line = Deque<AttemptID>()
    /// Attempts that have all their inputs, in the order in which they were completed. Some may be
    /// gone.
    var complete = Deque<AttemptID>()
    /// Never iterated.
    var outputs: [ContentHash: Output] = [:]
    /// Outputs to be requested, in order. Some may be gone.
    var unasked = Deque<ContentHash>()
    /// Requests without an answer, in the order of their numbers.
    var requests: [OpenRequest] = []
    /// Bytes of `requests`.
    var openBytes = 0
    /// Bytes of all outputs that are held or on their way.
    package internal(set) var heldBytes = 0
    /// Outputs that no attempt needs, least recently used first. An entry is out of date if it
    /// differs from `lastUse`.
    var idle = Deque<(hash: ContentHash, use: UInt64)>()
    var uses: UInt64 = 0
    var lastRequest: UInt64 = 0
    var lastJob: UInt64 = 0
    /// Steps since they were last taken.
    var steps: [Step] = []
    /// Requests to be sent, since they were last taken.
    var unsent: [OutputRequest] = []
    var failures: [(AttemptID, Failure)] = []

    /// How many requests may be open at once, however small, because a message and a beat have to
    /// list them.
    static let requestsMax = 64
    /// How often an output may arrive damaged.
    static let damagesMax = 3

    package init(limits: Limits) { self.limits = limits }

    /// How many attempts wait for inputs, or for their start with them. Each has its slot.
    package var count: Int { jobs.count }

    /// The requests that beats list.
    package var openRequests: [OutputRequest] { requests.map(\.request) }

    /// How many bytes may be on their way, and how far in bytes an attempt may be ahead of what is
    /// stored.
    var windowBytes: Int { limits.chunkBytes * limits.chunksAhead }

    // MARK: - Attempts

    /// Whether any of its inputs has to be fetched.
    package static func isWanted(by operation: DispatchedOperation) -> Bool {
        operation.inputs.contains { $0.reference != nil }
    }

    package mutating func begin(_ operation: DispatchedOperation) {
        let attempt = operation.held.attempt
        lastJob += 1
        jobs[attempt] = Job(number: lastJob, operation: operation)
        line.append(attempt)
        steps.append(.begin(operation, job: lastJob))
    }

    // MARK: - Results

    package mutating func takeSteps() -> [Step] {
        defer { steps.removeAll(keepingCapacity: true) }
        return steps
    }

    /// The requests to be sent while the coordinator listens.
    package mutating func takeUnsent() -> [OutputRequest] {
        defer { unsent.removeAll(keepingCapacity: true) }
        return unsent
    }

    package mutating func takeFailures() -> [(AttemptID, Failure)] {
        defer { failures.removeAll() }
        return failures
    }

    /// The attempt that may be started next.
    package mutating func nextComplete() -> AttemptID? {
        while let first = complete.first {
            if let job = jobs[first], job.given == job.operation.inputs.count { return first }
            complete.removeFirst()
        }
        return nil
    }

    /// The attempt is being started with its inputs.
    package mutating func started(_ attempt: AttemptID) { jobs[attempt] = nil }

    /// The attempt will not be started. Does nothing for an attempt that waits for no inputs.
    package mutating func drop(_ attempt: AttemptID) {
        guard let job = jobs.removeValue(forKey: attempt) else { return }
        steps.append(.abandon(attempt, job: job.number))
        for input in job.operation.inputs[job.given..<job.asked] {
            if let reference = input.reference { unpin(reference.hash, by: attempt) }
        }
    }

    /// The inputs that the attempt was given last are stored.
    package mutating func stored(_ attempt: AttemptID, job number: UInt64) {
        guard var job = jobs[attempt], job.number == number, let end = job.giving else { return }
        let inputs = job.operation.inputs[job.given..<end]
        job.given = end
        job.giving = nil
        for input in inputs { job.aheadBytes -= input.reference?.byteCount ?? 0 }
        let isComplete = end == job.operation.inputs.count
        if isComplete {
            complete.append(attempt)
        } else if !job.isInLine {
            job.isInLine = true
            line.append(attempt)
        }
        jobs[attempt] = job
        for input in inputs {
            if let reference = input.reference { unpin(reference.hash, by: attempt) }
        }
        give(attempt)
    }

    /// Gives an attempt its next inputs, if they are here and it has stored the previous ones.
    mutating func give(_ attempt: AttemptID) {
        guard let job = jobs[attempt], job.giving == nil else { return }
        var inputs: [NamedInput] = []
        var bytes = 0
        var place = job.given
        while place < job.operation.inputs.count, bytes < windowBytes {
            var input = job.operation.inputs[place]
            if let reference = input.reference {
                guard place < job.asked, let output = outputs[reference.hash],
                    output.state == .here
                else { break }
                input.output = Payload(contentType: reference.contentType, bytes: output.bytes)
                input.reference = nil
            }
            bytes += input.byteCount
            inputs.append(input)
            place += 1
        }
        guard !inputs.isEmpty else { return }
        jobs[attempt]?.giving = place
        steps.append(.give(attempt, job: job.number, inputs))
    }

    /// The inputs that the attempt was given cannot be stored.
    package mutating func refused(
        _ attempt: AttemptID,
        job number: UInt64,
        _ failure: Failure
    ) {
        guard jobs[attempt]?.number == number else { return }
        fail(attempt, failure)
    }

    mutating func fail(_ attempt: AttemptID, _ failure: Failure) {
        guard jobs[attempt] != nil else { return }
        drop(attempt)
        failures.append((attempt, failure))
    }
}

// MARK: - Asking

extension OutputFetcher {
    /// Requests as much as may be on its way.
    package mutating func ask() {
        while requests.count < Self.requestsMax {
            if let hash = unasked.first {
                guard let output = outputs[hash], output.state == .arriving,
                    output.nextOffset < output.reference.byteCount
                else {
                    unasked.removeFirst()
                    continue
                }
                let left = output.reference.byteCount - output.nextOffset
                let length = min(limits.chunkBytes, left)
                guard requests.isEmpty || openBytes + length <= windowBytes else { return }
                outputs[hash]?.nextOffset += length
                send(hash, offset: output.nextOffset, length: length)
            } else if let attempt = line.popFirst() {
                guard jobs[attempt] != nil else { continue }
                switch step(attempt) {
                case .next: line.append(attempt)
                case .waits: jobs[attempt]?.isInLine = false
                case .noRoom:
                    line.prepend(attempt)
                    return
                }
                give(attempt)
            } else {
                return
            }
        }
    }

    private enum Progress {
        /// It wants one more output, and may want others.
        case next
        /// It goes on when the inputs that it was given are stored, or has all that it wants.
        case waits
        /// Other attempts hold too much.
        case noRoom
    }

    /// Finds the next output that an attempt needs and that is not requested yet.
    private mutating func step(_ attempt: AttemptID) -> Progress {
        guard var job = jobs[attempt] else { return .waits }
        defer { jobs[attempt] = job }
        while job.asked < job.operation.inputs.count {
            guard let reference = job.operation.inputs[job.asked].reference else {
                job.asked += 1
                continue
            }
            guard job.aheadBytes == 0 || job.aheadBytes + reference.byteCount <= windowBytes
            else { return .waits }
            if outputs[reference.hash] != nil {
                outputs[reference.hash]?.pins += 1
                outputs[reference.hash]?.waiters.append(attempt)
                job.asked += 1
                job.aheadBytes += reference.byteCount
                continue
            }
            guard makeRoom(for: reference.byteCount) else { return .noRoom }
            outputs[reference.hash] = Output(reference, for: attempt)
            heldBytes += reference.byteCount
            unasked.append(reference.hash)
            job.asked += 1
            job.aheadBytes += reference.byteCount
            return .next
        }
        return .waits
    }

    private mutating func send(_ hash: ContentHash, offset: Int, length: Int) {
        guard let output = outputs[hash], let job = jobs[output.owner] else { return }
        lastRequest += 1
        let request = OutputRequest(
            number: lastRequest,
            held: job.operation.held,
            operation: output.operation,
            offset: offset,
            length: length
        )
        requests.append(OpenRequest(request: request, hash: hash))
        openBytes += length
        unsent.append(request)
    }

    /// Sends every open request again, after a welcome.
    package mutating func askAgain() { unsent = openRequests }

    // MARK: - Answers

    package mutating func received(_ chunk: OutputChunk) {
        // benign: an answer that came twice, or for an attempt that is gone.
        guard let place = requests.firstIndex(where: { $0.request.number == chunk.number })
        else { return }
        let open = requests[place]
        if case .sent = chunk.content {
            unsent.append(open.request)
            return
        }
        requests.remove(at: place)
        openBytes -= open.request.length
        switch chunk.content {
        case .sent: break  // Excluded above.
        case .gone: fail(open.request.held.attempt, .gone)
        case .missing:
            let why = "the output of an operation that it depends on is not there any more"
            fail(open.request.held.attempt, .failed(.undecodable(why)))
        case .bytes(let bytes):
            let bytes =
                bytes.count <= open.request.length
                ? bytes : Array(bytes.prefix(open.request.length))
            take(bytes, answering: open)
        }
    }

    private mutating func take(_ bytes: [UInt8], answering open: OpenRequest) {
        let request = open.request
        guard outputs[open.hash]?.state == .arriving else { return }
        outputs[open.hash]?.take(bytes, at: request.offset)
        if bytes.count < request.length {
            // The coordinator sends smaller pieces.
            send(
                open.hash,
                offset: request.offset + bytes.count,
                length: request.length - bytes.count
            )
        }
        guard let output = outputs[open.hash], output.missing == 0 else { return }
        outputs[open.hash]?.state = .checking
        steps.append(.check(open.hash, output.bytes))
    }

    /// Whether the bytes of an output have the expected hash.
    package mutating func checked(_ hash: ContentHash, isRight: Bool) {
        guard let output = outputs[hash], output.state == .checking else { return }
        guard !isRight else {
            outputs[hash]?.state = .here
            for waiter in output.waiters { give(waiter) }
            return
        }
        guard output.damages + 1 < Self.damagesMax else {
            for waiter in output.waiters {
                let why = "an output that it was to be given arrived damaged"
                fail(waiter, .failed(.undecodable(why)))
            }
            return
        }
        outputs[hash]?.damages += 1
        restart(hash)
    }

    /// Requests an output from the beginning, whatever part of it has arrived.
    private mutating func restart(_ hash: ContentHash) {
        guard var output = outputs[hash] else { return }
        output.state = .arriving
        output.bytes = []
        output.missing = output.reference.byteCount
        output.nextOffset = 0
        outputs[hash] = output
        unasked.append(hash)
    }
}

// MARK: - Keeping

extension OutputFetcher {
    private mutating func unpin(_ hash: ContentHash, by attempt: AttemptID) {
        guard let output = outputs[hash] else { return }
        outputs[hash]?.pins -= 1
        if let place = output.waiters.firstIndex(of: attempt) {
            outputs[hash]?.waiters.remove(at: place)
        }
        if output.pins > 1 {
            handOver(hash, from: attempt)
            return
        }
        guard output.state == .here else {
            // No attempt wants it: the part that is on its way will be ignored.
            removeRequests(of: hash)
            forget(hash)
            return
        }
        uses += 1
        outputs[hash]?.lastUse = uses
        outputs[hash]?.waiters = []
        idle.append((hash, uses))
        if idle.count > 2 * outputs.count + 64 {
            idle.removeAll { outputs[$0.hash]?.lastUse != $0.use }
        }
    }

    /// If the attempt in whose name an output was requested has left, requests it again in the name
    /// of another attempt that needs it.
    private mutating func handOver(_ hash: ContentHash, from attempt: AttemptID) {
        guard let output = outputs[hash], output.state == .arriving, output.owner == attempt,
            jobs[attempt] == nil, let heir = output.waiters.first(where: { jobs[$0] != nil })
        else { return }
        let input = jobs[heir]?.operation.inputs.first { $0.reference?.hash == hash }
        outputs[hash]?.owner = heir
        outputs[hash]?.operation = input?.reference?.operation ?? output.operation
        removeRequests(of: hash)
        restart(hash)
    }

    private mutating func removeRequests(of hash: ContentHash) {
        for open in requests where open.hash == hash { openBytes -= open.request.length }
        requests.removeAll { $0.hash == hash }
        let open = requests
        unsent.removeAll { request in !open.contains { $0.request.number == request.number } }
    }

    private mutating func forget(_ hash: ContentHash) {
        guard let output = outputs.removeValue(forKey: hash) else { return }
        heldBytes -= output.reference.byteCount
    }

    /// Drops outputs that no attempt needs, least recently used first, until this many more bytes
    /// may be held. A single output always may. An attempt that waits here holds nothing that
    /// others wait for, because each requests its inputs in order.
    private mutating func makeRoom(for bytes: Int) -> Bool {
        while heldBytes + bytes > limits.cachedBytes, let first = idle.popFirst() {
            guard let output = outputs[first.hash], output.pins == 0,
                output.lastUse == first.use
            else { continue }
            forget(first.hash)
        }
        return heldBytes == 0 || heldBytes + bytes <= limits.cachedBytes
    }
}

extension OutputFetcher.Output {
    /// Puts a piece in its place.
    fileprivate mutating func take(_ piece: [UInt8], at offset: Int) {
        missing -= piece.count
        if offset == 0, piece.count == reference.byteCount {
            bytes = piece
            return
        }
        if bytes.isEmpty { bytes = [UInt8](repeating: 0, count: reference.byteCount) }
        bytes.replaceSubrange(offset..<offset + piece.count, with: piece)
    }
}
