import OperonCore
import OperonModel
import OperonTestKit
import OperonWire
import Testing

@testable import OperonRuntime

/// Operations that are there as bytes are those that were described.
@Suite struct KeptOperationsTests {
    private static let seeds: [UInt64] = Array(1...20)

    @Test(arguments: seeds)
    func `each operation is made of its bytes as it was described`(_ seed: UInt64) throws {
        var random = Descriptions(seed: seed)
        let graph = random.graph(operations: 300)
        let more = random.graph(operations: 20, namedFrom: 300)
        var stored = StoredOperations()

        let header = try stored.append(StoreFormat.encode(graph, failFast: true))
        try stored.append(StoreFormat.encode(more, failFast: false))

        #expect(header.name == graph.name)
        #expect(header.queues == graph.queues)
        #expect(header.failFast)
        let all = graph.operations + more.operations
        #expect(stored.count == all.count)
        for (index, operation) in all.enumerated() {
            #expect(try stored.description(of: index) == operation)
            #expect(try stored.name(of: index) == operation.name)
            #expect(try stored.queue(of: index) == operation.queue)
        }
    }

    /// Fields that a worker does not need are left out.
    @Test(arguments: seeds)
    func `what is dispatched is what was described`(_ seed: UInt64) throws {
        var random = Descriptions(seed: seed)
        var operations = random.graph(operations: 300).operations
        let plain = OperationDescription(name: "plain", work: .nothing)
        let registered = Work.registered(
            kind: "k",
            input: Payload(contentType: "text/plain", bytes: [1, 2])
        )
        for work in [.wait(.seconds(3)), registered, .external(input: .empty), .nothing] as [Work] {
            for quality in QualityOfService.allCases {
                var operation = plain
                operation.work = work
                operation.qualityOfService = quality
                operation.timeout = .nanoseconds(Int64.max)
                operation.priority = .veryLow
                operation.summary = "größer"
                operation.queue = "q"
                operation.deadline = WallTime(nanosecondsSince1970: .min)
                operation.enforcesResources = quality == .utility
                operations.append(operation)
            }
        }
        var stored = StoredOperations()
        try stored.append(
            StoreFormat.encode(
                GraphDescription(name: "g", operations: operations),
                failFast: false
            )
        )
        for (index, operation) in operations.enumerated() {
            let found = try stored.dispatchedDescription(of: index)
            #expect(found.name == operation.name && found.queue == operation.queue)
            #expect(found.work == operation.work && found.timeout == operation.timeout)
            #expect(found.qualityOfService == operation.qualityOfService)
            #expect(found.resources == operation.resources)
            #expect(found.enforcesResources == operation.enforcesResources)
            #expect(found.wantsInputs == operation.wantsInputs)
            guard operation.wantsInputs else { continue }
            #expect(found.dependencies == operation.dependencies)
        }
    }

