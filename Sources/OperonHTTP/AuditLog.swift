import NIOPosix
package import OperonModel

/// The audit of a coordinator: who changed what, and who was refused.
///
/// A change has an entry on the disk before it is made, and another one with its result before it
/// is answered. So a coordinator that is killed loses no change, at most a result. If an entry
/// cannot be written, the change is refused. Refusals are written too, but only so many a minute:
/// whoever has no token must not be able to fill the disk.
package actor AuditLog {
    /// The most entries a minute about refusals of the same name, or of clients without a name.
    package static let refusalsPerMinute = 10

    private struct Waiting {
        let entry: AuditEntry
        let isSynced: Bool
        let continuation: CheckedContinuation<Result<UInt64, AuditError>, Never>
    }

    /// Refusals of the same name in the same minute.
    private struct Refusals {
        var start: WallTime
        var count = 0
    }

    private let files: AuditFiles
    private let wall: @Sendable () -> WallTime
    private var waiting: [Waiting] = []
    private var isWriting = false
    private var refusals: [String: Refusals] = [:]

    /// What was noticed when the files were opened, as sentences for the log.
    package nonisolated var remarks: [String] { files.remarks }

    /// Opens the audit, and writes that the coordinator has started. Blocks.
    ///
    /// - Parameters:
    ///   - folder: Created if there is none, for this user alone.
    ///   - keep: How long entries are kept; `nil`: until there are too many.
    ///   - version: Of this program, for the entry.
    package init(
        folder: String,
        keep: Duration?,
        version: String,
        wall: @escaping @Sendable () -> WallTime
    ) throws(AuditError) {
        var bounds = AuditBounds()
        bounds.keep = keep
        try self.init(folder: folder, bounds, version: version, wall: wall)
    }

    package init(
        folder: String,
        _ bounds: AuditBounds,
        version: String,
        wall: @escaping @Sendable () -> WallTime
    ) throws(AuditError) {
        files = try AuditFiles(folder: folder, bounds: bounds)
        self.wall = wall
        let now = wall()
        var entries: [AuditEntry] = []
        if files.tornBytes > 0 {
            var torn = AuditEntry(.torn, at: now)
            torn.count = files.tornBytes
            entries.append(torn)
        }
        var started = AuditEntry(.started, at: now)
        started.detail = version
        entries.append(started)
        _ = try files.append(entries, at: now, isSynced: true).get()
    }

    /// Writes an entry, after those that came before it, and returns its number.
    ///
    /// - Parameter isSynced: Whether it must be on the disk before this returns.
    package func record(
        _ entry: AuditEntry,
        isSynced: Bool
    ) async throws(AuditError) -> UInt64 {
        let result = await withCheckedContinuation { continuation in
            waiting.append(
                Waiting(entry: entry, isSynced: isSynced, continuation: continuation)
            )
            guard !isWriting else { return }
            isWriting = true
            Task { await write() }
        }
        return try result.get()
    }

    /// Entries that come while others are written are written together.
    private func write() async {
        while !waiting.isEmpty {
            let batch = waiting
            waiting = []
            let (files, now) = (files, wall())
            let result: Result<[UInt64], AuditError>
            do {
                result = try await NIOThreadPool.singleton.runIfActive {
                    files.append(
                        batch.map(\.entry),
                        at: now,
                        isSynced: batch.contains { $0.isSynced }
                    )
                }
            } catch {
                result = .failure(AuditError(description: "The program ends"))
            }
            for (place, waiting) in batch.enumerated() {
                waiting.continuation.resume(returning: result.map { $0[place] })
            }
        }
        isWriting = false
    }

    /// Writes that a request was refused, or only counts it if there were many.
    package func refuse(_ entry: AuditEntry) async throws(AuditError) {
        let now = wall()
        let name = entry.by ?? ""
        try await summarize(at: now)
        var bucket = refusals[name] ?? Refusals(start: now)
        bucket.count += 1
        refusals[name] = bucket
        guard bucket.count <= Self.refusalsPerMinute else { return }
        _ = try await record(entry, isSynced: false)
    }

    /// Writes how many refusals had no entry in minutes that are over.
    private func summarize(at now: WallTime) async throws(AuditError) {
        // In the order of names, so that the entries come in an order.
        for name in refusals.keys.sorted() {
            guard let bucket = refusals[name], now - bucket.start >= .seconds(60) else { continue }
            refusals[name] = nil
            guard bucket.count > Self.refusalsPerMinute else { continue }
            var entry = AuditEntry(.refusals, at: now)
            entry.by = name.isEmpty ? nil : name
            entry.count = bucket.count - Self.refusalsPerMinute
            _ = try await record(entry, isSynced: false)
        }
    }

    // MARK: - Reading

    package func page(_ query: AuditQuery) async throws -> AuditPage {
        try await summarize(at: wall())
        let files = files
        return try await NIOThreadPool.singleton.runIfActive { try files.page(query) }
    }

    package func check() async throws -> AuditCheckView {
        let files = files
        return try await NIOThreadPool.singleton.runIfActive { try files.check() }
    }
}
