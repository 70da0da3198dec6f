import Foundation

/// Reads a ledger while operations write it.
package final class LedgerFollower {
    package private(set) var ledger = Ledger([])
    private let path: String
    private var offset: UInt64 = 0
    /// The beginning of a line whose end has not been written yet.
    private var partial: [UInt8] = []
    /// Attempts that have started and not ended, in no order.
    private var running: [Ledger.Run: Ledger.Entry] = [:]
    /// The place of the first end of each operation.
    private var firstEnds: [String: Int] = [:]
    private var lastStarted: [String: Int] = [:]

    package init(path: String) { self.path = path }

    /// Takes what has been written since.
    package func read() throws {
        // Nothing has been written if there is no such file.
        guard let file = FileHandle(forReadingAtPath: path) else { return }
        defer { file.closeFile() }
        try file.seek(toOffset: offset)
        let bytes = try file.readToEnd() ?? Data()
        offset += UInt64(bytes.count)
        partial += bytes
        guard let end = partial.lastIndex(of: UInt8(ascii: "\n")) else { return }
        let text = String(decoding: partial[...end], as: UTF8.self)
        partial.removeSubrange(...end)
        let new = Ledger(text: text)
        ledger.unreadable += new.unreadable
        for entry in new.entries { add(entry) }
    }

    private func add(_ entry: Ledger.Entry) {
        switch entry.kind {
        case .start:
            running[entry.run] = entry
            lastStarted[entry.operation] = max(
                lastStarted[entry.operation] ?? 0,
                entry.attempt
            )
        case .end:
            running[entry.run] = nil
            if firstEnds[entry.operation] == nil {
                firstEnds[entry.operation] = ledger.entries.count
            }
        }
        ledger.entries.append(entry)
    }

    /// How many entries there are.
    package var count: Int { ledger.entries.count }

    /// Attempts of this worker that have started and not ended, unless a later one has started.
    package func running(on worker: String) -> [Ledger.Entry] {
        running.values.filter { $0.worker == worker && !hasStartedAgain($0) }
            .sorted { $0.operation < $1.operation }
    }

    package func hasStartedAgain(_ entry: Ledger.Entry) -> Bool {
        lastStarted[entry.operation] ?? 0 > entry.attempt
    }

    package func hasEnded(_ entry: Ledger.Entry) -> Bool { running[entry.run] == nil }

    /// Whether this worker has started something since the ledger had so many entries.
    package func hasStarted(on worker: String, after place: Int) -> Bool {
        ledger.entries.dropFirst(place).contains { $0.kind == .start && $0.worker == worker }
    }

    /// Whether something has started at or after `time` whose dependency ended when the ledger had
    /// `place` entries already: no worker can have been given it before.
    package func hasStartedDependent(
        at time: Duration,
        of place: Int,
        _ dependencies: [String: [String]]
    ) -> Bool {
        ledger.entries.dropFirst(place).contains { entry in
            guard entry.kind == .start, entry.time >= time else { return false }
            return (dependencies[entry.operation] ?? []).contains {
                firstEnds[$0].map { $0 >= place } ?? false
            }
        }
    }

    /// Reads until this holds.
    ///
    /// - Returns: whether it does within the limit.
    package func wait(
        within limit: Duration,
        isolation: isolated (any Actor)? = #isolation,
        until isSatisfied: () async throws -> Bool
    ) async throws -> Bool {
        let deadline = ContinuousClock.now + limit
        while true {
            try read()
            if try await isSatisfied() { return true }
            guard ContinuousClock.now < deadline else { return false }
            // What an operation does gives no signal.
            try await Task.sleep(for: .milliseconds(10))
        }
    }
}
