import OperonCore
import OperonModel
import OperonPorts
import OperonWire
import Testing

@testable import OperonRuntime

/// How long the outputs of elements are kept that are added to a group while the graph runs.
@Suite struct ElementOutputTests {
    /// `list`, what adds elements of `render`, the group, and operations that take their outputs.
    private static func graph(_ takers: Int) -> GraphDescription {
        let list = command("list")
        var adding = OperationDescription(
            name: "render.forEach",
            work: .registered(kind: Work.forEachKind, input: .empty)
        )
        adding.dependencies = [DependencyDescription("list", .succeeded)]
        var group = OperationDescription(name: "render", work: .nothing)
        group.dependencies = [DependencyDescription("render.forEach")]
        let all = (0..<takers).map { number in
            var taker = command("all\(number)")
            var dependency = DependencyDescription("render")
            dependency.takesElements = true
            taker.dependencies = [dependency]
            return taker
        }
        return GraphDescription(name: "g", operations: [list, adding, group] + all)
    }

    private static func command(_ name: String) -> OperationDescription {
        OperationDescription(name: name, work: .command(CommandDescription(arguments: ["true"])))
    }

    private static func stored(_ graph: GraphDescription) throws -> [UInt8] {
        try StoreFormat.encode(graph, failFast: false)
    }

    private static let elements = ["b", "a c"].map { command("render[\($0)]") }

    private static func add(
        _ elements: [OperationDescription],
        to contents: inout GraphContents
    ) throws {
        let body = try stored(GraphDescription(name: "elements", operations: elements))
        try contents.append(elements, body, by: 1)
    }

    private static let output = Payload(bytes: Array("1".utf8))

    /// The graph as it is in memory, or as a store has kept it.
    private static func contents(_ takers: Int, isStored: Bool) throws -> GraphContents {
        let graph = graph(takers)
        guard isStored else { return GraphContents(graph, limits: Limits()) }
        var operations = StoredOperations()
        try operations.append(stored(graph))
        let wanting = (3..<3 + takers).map { UInt32($0) }
        return GraphContents(name: "g", stored: operations, wanting: wanting, limits: Limits())
    }

    @Test(arguments: [false, true])
    func `they are kept until the last operation that takes them has ended`(isStored: Bool) throws {
        var contents = try Self.contents(2, isStored: isStored)
        try Self.add(Self.elements, to: &contents)
        #expect(Array(contents.elements(of: 2)) == [5, 6])
        contents.keep(Self.output, of: 5)
        #expect(contents.hasKept(5) && contents.isWanted(6))

        contents.finished(3..<4, at: nil)
        #expect(contents.hasKept(5))
        contents.finished(4..<5, at: nil)
        #expect(!contents.hasKept(5) && !contents.isWanted(6))

        // It is retried, and takes them again.
        contents.reopened(4)
        contents.keep(Self.output, of: 6)
        #expect(contents.hasKept(6))
        contents.finished(4..<5, at: nil)
        #expect(!contents.hasKept(6))
    }

    @Test func `nobody takes those of a group that only others wait for`() throws {
        var contents = try Self.contents(0, isStored: false)
        try Self.add(Self.elements, to: &contents)
        #expect(!contents.isWanted(3))
        contents.keep(Self.output, of: 3)
        #expect(!contents.hasKept(3))
    }

    @Test func `an element that somebody else takes, too, stays for that one`() throws {
        var contents = try Self.contents(1, isStored: false)
        try Self.add(Self.elements, to: &contents)
        var other = Self.command("other")
        other.dependencies = [DependencyDescription("render[b]")]
        try contents.append([other], Self.stored(GraphDescription(name: "", operations: [other])))
        contents.keep(Self.output, of: 4)
        contents.keep(Self.output, of: 5)
        contents.finished(3..<4, at: nil)
        #expect(contents.hasKept(4) && !contents.hasKept(5))
        contents.finished(6..<7, at: nil)
        #expect(!contents.hasKept(4))
    }

    @Test func `a restored graph counts the same`() throws {
        let graph = Self.graph(2)
        var operations = StoredOperations()
        let header = try operations.append(Self.stored(graph))
        try operations.append(
            Self.stored(GraphDescription(name: "elements", operations: Self.elements))
        )
        var contents = GraphContents(
            name: "g",
            stored: operations,
            wanting: [],
            limits: Limits()
        )
        contents.adopt(5..<7, by: 1)
        var assembly = GraphAssembly(
            name: header.name,
            queues: header.queues,
            keys: header.keys,
            operationCount: 5
        )
        try contents.assemble(&assembly, 5)
        contents.countConsumers(from: 5)
        #expect(contents.isWanted(5) && contents.isWanted(6))
        contents.finished(3..<5, at: nil)
        #expect(!contents.isWanted(5) && !contents.isWanted(6))
    }

    @Test func `elements whose outputs could not be sent are refused`() throws {
        var limits = Limits()
        limits.inputListBytes = 200
        let contents = try Self.contents(1, isStored: false)
        try contents.check(Self.elements, of: 2, limits)
        #expect(throws: Refusal.self) {
            try contents.check(Self.elements + Self.elements, of: 2, limits)
        }
        // Nobody takes them.
        let others = try Self.contents(0, isStored: false)
        try others.check(Self.elements + Self.elements, of: 2, limits)
    }

    @Test func `an operation cannot take those of another graph`() throws {
        var catalog = GraphCatalog(limits: Limits(), hasStore: true)
        for name in ["own", "other"] {
            let contents = GraphContents(Self.graph(0), limits: Limits())
            catalog.append(name, contents, GraphCatalog.Submission())
        }
        let held = HeldAttempt(
            attempt: AttemptID(epoch: Epoch(rawValue: 1), number: 1),
            operation: OperationID(graph: GraphID(rawValue: 0), index: 0)
        )
        func request(_ name: String, _ number: UInt64) throws -> AdditionRequest {
            var taker = Self.command("taker")
            var dependency = DependencyDescription(name)
            dependency.takesElements = true
            taker.dependencies = [dependency]
            let added = GraphDescription(name: "added", operations: [taker])
            return AdditionRequest(number: number, operations: try Self.stored(added))
        }
        let refusal = #expect(throws: Refusal.self) {
            _ = try catalog.read(try request("other/render", 1), of: held)
        }
        #expect("\(refusal!)".contains("are those of another graph"))
        #expect(try catalog.read(try request("render", 2), of: held).operations.count == 1)
    }
}
