import OperonModel
import Testing

@testable import OperonRuntime

struct GraphCatalogTests {
    private var catalog = GraphCatalog(limits: Limits(), hasStore: false)

    private mutating func append(_ name: String, _ operations: String...) {
        let graph = GraphDescription(
            name: name,
            operations: operations.map { OperationDescription(name: $0, work: .nothing) }
        )
        let submission = GraphCatalog.Submission(
            submitter: "ann",
            submittedAt: WallTime(nanosecondsSince1970: 1)
        )
        catalog.append(name, GraphContents(graph, limits: Limits()), submission)
    }

    private mutating func keepKey(_ key: String, _ graph: UInt32, isAddition: Bool = false) {
        var kept = StoredContents(
            graph: id(graph),
            name: "",
            first: 0,
            operationCount: 0,
            body: []
        )
        kept.submitter = "ann"
        kept.idempotencyKey = key
        catalog.keepKey(of: kept, ContentHash(of: [1]), isAddition: isAddition)
    }

    private func use(_ key: String, addedTo graph: GraphID? = nil) -> GraphID? {
        catalog.use(of: key, by: "ann", addedTo: graph)?.graph
    }

    private func id(_ number: UInt32) -> GraphID { GraphID(rawValue: number) }

    private mutating func drop(_ number: UInt32) {
        catalog.drop(id(number), OutcomeRuns(repeating: .succeeded, count: 1))
    }

    @Test mutating func `of a dropped graph the name stays, and its key may be used again`() {
        for name in ["a", "b", "a", "c"] { append(name) }
        keepKey("key", 2)
        keepKey("other", 3)
        drop(1)
        drop(2)

        #expect(catalog.keptGraphs == [id(0), id(3)])
        #expect(catalog.isDropped(id(2)) && catalog.name(of: id(2)) == "a")
        #expect(catalog.submission(of: id(2)).submitter.isEmpty)
        #expect(catalog.submission(of: id(0)).submitter == "ann")
        // The newest of a name, dropped or not.
        #expect(catalog.find("a") == id(2) && catalog.find("b") == id(1))
        #expect(use("key") == nil && use("other") == id(3))
        #expect(catalog.use(of: "other", by: "bob") == nil)
    }

    @Test mutating func `the latest is the newest that is kept`() {
        #expect(catalog.find("@latest") == nil)
        catalog.append(droppedNamed: "old", OutcomeRuns())
        #expect(catalog.find("@latest") == nil && catalog.find("0") == id(0))
        append("a")
        append("b")
        drop(2)
        #expect(catalog.find("@latest") == id(1))
        #expect(catalog.count == 3 && catalog.find("3") == nil)
    }

    @Test mutating func `a key that was used for a newer graph stays with that`() {
        for number: UInt32 in 0..<2 {
            append("a")
            keepKey("key", number)
        }
        drop(0)
        #expect(use("key") == id(1))
    }

    @Test mutating func `of the keys of additions the most recent stay`() {
        append("a")
        for number in 0...catalog.limits.additionKeys {
            keepKey("key\(number)", 0, isAddition: true)
        }
        #expect(use("key0", addedTo: id(0)) == nil && use("key1", addedTo: id(0)) == id(0))
        #expect(use("key1") == nil)
    }

    @Test mutating func `an operation of another graph is found as long as its outcome is kept`() {
        append("first", "a", "b")
        append("second", "a")
        let other = OperationID(graph: id(0), index: 1)
        for name in ["first/b", "0/b", "0/1", "0/1/b"] {
            #expect(catalog.resolve(name, in: id(1)) == other, "\(name)")
        }
        #expect(catalog.resolve("a", in: id(1)) == OperationID(graph: id(1), index: 0))
        for name in ["first/c", "0/2", "third/a", "b"] {
            #expect(catalog.resolve(name, in: id(1)) == nil, "\(name)")
        }
        catalog.drop(id(0), OutcomeRuns(repeating: .succeeded, count: 2))
        #expect(catalog.resolve("first/b", in: id(1)) == nil)
        #expect(catalog.resolve("first/1/b", in: id(1)) == other)
        #expect(catalog.resolve("0/1", in: id(1)) == other)
        #expect(catalog.resolve("0/2", in: id(1)) == nil)
        #expect(catalog.hasDroppedOutput(other))
    }

    @Test mutating func `the time at which an operation finished is kept until it runs again`() {
        append("a", "one", "two")
        let time = WallTime(nanosecondsSince1970: 7)
        catalog.finished(OperationID(graph: id(0), index: 1), at: time)
        #expect(catalog[id(0)].finishTime(of: 1) == time)
        #expect(catalog[id(0)].finishTime(of: 0) == nil)
        catalog.reopened(OperationID(graph: id(0), index: 1))
        #expect(catalog[id(0)].finishTime(of: 1) == nil)
    }
}
