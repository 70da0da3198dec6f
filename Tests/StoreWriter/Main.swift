import Foundation
import OperonModel
import OperonPorts
import OperonSQLite
import OperonTestKit

/// Writes a store until it is killed, or until its disk is full: `store-writer loop PATH SEED`,
/// `store-writer fill PATH SEED FILLER`. How many rows may wait for the tables depends on the seed.
@main struct StoreWriter {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 3, let seed = UInt64(arguments[3]) else {
            return say("usage: store-writer loop|fill PATH SEED [FILLER]")
        }
        let reign = Reign(rawValue: 1)
        var options = SQLiteStore.Options()
        options.pendingRowsMax = [1, 30, 300, options.pendingRowsMax][Int(seed % 4)]
        let store = SQLiteStore(path: arguments[2], newReign: reign, options: options)
        var workload = StoreWorkload(seed: seed, reign: reign)
        workload.open()
        _ = try await store.open()
        if arguments[1] == "loop" {
            try await loop(store, &workload)
        } else {
            try await fill(store, &workload, filler: arguments[4])
            await store.close()
            try await compare(arguments[2], workload)
        }
    }

    /// Says the number of each batch that is on the disk.
    static func loop(_ store: SQLiteStore, _ workload: inout StoreWorkload) async throws {
        var number = 0
        while true {
            try await store.commit(workload.next(), by: workload.image.epoch)
            number += 1
            if number.isMultiple(of: 3) {
                try await store.sync()
                say("synced \(number)")
            }
        }
    }

    /// Commits until no space is left, then deletes the filler and goes on.
    static func fill(
        _ store: SQLiteStore,
        _ workload: inout StoreWorkload,
        filler: String
    ) async throws {
        for number in 1... {
            let batch = workload.next()
            do {
                try await store.commit(batch, by: workload.image.epoch)
            } catch let error as StoreError where error.code == .full {
                say("full: \(error)")
                // The store may find some room that its own log took.
                if try await retry(batch, in: store) { continue }
                try FileManager.default.removeItem(atPath: filler)
                guard try await retry(batch, in: store) else { return say("still full") }
                for _ in 0..<20 {
                    let next = workload.next()
                    if try await retry(next, in: store) { continue }
                    guard try await retry(next, in: store) else { return say("full again") }
                }
                try await store.sync()
                return say("goes on after batch \(number)")
            }
        }
    }

    /// Whether there was room for it.
    static func retry(_ batch: StoreBatch, in store: SQLiteStore) async throws -> Bool {
        do {
            try await store.commit(batch, by: Epoch(rawValue: 1))
            return true
        } catch let error as StoreError where error.code == .full {
            return false
        }
    }

    static func compare(_ path: String, _ workload: StoreWorkload) async throws {
        let store = SQLiteStore(path: path)
        let found = try await store.open()
        let problems = try await store.check()
        let isEqual = found.graphs == workload.image.state.graphs
        say(isEqual && problems.isEmpty ? "equal" : "different \(problems)")
        await store.close()
    }

    static func say(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}
