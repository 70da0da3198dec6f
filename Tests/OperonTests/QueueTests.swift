import ClusterKit
import Logging
import Operon
import OperonModel
import OperonPorts
import Synchronization
import Testing

/// What a program does with queues, in one process.
@Suite(.timeLimit(.minutes(10))) struct QueueTests {
    @Test func valuesComeBack() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = OperationQueue(name: "q", cluster: cluster)
        let one = try await queue.addOperation(Doubled(number: 1))
        let two = try await queue.addOperation(Doubled(number: 2))
        let sum = try await queue.addOperation(SumOfInputs(), after: [one, two])
        let nothing = try await queue.addOperation(Nothing(), after: [sum])
        #expect(try await sum.value == 6)
        try await nothing.value
        #expect(try await nothing.isFinished)
        #expect(try await sum.dependencies.map(\.name) == [one.name, two.name])
        #expect(sum.valueIfKnown == 6)
        await cluster.close()
    }

    @Test func aThrownErrorArrivesEqual() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        let failing = try await queue.addOperation(Failing())
        await #expect(throws: Wrong(code: 7)) { try await failing.value }
        let skipped = try await queue.addOperation(Nothing(), after: [failing])
        let error = await #expect(throws: OperationSkipped.self) { try await skipped.value }
        #expect(error?.cause == failing.id && error?.causeName == failing.name)
        await cluster.close()
    }

    /// The types that exist here are a `Trap`, which notes that it was decoded, and Swift's own.
    @Test(arguments: [
        ("Trap", #"{"code": 7}"#), ("CancellationError", "{}"),
        ("OperonTests.Wrong", #"{"code": 7}"#),
        ("Wrong", #"{"code": "seven"}"#), ("Wrong", "[7]"), ("Wrong", "7"), ("Wrong", ""),
        ("wrong", #"{"code": 7}"#),
    ])
    func anErrorUnderAnotherNameOrOfAnotherFormIsPlainData(type: String, payload: String)
        async throws
    {
        try await RemoteCluster.run { remote in
            try await remote.coordinator.join("worker", slots: 1, kinds: [Failing.kind])
            let honest = try await remote.queue.addOperation(Failing())
            let failing = try await remote.queue.addOperation(Failing())
            let right = OperationError.thrown(
                type: "Wrong",
                message: "m",
                payload: Array(#"{"code": 7}"#.utf8)
            )
            let forged = OperationError.thrown(
                type: type,
                message: "m",
                payload: Array(payload.utf8)
            )
            for (handle, error) in [(honest, right), (failing, forged)] {
                let id = try #require(handle.id)
                try await remote.coordinator.finish(OperationSelector(id), error)
            }
            await #expect(throws: Wrong(code: 7)) { try await honest.value }
            await #expect(throws: forged) { try await failing.value }
            #expect(Meeting["trap"].signed == [])
        }
    }

    @Test func whatIsNotSubmittedSaysWhatItIs() async throws {
        let handle = OperationHandle(Nothing())
        #expect(try await handle.isReady)
        #expect(try await !handle.isExecuting)
        #expect(try await !handle.isFinished)
        #expect(try await !handle.isCancelled)
        #expect(try await handle.dependencies.isEmpty)
        #expect(try await handle.queuePriority == .normal)
        #expect(handle.id == nil)
    }

    @Test func manyAtOnceStartInOrder() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster, isSuspended: true)
        let order = Numbers()
        let blocks = (0..<50).map { number in
            LocalOperationHandle<Void> { _ in order.append(number) }
        }
        try await queue.setMaxConcurrentOperationCount(1)
        // A critical path would put the first of a chain before what was added before it.
        try await queue.addOperations(blocks)
        #expect(try await queue.operationCount == 50)
        #expect(try await queue.operations.map(\.id) == blocks.map(\.id))
        try await queue.resume()
        try await queue.waitUntilAllOperationsAreFinished()
        #expect(order.all == Array(0..<50))
        #expect(try await queue.operationCount == 0)
        await cluster.close()
    }

    @Test func aHandleIsAddedOnce() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        let handle = OperationHandle(Nothing())
        await #expect(throws: Refusal.self) { try await queue.addOperations([handle, handle]) }
        try await queue.addOperation(handle)
        let error = await #expect(throws: Refusal.self) { try await queue.addOperation(handle) }
        #expect(error == .alreadySubmitted(name: handle.name))
        await cluster.close()
    }

    @Test func aBatchIsAddedWholeOrNotAtAll() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        let first = OperationHandle(Nothing())
        let second = OperationHandle(Nothing())
        let outside = OperationHandle(Nothing())
        try await first.addDependency(second)
        try await second.addDependency(first)
        let cycle = await #expect(throws: Refusal.self) {
            try await queue.addOperations([first, second])
        }
        guard case .dependencyCycle = cycle else {
            Issue.record("\(String(describing: cycle))")
            return
        }
        try await second.removeDependency(first)
        try await second.addDependency(outside)
        let unknown = await #expect(throws: Refusal.self) {
            try await queue.addOperations([first, second])
        }
        guard case .unknownOperation = unknown else {
            Issue.record("\(String(describing: unknown))")
            return
        }
        #expect(try await queue.operationCount == 0)
        // They are as they were: together with what they wait for they can be added.
        try await queue.addOperations([first, second, outside], waitUntilFinished: true)
        #expect(try await first.isFinished)
        await cluster.close()
    }

    @Test func whatIsCancelledBeforeEndsWithoutRunning() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        let handle = OperationHandle(Failing())
        try await handle.cancel(reason: "not wanted")
        #expect(try await handle.isCancelled)
        #expect(try await !handle.isFinished)
        try await queue.addOperation(handle)
        #expect(try await handle.finalOutcome() == .cancelled(reason: "not wanted"))
        await cluster.close()
    }

    @Test func aCompletionBlockIsCalledOnce() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        let order = Numbers()
        let handle = OperationHandle(Nothing())
        handle.completionBlock = { outcome in order.append(outcome == .succeeded ? 1 : -1) }
        try await queue.addOperation(handle)
        try await handle.waitUntilFinished()
        // Set late, it is called at once.
        handle.completionBlock = { _ in order.append(2) }
        #expect(order.all.last == 2)
        try await queue.waitUntilAllOperationsAreFinished()
        #expect(order.all.sorted() == [1, 2])
        await cluster.close()
    }

    @Test func aBarrierStandsAlone() async throws {
        let cluster = Cluster.inProcess(slots: 4)
        let queue = OperationQueue(cluster: cluster)
        let order = Numbers()
        func block(_ number: Int) -> LocalOperationHandle<Void> {
            LocalOperationHandle { _ in order.append(number) }
        }
        try await queue.suspend()
        try await queue.addOperations([block(1), block(1), block(1)])
        try await queue.addBarrierBlock { _ in order.append(2) }
        let urgent = block(3)
        urgent.options.queuePriority = .veryHigh
        try await queue.addOperations([urgent, block(3)])
        #expect(try await queue.operationCount == 6)
        try await queue.resume()
        try await queue.waitUntilAllOperationsAreFinished()
        #expect(order.all == [1, 1, 1, 2, 3, 3])
        await cluster.close()
    }

    @Test func aSerialQueueKeepsItsOrder() async throws {
        let cluster = Cluster.inProcess(slots: 4)
        let queue = OperationQueue.serial(cluster: cluster)
        let gate = try ExternalOperationHandle(Int.self)
        try await OperationQueue(cluster: cluster).addOperation(gate)
        let order = Numbers()
        let first = LocalOperationHandle<Void> { _ in order.append(1) }
        let second = LocalOperationHandle<Void> { _ in order.append(2) }
        second.options.queuePriority = .veryHigh
        // The head waits: nobody overtakes it.
        try await queue.addOperation(first.after(gate))
        try await queue.addOperation(second)
        #expect(try await second.operationState == .pending)
        try await gate.complete(7)
        #expect(try await gate.value == 7)
        try await queue.waitUntilAllOperationsAreFinished()
        #expect(order.all == [1, 2])
        await cluster.close()
    }

    @Test func aLocalBlockReadsWhatWorkersReturned() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = OperationQueue(cluster: cluster)
        let doubled = try await queue.addOperation(Doubled(number: 4))
        let local = try await queue.addLocal(after: [doubled]) { context in
            try context.output(of: context.dependencies[0], as: Int.self) + 1
        }
        let sum = try await queue.addOperation(SumOfInputs(), after: [doubled, local])
        #expect(try await local.value == 9)
        #expect(try await sum.value == 17)
        let failing = try await queue.addLocal { _ -> Int in throw Wrong(code: 3) }
        let error = await #expect(throws: OperationError.self) { try await failing.value }
        #expect(error?.thrown(as: Wrong.self) == Wrong(code: 3))
        await cluster.close()
    }

    @Test func aGroupEndsWithItsParts() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = OperationQueue(cluster: cluster)
        let first = OperationHandle(Doubled(number: 1))
        let group = GroupHandle("both") {
            Doubled(number: 2)
            if true { Nothing() }
            for number in 0..<2 { Doubled(number: number) }
        }
        let last = OperationHandle(Nothing())
        try await queue.addOperations {
            last.after(group)
            group.after(first)
            first
        }
        #expect(group.parts.count == 4)
        #expect(group.name == "both")
        try await last.value
        for part in group.parts {
            #expect(part.outcomeIfKnown == .succeeded)
            #expect(try await part.dependencies.map(\.id) == [first.id])
        }
        #expect(try await group.finalOutcome() == .succeeded)
        await cluster.close()
    }

    @Test func cancellingAGroupCancelsItsParts() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = OperationQueue(cluster: cluster, isSuspended: true)
        let group = GroupHandle {
            Nothing()
            Nothing()
        }
        try await queue.addOperation(group)
        try await group.cancel(reason: "enough")
        for part in group.parts {
            #expect(try await part.finalOutcome() == .cancelled(reason: "enough"))
        }
        #expect(try await group.finalOutcome() == .cancelled(reason: "enough"))
        await cluster.close()
    }

    @Test func namedBlocksRunByName() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        try await cluster.register(
            .block("length", of: String.self) { text, _ in text.count },
            .on(Doubled.self)
        )
        let queue = OperationQueue(cluster: cluster)
        let length = try await queue.addOperation("length", "Hellö")
        #expect(try await length.value(as: Int.self) == 5)
        let doubled = try await queue.addOperation("Doubled", ["number": 4])
        #expect(try await doubled.value(as: Int.self) == 8)
        let unknown = try await queue.addOperation("nobody", 1)
        #expect(try await unknown.finalOutcome() == .failed(.kindUnknown("nobody")))
        await cluster.close()
    }

    @Test func conditionsDecide() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = OperationQueue(cluster: cluster)
        let good = try await queue.addOperation(Conditional(holds: true))
        #expect(try await good.value == 1)
        let bad = try await queue.addOperation(Conditional(holds: false))
        #expect(
            try await bad.finalOutcome()
                == .failed(.conditionFailed(name: "all of Holds, not Fails"))
        )
        await cluster.close()
    }

    @Test func whatIsNotYetTrueGivesItsPlaceToOthers() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster, isSuspended: true)
        let patient = try await queue.addOperation(Patient())
        let other = try await queue.addOperation(Patient.Other())
        try await queue.resume()
        // It is the third attempt that finds that all holds, without a retry.
        #expect(try await patient.value == 3)
        try await other.value
        #expect(Patient.journal.all == [-1, 0, -2, -3, 3])
        await cluster.close()
    }

    @Test func anOlderFormIsRefused() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        try await cluster.register(.on(Versioned.self))
        let queue = OperationQueue(cluster: cluster)
        let handle = try await queue.addOperation(Versioned())
        #expect(try await handle.value == 3)
        let old = try NamedOperationHandle(kind: "Versioned", input: [Int](), version: 4)
        try await queue.addOperation(old)
        #expect(
            try await old.finalOutcome()
                == .failed(.versionUnsupported("4 of Versioned (known: 2 to 3)"))
        )
        await cluster.close()
    }

    @Test func aSequenceIsAddedAsItDrains() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = OperationQueue(cluster: cluster)
        let (numbers, given) = AsyncStream.makeStream(of: Doubled.self)
        for number in 0..<200 { given.yield(Doubled(number: number)) }
        given.finish()
        var sum = 0
        var most = 0
        try await queue.addOperations(from: numbers, inFlight: 10) { handle in
            sum += try await handle.value
            most = max(most, try await queue.operationCount)
        }
        #expect(sum == 2 * 199 * 100)
        #expect(most <= 10)
        await cluster.close()
    }

    @Test func progressNeverGoesBack() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = OperationQueue(cluster: cluster)
        let progress = queue.progress
        try await queue.addOperations((0..<100).map { Doubled(number: $0) })
        var last = 0
        for await now in progress {
            #expect(now.finishedCount >= last)
            #expect(now.finishedCount <= now.totalCount)
            last = now.finishedCount
            if last == 100 { break }
        }
        await cluster.close()
    }

    @Test func eventsBeginWithTheState() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(name: "watched", cluster: cluster, isSuspended: true)
        let handle = try await queue.addOperation(Doubled(number: 1))
        var kinds: [OperationEvent.Kind] = []
        for try await event in handle.events {
            kinds.append(event.kind)
            if case .state = event.kind { try await queue.resume() }
        }
        #expect(kinds.first == .state(.ready))
        #expect(kinds.last == .finished(.succeeded))
        #expect(kinds.contains(.started))
        var again: [OperationEvent.Kind] = []
        for try await event in handle.events { again.append(event.kind) }
        #expect(again == [.finished(.succeeded)])
        await cluster.close()
    }

    @Test func startRunsWithoutAQueue() async throws {
        let handle = OperationHandle(Doubled(number: 21))
        try await handle.start()
        #expect(try await handle.value == 42)
        try await handle.start()
        let cancelled = OperationHandle(Doubled(number: 1))
        try await cancelled.cancel()
        try await cancelled.start()
        #expect(try await cancelled.finalOutcome() == .cancelled(reason: ""))
        let waiting = OperationHandle(SumOfInputs())
        try await waiting.addDependency(OperationHandle(Doubled(number: 1)))
        await #expect(throws: OperonError.self) { try await waiting.start() }
    }

    @Test func anotherHandleOfTheSameOperation() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster, isSuspended: true)
        let handle = try await queue.addOperation(Doubled(number: 5))
        let id = try #require(handle.id)
        let other = try await cluster.handle(id, of: Doubled.self)
        #expect(other.operation == handle.operation)
        try await queue.resume()
        #expect(try await other.value == 10)
        let late = try await cluster.handle(id, of: Doubled.self)
        #expect(try await late.value == 10)
        await cluster.close()
    }

    @Test func aLoggerWritesToTheLog() async throws {
        let lines = Mutex<[String]>([])
        let context = try OperationContext.local(
            outputs: ["a": 1],
            log: { line in
                lines.withLock { $0.append(line) }
            }
        )
        var logger = context.logger
        logger[metadataKey: "file"] = "a.png"
        logger.debug("not told")
        logger.warning("slow", metadata: ["seconds": "3"])
        #expect(lines.withLock { $0 } == ["warning slow file=a.png seconds=3"])
        #expect(try context.output(of: "a", as: Int.self) == 1)
        let across = try OperationContext.local(outputs: ["3/a": 1, "4/b": 2])
        #expect(try across.output(of: "b", as: Int.self) == 2)
        #expect(try across.output(of: "3/a", as: Int.self) == 1)
    }

    @Test func whoCancelsItselfEndsAsCancelled() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        try await cluster.register(
            .block("quits", of: Int.self) { _, context in
                context.cancel()
                try context.checkCancellation()
            }
        )
        let queue = OperationQueue(cluster: cluster)
        let quits = try await queue.addOperation("quits", 1)
        #expect(try await quits.finalOutcome() == .cancelled(reason: ""))
        await cluster.close()
    }

    @Test func aLongChainIsLetGo() throws {
        var last = OperationHandle(Nothing())
        for _ in 0..<200_000 { last = OperationHandle(Nothing()).after(last) }
    }
}

