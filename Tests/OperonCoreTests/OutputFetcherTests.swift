import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// What a worker asks for, gives, keeps and drops, with a coordinator that may say anything.
@Suite struct OutputFetcherTests {
    /// Ten bytes a piece, two pieces ahead, sixty bytes held.
    private static let limits: Limits = {
        var limits = Limits()
        limits.chunkBytes = 10
        limits.chunksAhead = 2
        limits.cachedBytes = 60
        return limits
    }()

    /// The bytes of output number `number`, each other than its neighbours.
    private static func bytes(_ number: UInt32, count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: Int(number) * 31 + $0) }
    }

    private static func hash(_ number: UInt32) -> ContentHash {
        ContentHash(bytes: [UInt8](repeating: UInt8(number), count: 32))!
    }

    private static func reference(_ number: UInt32, bytes: Int) -> OutputReference {
        OutputReference(
            operation: OperationID(graph: GraphID(rawValue: 0), index: number),
            byteCount: bytes,
            hash: hash(number)
        )
    }

    private static func input(_ number: UInt32, bytes: Int) -> NamedInput {
        NamedInput(
            name: "o\(number)",
            output: nil,
            reference: reference(number, bytes: bytes)
        )
    }

    private static func given(_ number: UInt32, bytes count: Int) -> NamedInput {
        NamedInput(name: "o\(number)", output: Payload(bytes: bytes(number, count: count)))
    }

    private static func operation(_ number: UInt64, _ inputs: NamedInput...) -> DispatchedOperation
    {
        var operation = WorkerBench.operation(number)
        operation.inputs = inputs
        return operation
    }

    private func attempt(_ number: UInt64) -> AttemptID { WorkerBench.held(number).attempt }

    /// A fetcher, and a coordinator and a shell that do what they are asked when the test says so.
    private struct Bench {
        var fetcher = OutputFetcher(limits: OutputFetcherTests.limits)
        var requests: [OutputRequest] = []
        var steps: [OutputFetcher.Step] = []
        var given: [AttemptID: [NamedInput]] = [:]
        var outputs: [UInt32: [UInt8]] = [:]

        mutating func begin(_ operation: DispatchedOperation) {
            for input in operation.inputs {
                guard let reference = input.reference else { continue }
                outputs[reference.operation.index] = OutputFetcherTests.bytes(
                    reference.operation.index,
                    count: reference.byteCount
                )
            }
            fetcher.begin(operation)
            run()
        }

        mutating func run() {
            fetcher.ask()
            requests += fetcher.takeUnsent()
            steps += fetcher.takeSteps()
        }

        /// Answers what was asked first.
        mutating func answer() {
            let request = requests.removeFirst()
            let bytes = outputs[request.operation.index] ?? []
            let piece = bytes[request.offset..<request.offset + request.length]
            receive(request.number, .bytes(Array(piece)))
        }

        mutating func receive(_ number: UInt64, _ content: OutputChunk.Content) {
            fetcher.received(OutputChunk(number: number, content: content))
            run()
        }

        /// Does what the shell was asked to do.
        mutating func perform(isRight: Bool = true) {
            while !steps.isEmpty {
                switch steps.removeFirst() {
                case .begin, .abandon: continue
                case .check(let hash, _): fetcher.checked(hash, isRight: isRight)
                case .give(let attempt, let job, let inputs):
                    given[attempt, default: []] += inputs
                    fetcher.stored(attempt, job: job)
                }
                run()
            }
        }

        /// Until nothing more happens.
        mutating func settle() {
            perform()
            while !requests.isEmpty {
                answer()
                perform()
            }
        }

        var asked: [[Int]] {
            requests.map { [Int($0.operation.index), $0.offset, $0.length] }
        }
    }

    // MARK: Asking

    @Test func `two pieces are asked for ahead, and the next with each that comes`() {
        var bench = Bench()

        bench.begin(Self.operation(9, Self.input(1, bytes: 25), Self.input(2, bytes: 3)))

        #expect(bench.asked == [[1, 0, 10], [1, 10, 10]])
        bench.answer()
        #expect(bench.asked == [[1, 10, 10], [1, 20, 5]])
        bench.answer()
        // One may be no more than the window ahead of what is stored.
        #expect(bench.asked == [[1, 20, 5]])
        bench.answer()
        bench.perform()
        #expect(bench.asked == [[2, 0, 3]])
    }

    @Test func `inputs are given in the order of the dependencies, whatever came first`() {
        var bench = Bench()
        let inline = NamedInput(name: "inline", output: Payload(bytes: [1]))
        let none = NamedInput(name: "none", output: nil)
        bench.begin(
            Self.operation(9, inline, Self.input(1, bytes: 4), none, Self.input(2, bytes: 4))
        )
        bench.perform()
        #expect(bench.given[attempt(9)] == [inline])

        let first = bench.requests.removeFirst()
        bench.answer()
        bench.perform()
        #expect(bench.given[attempt(9)] == [inline])
        bench.receive(first.number, .bytes(Self.bytes(1, count: 4)))
        bench.perform()

        #expect(
            bench.given[attempt(9)]
                == [inline, Self.given(1, bytes: 4), none, Self.given(2, bytes: 4)]
        )
        #expect(bench.fetcher.nextComplete() == attempt(9))
        bench.fetcher.started(attempt(9))
        #expect(bench.fetcher.count == 0)
    }

    @Test func `nothing is complete before the shell has stored it`() {
        var bench = Bench()
        bench.begin(Self.operation(9, Self.input(1, bytes: 4)))
        bench.answer()

        #expect(bench.fetcher.nextComplete() == nil)
        bench.perform()
        #expect(bench.fetcher.nextComplete() == attempt(9))
    }

    @Test func `attempts take turns, so that a small one does not wait for a large one`() {
        var bench = Bench()
        let large = (1...20).map { Self.input(UInt32($0), bytes: 10) }
        var operation = Self.operation(8)
        operation.inputs = large
        bench.begin(operation)
        bench.begin(Self.operation(9, Self.input(99, bytes: 10)))

        var answers = 0
        while bench.fetcher.nextComplete() == nil {
            bench.answer()
            bench.perform()
            answers += 1
        }

        #expect(bench.fetcher.nextComplete() == attempt(9))
        #expect(answers <= 4)
    }

    @Test func `two attempts that need the same cost one fetch`() {
        var bench = Bench()
        bench.begin(Self.operation(8, Self.input(1, bytes: 10)))
        bench.begin(Self.operation(9, Self.input(1, bytes: 10)))
        #expect(bench.asked == [[1, 0, 10]])

        bench.settle()

        #expect(bench.given[attempt(8)] == [Self.given(1, bytes: 10)])
        #expect(bench.given[attempt(9)] == [Self.given(1, bytes: 10)])
    }

    // MARK: Keeping

    @Test func `what nobody needs is kept, and the longest unused makes room`() {
        var bench = Bench()
        for number: UInt64 in 1...6 {
            bench.begin(Self.operation(number, Self.input(UInt32(number), bytes: 10)))
            bench.settle()
            bench.fetcher.started(attempt(number))
        }
        #expect(bench.fetcher.heldBytes == 60)
        // Used again: now 2 is the longest unused.
        bench.begin(Self.operation(11, Self.input(1, bytes: 10)))
        #expect(bench.requests.isEmpty)
        bench.settle()

        bench.begin(Self.operation(12, Self.input(7, bytes: 10)))
        bench.settle()

        #expect(bench.fetcher.heldBytes == 60)
        bench.begin(Self.operation(13, Self.input(1, bytes: 10)))
        #expect(bench.requests.isEmpty)
        bench.settle()
        bench.begin(Self.operation(14, Self.input(2, bytes: 10)))
        #expect(bench.asked == [[2, 0, 10]])
    }

    @Test func `an output larger than all that may be held is fetched alone`() {
        var bench = Bench()
        bench.begin(Self.operation(8, Self.input(1, bytes: 61)))
        bench.begin(Self.operation(9, Self.input(2, bytes: 10)))

        bench.settle()

        #expect(bench.given[attempt(8)] == [Self.given(1, bytes: 61)])
        #expect(bench.given[attempt(9)] == [Self.given(2, bytes: 10)])
    }

    @Test func `never more is held than may be, however many attempts want something`() {
        var bench = Bench()
        for number: UInt64 in 1...30 {
            var operation = Self.operation(number)
            operation.inputs = (0..<8).map {
                Self.input(UInt32(number) * 8 + UInt32($0), bytes: 9)
            }
            bench.begin(operation)
        }

        while !bench.requests.isEmpty {
            #expect(bench.fetcher.heldBytes <= 60)
            bench.answer()
            bench.perform()
        }

        for number: UInt64 in 1...30 { #expect(bench.given[attempt(number)]?.count == 8) }
    }

    // MARK: Losing

    @Test func `after a welcome everything open is asked for again under its number`() {
        var bench = Bench()
        bench.begin(Self.operation(9, Self.input(1, bytes: 20)))
        let asked = bench.requests
        #expect(bench.fetcher.openRequests == asked)

        bench.requests = []
        bench.fetcher.askAgain()
        bench.run()

        #expect(bench.requests == asked)
        bench.settle()
        #expect(bench.fetcher.openRequests.isEmpty)
        #expect(bench.given[attempt(9)] == [Self.given(1, bytes: 20)])
    }

    @Test func `an answer that was sent and has not come is asked for again`() {
        var bench = Bench()
        bench.begin(Self.operation(9, Self.input(1, bytes: 10)))
        let lost = bench.requests.removeFirst()

        bench.receive(lost.number, .sent)

        #expect(bench.requests == [lost])
        bench.settle()
        // benign: it had come after all.
        bench.receive(lost.number, .sent)
        #expect(bench.requests.isEmpty)
        #expect(bench.given[attempt(9)] == [Self.given(1, bytes: 10)])
    }

    @Test func `an answer that comes twice changes nothing`() {
        var bench = Bench()
        bench.begin(Self.operation(9, Self.input(1, bytes: 20)))
        let first = bench.requests[0].number
        bench.receive(first, .bytes(Self.bytes(1, count: 10)))
        bench.requests.removeFirst()

        bench.receive(first, .bytes([UInt8](repeating: 7, count: 10)))
        bench.settle()

        #expect(bench.given[attempt(9)] == [Self.given(1, bytes: 20)])
    }

    @Test func `a short answer is followed by a request for the rest`() {
        var bench = Bench()
        bench.begin(Self.operation(9, Self.input(1, bytes: 10)))
        let request = bench.requests.removeFirst()

        bench.receive(request.number, .bytes(Array(Self.bytes(1, count: 10)[..<4])))

        #expect(bench.asked == [[1, 4, 6]])
        bench.settle()
        #expect(bench.given[attempt(9)] == [Self.given(1, bytes: 10)])
    }

    @Test func `a damaged output is fetched again, and ends what needs it the third time`() {
        var bench = Bench()
        bench.begin(Self.operation(9, Self.input(1, bytes: 10)))
        for _ in 0..<2 {
            bench.answer()
            bench.perform(isRight: false)
            #expect(bench.asked == [[1, 0, 10]])
        }
        bench.answer()
        bench.perform(isRight: false)

        let failures = bench.fetcher.takeFailures()
        #expect(failures.map(\.0) == [attempt(9)])
        #expect(
            failures.first?.1
                == .failed(.undecodable("an output that it was to be given arrived damaged"))
        )
        #expect(bench.fetcher.heldBytes == 0)
        #expect(bench.fetcher.count == 0)
    }

    @Test func `of what was given up nothing is left, and late answers are dropped`() {
        var bench = Bench()
        bench.begin(Self.operation(9, Self.input(1, bytes: 20), Self.input(2, bytes: 20)))
        bench.answer()
        let late = bench.requests[0].number

        bench.fetcher.drop(attempt(9))
        bench.run()
        bench.receive(late, .bytes(Self.bytes(1, count: 10)))

        #expect(bench.fetcher.openRequests.isEmpty)
        #expect(bench.fetcher.heldBytes == 0)
        #expect(bench.fetcher.count == 0)
        #expect(bench.steps.last == .abandon(attempt(9), job: 1))
    }

    @Test func `what two need goes on in the name of the second when the first is gone`() {
        var bench = Bench()
        bench.begin(Self.operation(8, Self.input(1, bytes: 20)))
        bench.begin(Self.operation(9, Self.input(1, bytes: 20)))
        bench.answer()
        let number = bench.requests.removeFirst().number

        bench.receive(number, .gone)

        #expect(bench.fetcher.takeFailures().map(\.0) == [attempt(8)])
        #expect(bench.requests.map(\.held) == [WorkerBench.held(9), WorkerBench.held(9)])
        bench.settle()
        #expect(bench.given[attempt(9)] == [Self.given(1, bytes: 20)])
        #expect(bench.given[attempt(8)] == nil)
    }

    @Test func `an output that is not there fails what needs it`() {
        var bench = Bench()
        bench.begin(Self.operation(9, Self.input(1, bytes: 10)))

        bench.receive(bench.requests[0].number, .missing)

        let failures = bench.fetcher.takeFailures()
        #expect(failures.map(\.0) == [attempt(9)])
        guard case .failed(.undecodable(let why)) = failures.first?.1 else {
            Issue.record("not a failure: \(failures)")
            return
        }
        #expect(why.contains("not there any more"))
    }

    // MARK: All of it

    /// A coordinator that loses, repeats and cuts short, and attempts that are given up: whatever
    /// is left gets exactly what it needs, in its order.
    @Test(arguments: 0..<200)
    func `whatever is lost on the way, everybody gets its inputs`(seed: Int) {
        var randomness = SeededGenerator(seed: UInt64(seed))
        var bench = Bench()
        var wanted: [AttemptID: [NamedInput]] = [:]
        for number: UInt64 in 1...12 {
            var operation = Self.operation(number)
            operation.inputs = (0..<Int.random(in: 1...5, using: &randomness)).map { _ in
                let output = UInt32.random(in: 1...15, using: &randomness)
                return Self.input(output, bytes: Int(output) * 3)
            }
            wanted[attempt(number)] = operation.inputs.map {
                Self.given($0.reference!.operation.index, bytes: $0.byteCount)
            }
            bench.begin(operation)
        }
        for _ in 0..<5_000 {
            bench.perform(isRight: randomness.fraction() > 0.05)
            if bench.requests.isEmpty, bench.fetcher.openRequests.isEmpty { break }
            switch Int.random(in: 0..<20, using: &randomness) {
            case 0: bench.requests = []  // All that is on its way is lost.
            case 1: bench.requests.shuffle(using: &randomness)
            case 2:
                let dropped = UInt64.random(in: 1...12, using: &randomness)
                bench.fetcher.drop(attempt(dropped))
                wanted[attempt(dropped)] = nil
                bench.run()
            case 3:
                guard let request = bench.requests.first else { break }
                bench.requests.append(request)
            default:
                if bench.requests.isEmpty {
                    for open in bench.fetcher.openRequests { bench.receive(open.number, .sent) }
                } else {
                    bench.answer()
                }
            }
            #expect(bench.fetcher.heldBytes <= 60)
        }

        for (failed, _) in bench.fetcher.takeFailures() { wanted[failed] = nil }
        for (attempt, inputs) in wanted { #expect(bench.given[attempt] == inputs) }
        #expect(bench.fetcher.openRequests.isEmpty)
    }
}
