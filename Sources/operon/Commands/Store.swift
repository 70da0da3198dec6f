import ArgumentParser
import FoundationEssentials
import OperonArguments
import OperonGraphFile
import OperonModel
import OperonPorts
import OperonRuntime
import OperonSQLite
import OperonTerminal

/// Maintains the store file of a coordinator that is not running.
struct Store: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Check, copy, prune or shrink the store of a coordinator.",
        discussion: """
            For a store that no coordinator has open. To copy the store of a running coordinator, \
            use operon backup.

            Exit codes: 0 success; 1 the store is damaged, or reading or writing failed; 2 the \
            command line was wrong, or a later version wrote the store; 6 there is no such store; \
            8 a coordinator has it open.
            """,
        subcommands: [Check.self, Backup.self, Vacuum.self, Prune.self]
    )

    struct PathArgument: ParsableArguments {
        @Argument(help: "The file of the store.", completion: .file())
        var path: String

        @Option(help: "text, json or quiet.")
        var output: OutputFormat = .text

        /// Prints a result: as JSON, or the sentence.
        func show(_ result: some Encodable, _ sentence: String) throws {
            let console = Console(format: output, environment: Environment.current)
            try console.show(result) { _ in [sentence] }
        }

        /// Opens the store, runs `body`, and closes the store in any case.
        func withStore(
            _ body: (SQLiteStore, StoredState) async throws -> Void
        ) async throws {
            guard FileManager.default.fileExists(atPath: path) else {
                throw Failure(ExitStatus.noSuchObject, "There is no store at “\(path)”.")
            }
            var options = SQLiteStore.Options()
            options.isMaintenance = true
            let store = SQLiteStore(path: path, options: options)
            do {
                let state = try await store.open()
                try await body(store, state)
                await store.close()
            } catch let error as StoreError {
                await store.close()
                throw Failure(Store.exitStatus(error), error.message)
            } catch {
                await store.close()
                throw error
            }
        }

        var bytes: Int { UserFile.byteCount(of: path) ?? 0 }
    }

    private static func exitStatus(_ error: StoreError) -> Int32 {
        switch error.code {
        case .held: ExitStatus.held
        case .newer: ExitStatus.usage
        case _: ExitStatus.failed
        }
    }

    fileprivate static func count(_ count: Int, _ one: String, _ many: String) -> String {
        count == 1 ? "1 \(one)" : "\(count) \(many)"
    }

    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Read a whole store and report problems."
        )

        private struct Checked: Encodable {
            var store: String
            var graphs: Int
            var unfinished: Int
            var dropped: Int
            /// How often it was opened.
            var opened: UInt32
        }

        @OptionGroup var store: PathArgument

        func run() async throws {
            try await store.withStore { opened, state in
                let problems = try await opened.check()
                guard problems.isEmpty else {
                    let list = problems.map { "\n  " + $0 }.joined()
                    throw Failure(
                        ExitStatus.failed,
                        "The store “\(store.path)” is damaged; replace it by a backup:\(list)"
                    )
                }
                let kept = state.graphs.count { !$0.isTombstone }
                let unfinished = state.graphs.count { $0.finishedAt == nil }
                let parts = [
                    Store.count(kept, "graph", "graphs"), "\(unfinished) of them not finished",
                    Store.count(state.graphs.count - kept, "dropped graph", "dropped graphs"),
                    "opened \(Store.count(Int(state.epoch.rawValue), "time", "times"))",
                ]
                let checked = Checked(
                    store: store.path,
                    graphs: kept,
                    unfinished: unfinished,
                    dropped: state.graphs.count - kept,
                    opened: state.epoch.rawValue
                )
                try store.show(
                    checked,
                    "\(store.path) has no problems: \(parts.joined(separator: ", "))"
                )
            }
        }
    }

    struct Backup: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "backup",
            abstract: "Copy a store to a new file.",
            discussion: """
                The copy counts as another store: workers that hold operations of the original \
                finish those before they work for the copy.
                """
        )

        @OptionGroup var store: PathArgument

        @Argument(help: "The file to create; it must not exist.", completion: .file())
        var target: String

        func run() async throws {
            try await store.withStore { opened, _ in
                try await Interruptible.run { [target] in try await opened.backup(to: target) }
                try store.show(
                    ["store": store.path, "copy": target],
                    "copied \(store.path) to \(target)"
                )
            }
        }
    }

    struct Vacuum: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "vacuum",
            abstract: "Return the space of dropped graphs to the disk.",
            discussion: "Needs as much free disk space as the store itself takes."
        )

        private struct Shrunk: Encodable {
            var store: String
            var bytesBefore: Int
            var bytesAfter: Int
        }

        @OptionGroup var store: PathArgument

        func run() async throws {
            let before = store.bytes
            try await store.withStore { opened, _ in try await opened.vacuum() }
            let after = store.bytes
            try store.show(
                Shrunk(store: store.path, bytesBefore: before, bytesAfter: after),
                "\(store.path): \(before) bytes before, \(after) after"
            )
        }
    }

    struct Prune: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "prune",
            abstract: "Drop finished graphs: keep only their names and outcomes.",
            discussion: """
                Graphs that an unfinished graph needs stay. The store uses the space again; \
                operon store vacuum returns it to the disk.
                """
        )

        private struct Pruned: Encodable {
            var store: String
            var dropped: Int
        }

        @OptionGroup var store: PathArgument

        @Option(
            help: ArgumentHelp(
                "Drop graphs that finished longer ago than this.",
                valueName: "30d"
            )
        )
        var keep: String?

        @Option(
            help: ArgumentHelp(
                "Keep only this many finished graphs, the newest.",
                valueName: "number"
            )
        )
        var count: Int?

        func validate() throws {
            guard keep != nil || count != nil else {
                throw ValidationError(
                    "say what to drop, for example --keep 30d, --count 1000, or both"
                )
            }
            if let count, count < 0 { throw ValidationError("--count must not be negative") }
            if keep != nil, age == nil {
                throw ValidationError("--keep must be a duration such as 12h or 30d")
            }
        }

        private var age: Duration? {
            guard let age = keep.flatMap({ Duration(graphFileText: $0) }), age >= .zero
            else { return nil }
            return age
        }

        func run() async throws {
            let before = age.map { SystemClock.wall() + (.zero - $0) }
            try await store.withStore { opened, state in
                let epoch = state.epoch
                let dropped = try await opened.prune(
                    finishedBefore: before,
                    keeping: count,
                    by: epoch
                )
                let workers = state.workers.map(\.incarnation)
                _ = try await opened.forget(workers: workers, by: epoch)
                try store.show(
                    Pruned(store: store.path, dropped: dropped),
                    "\(store.path): \(Store.count(dropped, "graph", "graphs")) dropped"
                )
            }
        }
    }
}
