import OperonModel
import Testing

@testable import OperonWire

/// What a running operation sends to be added is a stranger's.
@Suite struct AdditionFormatTests {
    private func graph(_ operations: [OperationDescription]) -> GraphDescription {
        var graph = GraphDescription(name: "added", operations: operations)
        graph.order = .submission
        return graph
    }

    private func operation(_ name: String) -> OperationDescription {
        OperationDescription(name: name, work: .nothing)
    }

    @Test func `operations are read as they were written`() throws {
        var graph = graph([operation("a"), operation("b")])
        graph.operations[1].dependencies = [DependencyDescription("a", .finished)]
        graph.queues = [QueueSettings(name: "q", maxConcurrentOperationCount: 3)]
        graph.keys = [KeySettings(name: "k", limit: 2)]
        graph.operations[0].work = .command(CommandDescription(arguments: ["a"]))
        graph.operations[0].resources = [.cpus(0.5)]
        graph.operations[0].enforcesResources = true

        let bytes = try StoreFormat.encode(graph, failFast: false)

        #expect(try StoreFormat.decodeAddition(bytes) == graph)
    }

    @Test func `an operation of another graph by its number is refused`() throws {
        var graph = graph([operation("a")])
        var dependency = DependencyDescription("4000000000/x")
        dependency.resolvedID = OperationID(graph: GraphID(rawValue: 4_000_000_000), index: 7)
        graph.operations[0].dependencies = [dependency]

        let bytes = try StoreFormat.encode(graph, failFast: false)

        let refusal = #expect(throws: Refusal.self) { try StoreFormat.decodeAddition(bytes) }
        #expect("\(refusal!)".contains("dependency.elsewhere"))
        // A store says so.
        #expect(try StoreFormat.decodeGraph(bytes).graph == graph)
    }

    @Test func `who added it is refused, because the coordinator knows`() throws {
        let bytes = try StoreFormat.encode(graph([operation("a")]), failFast: false, parent: 3)

        let refusal = #expect(throws: Refusal.self) { try StoreFormat.decodeAddition(bytes) }
        #expect("\(refusal!)".contains("graph.parent"))
    }

    @Test(arguments: [(3, true), (4, false)])
    func `so many operations are added at once and no more`(count: Int, isRead: Bool) throws {
        var limits = Limits()
        limits.additionOperations = 3
        let all = graph((0..<count).map { operation("a\($0)") })
        let bytes = try StoreFormat.encode(all, failFast: false)

        if isRead {
            #expect(try StoreFormat.decodeAddition(bytes, limits: limits) == all)
        } else {
            let refusal = Refusal.limitExceeded(
                limit: .additionOperations,
                value: 4,
                maximum: 3
            )
            #expect(throws: refusal) {
                try StoreFormat.decodeAddition(bytes, limits: limits)
            }
        }
    }

    /// A piece with a message of these bytes.
    private func piece(_ body: [UInt8]) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: body.count >> ($0 * 8)) } + body
    }

    @Test func `two million operations of two bytes are refused before one is built`() {
        let parts = Array(repeating: [0x1A, 0x00] as [UInt8], count: (2 << 20) - 8).joined()

        // The count is told: nobody looked for the work that the first of them lacks.
        let refusal = #expect(throws: Refusal.self) {
            try StoreFormat.decodeAddition(piece(Array(parts)))
        }
        #expect("\(refusal!)".contains("parts"), "\(refusal!)")
    }

    @Test(arguments: [1, 4])
    func `parts are counted in all pieces together`(pieces: Int) {
        // Arguments of a command: each takes two bytes here and a hundred when it is decoded.
        let count = (1 << 19) / pieces + 8
        let arguments = Array(repeating: [0x0A, 0x00] as [UInt8], count: count).joined()
        func field(_ tag: UInt8, _ bytes: [UInt8]) -> [UInt8] {
            var length = bytes.count
            var text = [tag]
            while length > 0x7F {
                text.append(UInt8(length & 0x7F) | 0x80)
                length >>= 7
            }
            return text + [UInt8(length)] + bytes
        }
        let operation = field(0x1A, field(0x0A, Array("a".utf8)) + field(0x6A, Array(arguments)))
        let bytes = Array((0..<pieces).map { _ in piece(operation) }.joined())

        let refusal = #expect(throws: Refusal.self) { try StoreFormat.decodeAddition(bytes) }
        #expect("\(refusal!)".contains("parts"), "\(refusal!)")
    }

    @Test func `bytes cut off anywhere are refused, never a trap`() throws {
        var one = operation("a")
        one.dependencies = [DependencyDescription("b")]
        let bytes = try StoreFormat.encode(graph([one, operation("b")]), failFast: false)

        for length in 1..<bytes.count {
            #expect(throws: Refusal.self) {
                try StoreFormat.decodeAddition(Array(bytes[..<length]))
            }
        }
    }

    @Test(arguments: 0..<5)
    func `ten thousand damaged additions of a seed are read or refused`(seed: UInt64) throws {
        var one = operation("a")
        one.dependencies = [DependencyDescription("b", .finished)]
        one.work = .command(CommandDescription(arguments: ["true"], environment: ["A": "b"]))
        let original = try StoreFormat.encode(graph([one, operation("b")]), failFast: false)
        var random = SeededGenerator(seed: seed)
        var refused = 0
        for _ in 0..<10_000 {
            var bytes = original
            for _ in 0...Int.random(in: 0..<3, using: &random) {
                let place = Int.random(in: bytes.indices, using: &random)
                bytes[place] = UInt8.random(in: 0...255, using: &random)
            }
            do throws(Refusal) {
                _ = try StoreFormat.decodeAddition(bytes)
            } catch {
                refused += 1
            }
        }
        #expect(refused > 1_000)
        #expect(refused < 10_000)
    }
}
