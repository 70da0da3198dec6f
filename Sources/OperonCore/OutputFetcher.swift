import DequeModule
package import OperonModel

/// What a worker pulls from the coordinator before it starts what needs it: what to ask for next
/// and how much at once, what to give to whom, what to keep for others.
///
/// A part of a `WorkerAgent`, which says whose inputs are wanted, and starts what has them. Each
/// attempt gets its inputs in the order of its dependencies, piece by piece, and nothing of them is
/// held longer than it takes, but for a cache. Attempts take turns. Outputs are known by their
/// hash, so that two attempts which need the same cost one fetch.
package struct OutputFetcher: Sendable {
    /// To be done in this order. `job` numbers the fetches of this worker, so that what is said of
    /// one is not taken for another of the same attempt.
    package enum Step: Hashable, Sendable {
        /// Make room for its inputs.
        case begin(DispatchedOperation, job: UInt64)
        /// Compare the hash of these bytes, and say so.
        case check(ContentHash, [UInt8])
        /// Its next inputs; say so when they are stored.
        case give(AttemptID, job: UInt64, [NamedInput])
        /// It will not be started: forget what it was given.
        case abandon(AttemptID, job: UInt64)
    }

    /// Why an attempt cannot have its inputs.
    package enum Failure: Hashable, Sendable {
        /// It is not this worker's any more.
        case gone
        case failed(OperationError)
        /// Its worker cannot store them for now, and gives it back.
        case postponed(by: Duration)
    }

    /// One attempt that waits for its inputs.
    struct Job: Sendable {
        let number: UInt64
        let operation: DispatchedOperation
        /// The inputs before this one are at hand or on their way.
        var asked = 0
        /// The inputs before this one are stored.
        var given = 0
        /// The end of what is being stored; `nil`: nothing is.
        var giving: Int?
        /// Bytes of the fetched inputs from `given` up to `asked`.
        var aheadBytes = 0
        var isInLine = true
    }

    struct Output: Sendable {
        enum State: Hashable, Sendable {
            /// Some of it is still to be asked for, or on its way.
            case arriving
            /// All of it is here, and its hash is being compared.
            case checking
            case here
        }

        let reference: OutputReference
        var state = State.arriving
        var bytes: [UInt8] = []
        /// Bytes that have not come.
        var missing: Int
        /// Where the next request begins.
        var nextOffset = 0
        /// In whose name it is asked for, and whose output it is by the words of that attempt:
        /// another may know the same bytes as the output of another operation.
        var owner: AttemptID
        var operation: OperationID
        /// How many attempts wait for it or are being given it.
        var pins = 1
        /// Those who pinned it, each as often as it did; some may be gone.
        var waiters: [AttemptID]
        /// How often it arrived damaged.
        var damages = 0
        /// Orders what nobody needs at the moment: the longest unused goes first.
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
    /// Only looked up.
    var jobs: [AttemptID: Job] = [:]
    /// Whoever may ask for more, in turn; some may be gone.
    var line = Deque<AttemptID>()
    /// Whoever has all its inputs, in the order in which that came to be; some may be gone.
    var complete = Deque<AttemptID>()
    /// Only looked up.
    var outputs: [ContentHash: Output] = [:]
    /// To be asked for, in order; some may be gone.
    var unasked = Deque<ContentHash>()
    /// Without an answer, in the order of their numbers.
    var requests: [OpenRequest] = []
    /// Bytes of `requests`.
    var openBytes = 0
    /// Bytes of all outputs that are held or on their way.
    package internal(set) var heldBytes = 0
    /// What nobody needs, the longest unused first; out of date where `lastUse` says so.
    var idle = Deque<(hash: ContentHash, use: UInt64)>()
    var uses: UInt64 = 0
    var lastRequest: UInt64 = 0
    var lastJob: UInt64 = 0
    /// Since they were last taken.
    var steps: [Step] = []
    /// Requests to be sent, since they were last taken.
    var unsent: [OutputRequest] = []
    var failures: [(AttemptID, Failure)] = []

    /// Requests that may be open at once, however small: what a message and a beat have to list.
    static let requestsMax = 64
    /// How often an output may arrive damaged.
    static let damagesMax = 3

    package init(limits: Limits) { self.limits = limits }

    /// How many attempts wait for inputs, or for being started with them: each has its slot.
    package var count: Int { jobs.count }

    /// What beats list.
    package var openRequests: [OutputRequest] { requests.map(\.request) }

    /// Bytes that may be on their way, and that one attempt may be ahead of what is stored.
    var windowBytes: Int { limits.chunkBytes * limits.chunksAhead }

    // MARK: - Attempts

    /// Whether anything of its inputs is to be fetched.
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

    // MARK: - What came of it

    package mutating func takeSteps() -> [Step] {
        defer { steps.removeAll(keepingCapacity: true) }
        return steps
    }

    /// To be sent while the coordinator listens.
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

    /// It is being started with what it was given.
    package mutating func started(_ attempt: AttemptID) { jobs[attempt] = nil }

    /// It will not be started. Does nothing for an attempt that waits for no inputs.
    package mutating func drop(_ attempt: AttemptID) {
        guard let job = jobs.removeValue(forKey: attempt) else { return }
        steps.append(.abandon(attempt, job: job.number))
        for input in job.operation.inputs[job.given..<job.asked] {
            if let reference = input.reference { unpin(reference.hash, by: attempt) }
        }
    }

    /// What it was given last is stored.
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

    /// Gives an attempt its next inputs, if they are at hand and it has stored the last ones.
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

    /// What it was given cannot be stored.
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
    /// Asks for as much as may be on its way.
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
        /// It wants one output more, and may want others.
        case next
        /// It goes on when what it was given is stored, or has all it wants.
        case waits
        /// Others hold too much.
        case noRoom
    }

    /// Finds the next output that an attempt needs and nobody has asked for.
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

    /// Sends everything again that is open: after a welcome.
    package mutating func askAgain() { unsent = openRequests }

    // MARK: - Answers

    package mutating func received(_ chunk: OutputChunk) {
        // benign: an answer that came twice, or to somebody who is gone.
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
            // A coordinator with smaller pieces.
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

    /// Whether the bytes of an output have the hash that they should have.
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

    /// From the beginning, whatever of it had come.
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
            // Nobody wants it: what is on its way will be dropped.
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

    /// An output that was asked for in the name of an attempt that has left goes on in the name of
    /// another who needs it.
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

    /// Forgets what nobody needs, the longest unused first, until so much more may be held. One
    /// output alone always may. Whoever waits here holds nothing that others wait for: each asks in
    /// its order.
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