struct Doubled: Operation, Equatable {
    var number: Int
    func main(_ context: OperationContext) async throws -> Int { 2 * number }
}

struct SumOfInputs: Operation {
    func main(_ context: OperationContext) async throws -> Int {
        try context.dependencies.reduce(0) { $0 + (try context.output(of: $1, as: Int.self)) }
    }
}

struct Nothing: Operation {
    func main(_ context: OperationContext) async throws {}
}

struct Wrong: Error, Codable, Equatable { var code: Int }

struct Trap: Error, Codable {
    init(from decoder: any Decoder) throws { Meeting["trap"].sign("decoded") }
}

struct Failing: Operation {
    static let errors: [any (Error & Codable).Type] = [Wrong.self]
    func main(_ context: OperationContext) async throws { throw Wrong(code: 7) }
}

struct Versioned: Operation {
    static let version = 3
    static let supportedVersions = 2...3

    init() {}
    init(from decoder: any Decoder) throws {
        form = decoder.userInfo[.operationVersion] as? Int ?? 0
    }
    func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        try container.encode(0)
    }

    private var form = 0
    func main(_ context: OperationContext) async throws -> Int { form }
}

struct Conditional: Operation {
    var holds: Bool
    var conditions: [any Condition] { [All(Holds(), Not(Fails(really: holds)))] }

