import Foundation
import Glibc
import OperonModel
import OperonPorts
import OperonRuntime
import Testing

/// One run of a trigger source: what it reports, and what it says of itself.
struct SourceRun: Sendable {
    let occurrences: Reader<Occurrence>
    let statuses: Reader<TriggerSourceStatus>
    let task: Task<Void, any Error>

    /// - Parameter store: Returns when an occurrence is stored.
    init(
        _ source: any TriggerSource,
        store: @escaping @Sendable (Occurrence) async throws -> Void = { _ in }
    ) {
        let (occurrences, occurred) = AsyncStream<Occurrence>.makeStream()
        let (statuses, changed) = AsyncStream<TriggerSourceStatus>.makeStream()
        self.occurrences = Reader(occurrences)
        self.statuses = Reader(statuses)
        task = Task {
            defer {
                occurred.finish()
                changed.finish()
            }
            try await source.run(
                { occurrence in
                    occurred.yield(occurrence)
                    try await store(occurrence)
                },
                status: { changed.yield($0) }
            )
        }
    }

    func next() async throws -> Occurrence { try #require(await occurrences.next()) }

    func next(_ count: Int) async throws -> [Occurrence] {
        var found: [Occurrence] = []
        for _ in 0..<count { found.append(try await next()) }
        return found
    }

    /// Returns when the source observes.
    func observing() async throws {
        while try await status() != .observing {}
    }

    func status() async throws -> TriggerSourceStatus { try #require(await statuses.next()) }

    /// The next error that the source waits for an end of.
    func waiting() async throws -> TriggerSourceError {
        while true {
            if case .waiting(let error) = try await status() { return error }
        }
    }

    func refused() async throws -> TriggerSourceError {
        while true {
            if case .refused(let error) = try await status() { return error }
        }
    }

    func stop() async {
        task.cancel()
        _ = await task.result
    }

    /// Reads a stream, an element at a time.
    actor Reader<Element: Sendable> {
        private var iterator: AsyncStream<Element>.Iterator

        init(_ stream: AsyncStream<Element>) { iterator = stream.makeAsyncIterator() }

        /// `nil`: the source has ended.
        func next() async -> Element? {
            var copy = iterator
            defer { iterator = copy }
            return await copy.next(isolation: self)
        }
    }
}

extension Occurrence {
    /// The text or the number of a member of the event.
    subscript(name: String) -> String? {
        let event = try? JSONSerialization.jsonObject(with: Data(event))
        guard let value = (event as? [String: Any])?[name] else { return nil }
        return value as? String ?? (value as? NSNumber)?.stringValue
    }
}

extension TimeSource {
    /// The machine's clock, with pauses cut to a few milliseconds.
    static let impatient = TimeSource(
        now: TimeSource.system.now,
        wall: TimeSource.system.wall,
        sleep: { until in
            let soon = TimeSource.system.now() + .milliseconds(5)
            try await TimeSource.system.sleep(min(until, soon))
        },
        sleepUntilDate: TimeSource.system.sleepUntilDate
    )
}

/// A folder and the threads of sources, for the time of a test.
struct SourceFolder: Sendable {
    let path: String
    let threads: SourceThreads

    static func with(_ body: (SourceFolder) async throws -> Void) async throws {
        let folder = SourceFolder(
            path: ProcessSupport.temporaryFolder(),
            threads: try SourceThreads()
        )
        defer {
            folder.threads.stop()
            try? FileManager.default.removeItem(atPath: folder.path)
        }
        try await body(folder)
    }

    func at(_ name: String) -> String { "\(path)/\(name)" }

    func write(_ name: String, _ text: String = "x") throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: at(name)))
    }

    func rename(_ old: String, _ new: String) {
        #expect(Glibc.rename(at(old), at(new)) == 0)
    }

    func makeFolder(_ name: String) { #expect(mkdir(at(name), 0o700) == 0) }
}
