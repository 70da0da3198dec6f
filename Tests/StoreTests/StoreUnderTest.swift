import Foundation
import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Testing

@testable import OperonSQLite

/// The stores that one suite tries.
enum StoreKind: CaseIterable, Sendable {
    /// Of programs whose graphs end with their process.
    case memory
    /// Of simulations.
    case simulated
    case sqlite
    /// With tables that follow the journal at each commit, and not only at the end.
    case projected
}

/// A store that is opened again and again, in a folder of its own.
final class StoreUnderTest: Sendable {
    let kind: StoreKind
    let folder: URL
    let limits: Limits
    static let reign = Reign(rawValue: 0xABCD)
    private let memory: MemoryStore
    private let simulated: InMemoryStore

    init(_ kind: StoreKind, limits: Limits = Limits()) throws {
        self.kind = kind
        self.limits = limits
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-store-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        memory = MemoryStore(reign: Self.reign, limits: limits)
        simulated = InMemoryStore(reign: Self.reign, limits: limits)
    }

    /// To be called at the end of a test.
    func remove() { try? FileManager.default.removeItem(at: folder) }

    var path: String { folder.appendingPathComponent("store.db").path }

    /// What is in the folder, by name.
    var files: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted()
    }

    /// A store that is not open yet: each is another coordinator's.
    func store() -> any OperationStore {
        switch kind {
        case .memory: memory
        case .simulated: simulated
        case .sqlite: sqlite()
        case .projected: sqlite(pendingRowsMax: 1)
        }
    }

    func sqlite(pagesMax: Int? = nil, pendingRowsMax: Int? = nil) -> SQLiteStore {
        var options = SQLiteStore.Options()
        options.limits = limits
        options.pagesMax = pagesMax
        if let pendingRowsMax { options.pendingRowsMax = pendingRowsMax }
        return SQLiteStore(path: path, newReign: Self.reign, options: options)
    }
}

/// Names what differs.
func expectEqual(
    _ found: StoredState,
    _ expected: StoredState,
    _ comment: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(found.reign == expected.reign, comment, sourceLocation: sourceLocation)
    #expect(found.epoch == expected.epoch, comment, sourceLocation: sourceLocation)
    #expect(found.lastEvent == expected.lastEvent, comment, sourceLocation: sourceLocation)
    #expect(found.queues == expected.queues, comment, sourceLocation: sourceLocation)
    #expect(found.keys == expected.keys, comment, sourceLocation: sourceLocation)
    #expect(found.rates == expected.rates, comment, sourceLocation: sourceLocation)
    #expect(found.triggers == expected.triggers, comment, sourceLocation: sourceLocation)
    #expect(found.workers == expected.workers, comment, sourceLocation: sourceLocation)
    #expect(found.inFlight == expected.inFlight, comment, sourceLocation: sourceLocation)
    #expect(found.graphs.count == expected.graphs.count, comment, sourceLocation: sourceLocation)
    for (one, other) in zip(found.graphs, expected.graphs) where one != other {
        var (one, other) = (one, other)
        #expect(one.contents == other.contents, comment, sourceLocation: sourceLocation)
        #expect(one.operations == other.operations, comment, sourceLocation: sourceLocation)
        (one.contents, other.contents) = ([], [])
        (one.operations, other.operations) = ([], [])
        #expect(one == other, comment, sourceLocation: sourceLocation)
    }
}

extension StoredState {
    /// Whether they are the same but for their epochs.
    func holdsWhat(_ other: StoredState) -> Bool {
        graphs == other.graphs && queues == other.queues && inFlight == other.inFlight
            && keys == other.keys && rates == other.rates && triggers == other.triggers
            && workers == other.workers && lastEvent == other.lastEvent
    }
}

/// What is kept of each operation beside the state is what the image has.
func expectLookups(
    _ store: any OperationStore,
    _ workload: StoreWorkload,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    for id in workload.operations {
        let output = try await store.output(of: id)
        #expect(output == workload.image.output(of: id), sourceLocation: sourceLocation)
        let log = try await store.log(of: id)
        #expect(log == workload.image.log(of: id), sourceLocation: sourceLocation)
        let attempts = try await store.attempts(of: id)
        #expect(attempts == workload.image.attempts(of: id), sourceLocation: sourceLocation)
    }
    for graph in Set(workload.operations.map(\.graph)) {
        let indices = workload.operations.filter { $0.graph == graph }.map(\.index)
        let last = indices.max() ?? 0
        // All, a part, and none.
        for range in [0..<last + 1, last / 3..<last / 2 + 1, last + 1..<last + 1] {
            let found = try await store.attempts(of: graph, in: range)
            let expected = range.flatMap { index in
                let id = OperationID(graph: graph, index: index)
                return workload.image.attempts(of: id).map { attempt in
                    StoreChanges.Attempt(operation: id, attempt: attempt)
                }
            }
            #expect(found == expected, sourceLocation: sourceLocation)
        }
    }
    let events = try await store.events(after: 0, limit: .max)
    #expect(events == workload.image.events(after: 0, limit: .max), sourceLocation: sourceLocation)
}

extension Epoch {
    /// Of the coordinators that open a store one after the other.
    static let (first, second, third) = (
        Epoch(rawValue: 1), Epoch(rawValue: 2), Epoch(rawValue: 3)
    )
}

/// The error of a call that must fail.
func storeError(
    sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> Void
) async throws -> StoreError {
    do {
        try await body()
    } catch let error as StoreError {
        return error
    }
    return try #require(nil, "no StoreError was thrown", sourceLocation: sourceLocation)
}

func time(_ seconds: Int64) -> WallTime {
    WallTime(nanosecondsSince1970: seconds * 1_000_000_000)
}

func contents(_ graph: GraphID, count: Int = 1, needs: [GraphID] = []) -> StoredContents {
    StoredContents(
        graph: graph,
        name: "graph",
        operationCount: count,
        needs: needs,
        body: [1, 2, 3]
    )
}

func finished(
    _ graph: GraphID,
    _ index: UInt32 = 0,
    _ outcome: Outcome = .succeeded
) -> StoreRecord {
    .finished(OperationID(graph: graph, index: index), outcome)
}

/// Calls `body` with the database of a store that is closed.
func withDatabase<Value>(_ path: String, _ body: (Database) throws -> Value) throws -> Value {
    let database = try Database(path: path)
    let value = try body(database)
    try database.close()
    return value
}
