import Operon
import OperonFaultKit
import Testing

/// What a program does with queues, in one process.
@Suite(.timeLimit(.minutes(2))) struct QueueTests {
    struct Double: Operation {
        var number: Int
        func main(_ context: OperationContext) async throws -> Int { 2 * number }
    }

    struct Sum: Operation {
        func main(_ context: OperationContext) async throws -> Int {
            try context.dependencies.reduce(0) { $0 + (try context.output(of: $1, as: Int.self)) }
        }
    }

    struct Nothing: Operation {
        func main(_ context: OperationContext) async throws {}
    }

    struct Wrong: Error, Codable, Equatable { var code: Int }

    struct Failing: Operation {
        static let errors: [any (Error & Codable).Type] = [Wrong.self]
        func main(_ context: OperationContext) async throws { throw Wrong(code: 7) }
    }

    @Test func valuesComeBack() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = OperationQueue(name: "q", cluster: cluster)
        let one = try await queue.addOperation(Double(number: 1))
        let two = try await queue.addOperation(Double(number: 2))
        let sum = try await queue.addOperation(Sum(), after: [one, two])
        let nothing = try await queue.addOperation(Nothing(), after: [sum])
        #expect(try await sum.value == 6)
        try await nothing.value
        #expect(try await nothing.isFinished)
        #expect(try await sum.dependencies.map(\.name) == [one.name, two.name])
        await cluster.close()
    }

    @Test func aThrownErrorArrivesEqual() async throws {
        let cluster = Cluster.inProcess(slots: 1)
        let queue = OperationQueue(cluster: cluster)
        let failing = try await queue.addOperation(Failing())
        await #expect(throws: Wrong(code: 7)) { try await failing.value }
        let skipped = try await queue.addOperation(Nothing(), after: [failing])
        let error = await #expect(throws: OperationSkipped.self) { try await skipped.value }
        #expect(error?.cause == failing.id)
        await cluster.close()
    }

    @Test func whatIsNotSubmittedSaysWhatItIs() async throws {
        let handle = OperationHandle(Nothing())
        #expect(try await handle.isReady)
        #expect(try await !handle.isExecuting)
        #expect(try await !handle.isFinished)
        #expect(try await !handle.isCancelled)
        #expect(try await handle.dependencies.isEmpty)
        #expect(try await handle.queuePriority == .normal)
    }

    @Test func manyAtOnce() async throws {
        let cluster = Cluster.inProcess(slots: 2)
        let queue = OperationQueue(cluster: cluster)
        let handles = try await queue.addOperations((0..<1_000).map { Double(number: $0) })
        for handle in handles { #expect(try await handle.value == 2 * handle.operation.number) }
        try await queue.waitUntilAllOperationsAreFinished()
        await cluster.close()
    }
}