    /// What no version writes is read alike in both ways.
    @Test func `an operation without work is none, and an empty queue is the default one`() throws {
        func stored(_ operation: [UInt8]) throws -> StoredOperations {
            let graph = [0x1A, UInt8(operation.count)] + operation
            var stored = StoredOperations()
            try stored.append([UInt8(graph.count), 0, 0, 0, 0, 0, 0, 0] + graph)
            return stored
        }
        let name: [UInt8] = [0x0A, 1, 0x61]
        let nothing: [UInt8] = [0x5A, 0]
        #expect(throws: WireError.self) {
            try stored(name).dispatchedDescription(of: 0)
        }
        let found = try stored(name + [0x22, 0] + nothing).dispatchedDescription(of: 0)
        #expect(found.name == "a" && found.queue == "default" && found.work == .nothing)
    }

    @Test func `a graph of several pieces is one graph`() throws {
        let operations = (0..<25_000).map { OperationDescription(name: "o\($0)", work: .nothing) }
        let graph = GraphDescription(name: "pieces", operations: operations)
        var stored = StoredOperations()

        try stored.append(StoreFormat.encode(graph, failFast: false))

        for index in [0, 9_999, 10_000, 19_999, 20_000, 24_999] {
            #expect(try stored.name(of: index) == "o\(index)")
            #expect(stored.number(of: "o\(index)") == UInt32(index))
        }
        #expect(stored.count == 25_000)
        #expect(stored.number(of: "o25000") == nil)
    }

    @Test func `names are found among those that were added after the first question, too`() throws
    {
        var random = Descriptions(seed: 7)
        let graph = random.graph(operations: 10)
        let more = random.graph(operations: 50, namedFrom: 10)
        var stored = StoredOperations()
        try stored.append(StoreFormat.encode(graph, failFast: false))
        #expect(stored.number(of: "operation-12") == nil)

        try stored.append(StoreFormat.encode(more, failFast: false))

        for index in 0..<UInt32(60) { #expect(stored.number(of: "operation-\(index)") == index) }
        #expect(stored.number(of: "") == nil)
    }

    @Test(arguments: seeds)
    func `a graph is compiled from its bytes as from its description`(_ seed: UInt64) throws {
        var random = Descriptions(seed: seed)
        var graph = random.graph(operations: 300, others: true)
        graph.keys = [KeySettings(name: "k", limit: 3)]
        for index in graph.operations.indices {
            for place in graph.operations[index].dependencies.indices {
                let name = graph.operations[index].dependencies[place].name
                graph.operations[index].dependencies[place].resolvedID = other(name)
                // After an edit, some of its own operations stand for those of an earlier graph,
                // whose outputs their dependents take.
                guard other(name) == nil, name.hasSuffix("5") else { continue }
                let earlier = OperationID(graph: GraphID(rawValue: 7), index: 5)
                graph.operations[index].dependencies[place].resolvedID = earlier
            }
        }
        let expected = try CompiledGraph.compile(graph)

        var stored = StoredOperations()
        let header = try stored.append(StoreFormat.encode(graph, failFast: false))
        var kept = KeptOperations(stored)
        var assembly = GraphAssembly(
            name: header.name,
            queues: header.queues,
            keys: header.keys,
            operationCount: graph.operations.count
        )
        var taken: [UInt32: Int] = [:]
        var hasOtherInputs = false
        let collecting = try kept.assemble(&assembly, graph.operations.count) { number in
            if let number { taken[number, default: 0] += 1 } else { hasOtherInputs = true }
        }
        #expect(collecting == [])
        let compiled = try assembly.finish()

        #expect(compiled.name == expected.name)
        #expect(compiled.queues == expected.queues)
        #expect(compiled.definedQueueCount == expected.definedQueueCount)
        #expect(compiled.kinds == expected.kinds)
        #expect(compiled.keys == expected.keys)
        #expect(compiled.keyLimits == graph.keys)
        #expect(compiled.policies == expected.policies)
        #expect(compiled.policy == expected.policy)
        #expect(compiled.rank == expected.rank)
        #expect(compiled.bytes == expected.bytes)
        #expect(compiled.outer == expected.outer)
        for index in 0..<UInt32(graph.operations.count) {
            #expect(
                Array(compiled.topology.dependencies(of: index))
                    == Array(expected.topology.dependencies(of: index))
            )
        }
        #expect(taken == takers(of: graph))
        #expect(!compiled.outer.isEmpty && hasOtherInputs)
    }

    /// How many operations take the output of each.
    private func takers(of graph: GraphDescription) -> [UInt32: Int] {
        var described = KeptOperations(graph.operations)
        var takers: [UInt32: Int] = [:]
        for index in graph.operations.indices {
            for number in described.inputs(of: index).own { takers[number, default: 0] += 1 }
        }
        return takers
    }

    private func other(_ name: String) -> OperationID? {
        guard name.hasPrefix("9/") else { return nil }
        return UInt32(name.dropFirst(2)).map {
            OperationID(graph: GraphID(rawValue: 9), index: $0)
        }
    }

    @Test func `bytes that are cut off anywhere are refused or end between two pieces`() throws {
        var random = Descriptions(seed: 3)
        let body = try StoreFormat.encode(random.graph(operations: 12), failFast: true)

        for count in 1..<body.count {
            var stored = StoredOperations()
            #expect(throws: WireError.self, "cut to \(count) of \(body.count)") {
                try stored.append(Array(body[..<count]))
            }
            #expect(stored.count == 0)
        }
    }

    @Test(arguments: seeds)
    func `bytes that the disk changed give an error or another graph, and end nothing`(
        _ seed: UInt64
    ) throws {
        var random = Descriptions(seed: seed)
        let graph = random.graph(operations: 12)
        let body = try StoreFormat.encode(graph, failFast: true)

        for _ in 0..<200 {
            var bytes = body
            bytes[random.number(below: bytes.count)] = UInt8(random.number(below: 256))
            var stored = StoredOperations()
            do throws(WireError) { try stored.append(bytes) } catch { continue }
            var kept = KeptOperations(stored)
            for index in 0..<stored.count {
                #expect(kept[index].name.utf8.count + kept.name(of: index).utf8.count < 2_000)
                #expect(kept.inputs(of: index).own.count <= stored.count)
            }
        }
    }
}

