import Foundation
import OperonModel
import OperonPorts
import OperonSQLite
import OperonTestKit

/// Writes a store until it is killed, until its disk is full, or some batches until the disk fails:
/// `store-writer loop PATH SEED`, `store-writer fill PATH SEED FILLER`,
/// `store-writer some PATH SEED`. How many rows may wait for the tables depends on the seed.
@main struct StoreWriter {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 3, let seed = UInt64(arguments[3]) else {
            return say("usage: store-writer loop|fill|some PATH SEED [FILLER]")
        }
        let reign = Reign(rawValue: 1)
        var options = SQLiteStore.Options()
        options.pendingRowsMax = [1, 30, 300, options.pendingRowsMax][Int(seed % 4)]
        let store = SQLiteStore(path: arguments[2], newReign: reign, options: options)
        var workload = StoreWorkload(seed: seed, reign: reign)
        workload.open()
        do {
            _ = try await store.open()
        } catch {
            return say("not opened: \(error)")
        }
        if arguments[1] == "loop" {
            try await loop(store, &workload)
        } else if arguments[1] == "some" {
            await write(store, &workload)
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

    /// Says the number of each batch that is on the disk, and what fails. Then nothing else may
    /// succeed.
    static func write(_ store: SQLiteStore, _ workload: inout StoreWorkload) async {
        say("opened")
        let epoch = workload.image.epoch
        do {
            for number in 1...30 {
                try await store.commit(workload.next(), by: epoch)
                guard number.isMultiple(of: 3) else { continue }
                try await store.sync()
                say("synced \(number)")
            }
        } catch {
            say("failed: \(error)")
            if (try? await store.commit(workload.next(), by: epoch)) != nil { say("wrote again") }
            if (try? await store.sync()) != nil { say("synced again") }
        }
        await store.close()
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
