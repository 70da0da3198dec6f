import Foundation
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonSQLite
import Testing

/// `operon store`: what it says, and that it harms nothing.
@Suite struct StoreCommandTests {
    /// A store with a finished graph and one that is not.
    private func makeStore(_ workspace: Workspace) async throws -> String {
        let path = workspace.path("store.db")
        let store = SQLiteStore(path: path, newReign: Reign(rawValue: 1))
        _ = try await store.open()
        let graphs = [GraphID(rawValue: 0), GraphID(rawValue: 1)]
        var batch = StoreBatch(wall: WallTime(nanosecondsSince1970: 1))
        for graph in graphs {
            batch.records.append(.graphAdded(graph))
            batch.graphs.append(
                StoredContents(
                    graph: graph,
                    name: "g",
                    operationCount: 1,
                    body: [UInt8](repeating: 1, count: 100_000)
                )
            )
        }
        batch.records.append(.finished(OperationID(graph: graphs[0], index: 0), .succeeded))
        try await store.commit(batch, by: Epoch(rawValue: 1))
        await store.close()
        return path
    }

    @Test func `a sound store is said to be, copied, pruned and made smaller`() async throws {
        try await Workspace.run { workspace in
            let path = try await makeStore(workspace)
            let copy = workspace.path("copy.db")
            let calls: [([String], String)] = [
                (
                    ["check", path],
                    "\(path) has no problems: 2 graphs, 1 of them not finished, "
                        + "0 dropped graphs, opened 1 time\n"
                ),
                (["backup", path, copy], "copied \(path) to \(copy)\n"),
                (["prune", path, "--keep", "30d"], "\(path): 1 graph dropped\n"),
                (["prune", path, "--count", "0"], "\(path): 0 graphs dropped\n"),
                (
                    ["check", path],
                    "\(path) has no problems: 1 graph, 1 of them not finished, "
                        + "1 dropped graph, opened 1 time\n"
                ),
                (
                    ["check", copy],
                    "\(copy) has no problems: 2 graphs, 1 of them not finished, "
                        + "0 dropped graphs, opened 1 time\n"
                ),
            ]
            for (arguments, output) in calls {
                let ended = try await workspace.operon(["store"] + arguments)
                #expect(ended.errors == "" && ended.end == .exit(0), "\(arguments)")
                #expect(ended.output == output)
            }
            let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
            let ended = try await workspace.operon(["store", "vacuum", path])
            #expect(ended.end == .exit(0))
            #expect(ended.output.contains("\(size) bytes before"))
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count < size)
        }
    }

    @Test func `a store that all users can read is used with a warning`() async throws {
        try await Workspace.run { workspace in
            let path = workspace.path("graphs.db")
            for (mode, isWarned) in [(nil, false), (0o604, true), (0o640, false)] {
                if let mode { #expect(chmod(path, mode_t(mode)) == 0) }
                let up = try workspace.start("operon", ["up", "--store", path, "--slots", "1"])
                try await up.says("answers at")
                up.signal(SIGTERM)
                let errors = try await up.end().errors
                let warning = "all users can read the store \(path): chmod o= \(path)"
                #expect(errors.contains(warning) == isWarned, "\(errors)")
            }
        }
    }

    @Test func `a store that a coordinator has is left alone`() async throws {
        try await Workspace.run { workspace in
            let path = try await makeStore(workspace)
            let store = SQLiteStore(path: path, newReign: Reign(rawValue: 1))
            _ = try await store.open()
            let ended = try await workspace.operon(["store", "check", path])
            #expect(ended.end == .exit(8) && ended.output == "")
            #expect(ended.errors.contains("is held by another process"))
            await store.close()
        }
    }

    @Test func `what is wrong is a sentence and an exit code`() async throws {
        try await Workspace.run { workspace in
            let path = try await makeStore(workspace)
            let text = try workspace.write("text", "no store")
            let calls: [([String], Int32, String)] = [
                (["check", workspace.path("none")], 6, "There is no store at"),
                (["check", text], 1, "is not a sound store of operon"),
                (["backup", path, text], 1, "exists already"),
                (["prune", path], 2, "--keep 30d"),
                (["prune", path, "--keep", "soon"], 2, "a duration such as"),
                (["prune", path, "--count=-1"], 2, "negative"),
                (["check"], 2, "path"),
            ]
            for (arguments, code, words) in calls {
                let ended = try await workspace.operon(["store"] + arguments)
                #expect(ended.end == .exit(code), "\(arguments)")
                #expect(ended.output == "")
                #expect(ended.errors.contains(words), "\(arguments): \(ended.errors)")
            }
            #expect(!FileManager.default.fileExists(atPath: workspace.path("none")))
        }
    }
}