/// Draws descriptions with a bit of everything.
private struct Descriptions {
    private var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    mutating func number(below end: Int) -> Int { Int(random.next() % UInt64(end)) }

    private mutating func chance(_ percent: Int) -> Bool { number(below: 100) < percent }

    /// - Parameters:
    ///   - first: operations before this number are there already.
    ///   - others: some depend on operations of another graph.
    mutating func graph(
        operations count: Int,
        namedFrom first: Int = 0,
        others: Bool = false
    ) -> GraphDescription {
        var graph = GraphDescription(name: "graph \(number(below: 1_000))")
        graph.queues = [QueueSettings(name: "slow", maxConcurrentOperationCount: 3)]
        graph.queues[0].isSuspended = chance(50)
        for index in first..<first + count {
            graph.operations.append(operation(index, first: first, others: others))
        }
        return graph
    }

    private mutating func operation(
        _ index: Int,
        first: Int,
        others: Bool
    ) -> OperationDescription {
        var operation = OperationDescription(name: "operation-\(index)", work: work())
        if chance(20) { operation.summary = "says \(index)" }
        if index > first {
            for _ in 0..<number(below: 4) {
                let other = "operation-\(first + number(below: index - first))"
                guard !operation.dependencies.contains(where: { $0.name == other }) else {
                    continue
                }
                operation.dependencies.append(
                    DependencyDescription(other, DependencyCondition.allCases[number(below: 4)])
                )
            }
            // Listed again, it counts once.
            if chance(20), let one = operation.dependencies.first {
                operation.dependencies.append(one)
            }
        }
        if others, chance(10) {
            operation.dependencies.append(DependencyDescription("9/\(number(below: 3))"))
        }
        if chance(30) { operation.queue = chance(50) ? "slow" : "other-\(number(below: 3))" }
        if chance(20) { operation.priority = QueuePriority.allCases[number(below: 5)] }
        if chance(20) { operation.qualityOfService = .background }
        if chance(20) { operation.timeout = .milliseconds(1 + number(below: 9)) }
        if chance(20) {
            operation.retry = RetryPolicy(limit: 3, delay: .seconds(number(below: 3)))
        }
        if chance(20) { operation.expectedDuration = .seconds(number(below: 50)) }
        if chance(10) { operation.exclusive = ["key-\(number(below: 4))", "all"] }
        if chance(10) { operation.delay = .milliseconds(number(below: 200)) }
        if chance(10) {
            operation.notBefore = WallTime(nanosecondsSince1970: Int64(number(below: 1_000)))
        }
        if chance(10) {
            operation.deadline = WallTime(nanosecondsSince1970: Int64(number(below: 1_000)))
        }
        return operation
    }

    private mutating func work() -> Work {
        switch number(below: 5) {
        case 0: return .nothing
        case 4:
            let text = chance(50) ? "\(number(below: 99))" : String(repeating: "x", count: 5_000)
            return .external(input: Payload(bytes: Array(text.utf8)))
        case 1: return .wait(.milliseconds(number(below: 3)))
        case 2:
            var command = CommandDescription(arguments: ["true", "\(number(below: 9))"])
            if chance(10) { command.environment["LONG"] = String(repeating: "x", count: 5_000) }
            return .command(command)
        case _:
            let bytes = Array("\(number(below: 99))".utf8)
            let kind = "kind-\(number(below: 3))"
            return .registered(
                kind: kind,
                input: chance(50) ? .empty : Payload(contentType: Payload.json, bytes: bytes)
            )
        }
    }
}
