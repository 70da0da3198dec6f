import ArgumentParser
import FoundationEssentials
import Glibc
import OperonModel
import OperonPorts
import OperonSQLite

/// What keeping an operation costs, and how long a coordinator takes to know again. One JSON
/// object a line.
@main
struct StoreBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store-benchmark",
        abstract: "Write operations to a store on a disk, and load them again."
    )

    @Argument(help: "The file to make, with others beside it; it must not exist.")
    var path: String

    @Option(help: "Operations of the graph.")
    var operations = 1_000_000

    @Option(help: "Operations that are kept together, at each of grant, start and end.")
    var batch = 500

    @Option(help: "Commits for each wait for the disk; 0: it is waited for at the end only.")
    var sync = 4

    @Option(help: "Bytes of the output that each operation leaves.")
    var output = 0

    func run() async throws {
        let graph = GraphID(rawValue: 0)
        let store = SQLiteStore(path: path)
        let first = try await store.open().epoch
        let clock = ContinuousClock()
        // About what the description of a short command takes.
        let contents = StoredContents(
            graph: graph,
            name: "benchmark",
            operationCount: operations,
            body: [UInt8](repeating: 0x61, count: operations * 100)
        )
        var submission = StoreBatch(wall: wall(0), records: [.graphAdded(graph)])
        submission.graphs = [contents]
        let submitted = try await clock.measure {
            try await store.commit(submission, by: first)
            try await store.sync()
        }
        await store.close()
        say("submit", ["seconds": submitted.seconds, "fileBytes": Double(fileBytes)])

        try await load("loadWaiting")
        let again = SQLiteStore(path: path)
        let epoch = try await again.open().epoch
        let before = fileBytes
        let ran = try await clock.measure { try await write(graph, epoch, to: again) }
        await again.close()
        say(
            "run",
            [
                "seconds": ran.seconds,
                "microsecondsPerOperation": ran.seconds * 1e6 / Double(operations),
                "bytesPerOperation": Double(fileBytes - before) / Double(operations),
            ]
        )
        try await load("loadFinished")
    }

    /// Every operation granted, started and finished, each a commit apart.
    private func write(_ graph: GraphID, _ epoch: Epoch, to store: SQLiteStore) async throws {
        var commits = 0
        var first = 0
        while first < operations {
            let group = first..<min(first + batch, operations)
            for step in 0..<3 {
                try await store.commit(records(step, group, graph, epoch), by: epoch)
                commits += 1
                if sync > 0, commits.isMultiple(of: sync) { try await store.sync() }
            }
            first = group.upperBound
        }
        try await store.sync()
    }

    private func records(
        _ step: Int,
        _ group: Range<Int>,
        _ graph: GraphID,
        _ epoch: Epoch
    ) -> StoreBatch {
        let now = wall(Int64(group.lowerBound * 3 + step))
        var batch = StoreBatch(wall: now)
        for index in group {
            let id = OperationID(graph: graph, index: UInt32(index))
            let attempt = AttemptID(epoch: epoch, number: UInt64(index + 1))
            switch step {
            case 0:
                let worker = Incarnation(rawValue: 0x1234_5678_9ABC_DEF0)
                batch.records.append(.granted(attempt, id, ordinal: 1, to: worker))
            case 1: batch.records.append(.started(attempt, id))
            case _:
                batch.records.append(.finished(id, .succeeded))
                guard output > 0 else { continue }
                batch.results.append(
                    StoredResult(
                        operation: id,
                        attempt: attempt,
                        output: Payload(bytes: [UInt8](repeating: 0x62, count: output)),
                        log: .empty,
                        startedAt: nil,
                        endedAt: now
                    )
                )
            }
        }
        return batch
    }

    private func load(_ name: String) async throws {
        let store = SQLiteStore(path: path)
        var state: StoredState?
        let took = try await ContinuousClock().measure { state = try await store.open() }
        await store.close()
        let rows = state?.graphs.reduce(0) { $0 + $1.operations.count } ?? 0
        say(name, ["seconds": took.seconds, "rows": Double(rows)])
    }

    private func wall(_ step: Int64) -> WallTime {
        WallTime(nanosecondsSince1970: 1_700_000_000_000_000_000 + step * 1_000_000)
    }

    private var fileBytes: Int {
        var facts = stat()
        return unsafe stat(path, &facts) == 0 ? Int(facts.st_size) : 0
    }

    private func say(_ name: String, _ values: KeyValuePairs<String, Double>) {
        let fields = values.map { "\"\($0.key)\": \($0.value)" }.joined(separator: ", ")
        print("{\"\(name)\": {\(fields)}}")
    }
}