    func main(_ context: OperationContext) async throws -> Int { 1 }

    struct Holds: Condition {
        func evaluate(_ context: OperationContext) async throws -> ConditionResult { .satisfied }
    }

    struct Fails: Condition {
        var really: Bool
        func evaluate(_ context: OperationContext) async throws -> ConditionResult {
            really ? .failed : .satisfied
        }
    }
}

/// Has to be asked three times: −1, −2 and −3 in the journal. Then what came of it.
struct Patient: Operation {
    static let journal = Numbers()
    var conditions: [any Condition] { [Asked()] }

    func main(_ context: OperationContext) async throws -> Int {
        Self.journal.append(context.attempt)
        return context.attempt
    }

    struct Asked: Condition {
        func evaluate(_ context: OperationContext) async throws -> ConditionResult {
            Patient.journal.append(-context.attempt)
            return context.attempt < 3 ? .notYet(recheckAfter: .milliseconds(50)) : .satisfied
        }
    }

    /// 0 in the journal.
    struct Other: Operation {
        func main(_ context: OperationContext) async throws { Patient.journal.append(0) }
    }
}

/// What happened, in order.
final class Numbers: Sendable {
    private let numbers = Mutex<[Int]>([])
    var all: [Int] { numbers.withLock { $0 } }
    func append(_ number: Int) { numbers.withLock { $0.append(number) } }
}
