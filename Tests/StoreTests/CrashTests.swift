import Foundation
import Glibc
import OperonModel
import OperonPorts
import OperonSQLite
import OperonTestKit
import Testing

/// Stores of processes that die, or whose disk is full.
@Suite struct CrashTests {
    private struct Failure: Error {
        let what: String
    }

    /// The program that writes stores, built beside the tests.
    private func program() throws -> URL {
        let own = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        let places = [own] + Bundle.allBundles.map(\.bundleURL)
        for folder in places.flatMap({ [$0, $0.deletingLastPathComponent()] }) {
            let url = folder.appendingPathComponent("store-writer")
            if FileManager.default.isExecutableFile(atPath: url.path) { return url }
        }
        throw Failure(what: "no store-writer beside the tests: swift build --build-tests makes it")
    }

    private func start(_ url: URL, _ arguments: [String]) throws -> (Process, AsyncStream<String>) {
        let process = Process()
        process.executableURL = url
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment
        process.environment?["SWIFT_BACKTRACE"] = "enable=no"
        let pipe = Pipe()
        process.standardOutput = pipe
        let lines = Lines(pipe.fileHandleForReading).stream
        try process.run()
        return (process, lines)
    }

    /// The lines that a process writes, as they come.
    private final class Lines: @unchecked Sendable {
        let stream: AsyncStream<String>
        /// Of a line that has not ended. Only touched by the handler, which is called in turn.
        private var rest: [UInt8] = []

        init(_ handle: FileHandle) {
            let (stream, continuation) = AsyncStream<String>.makeStream()
            self.stream = stream
            handle.readabilityHandler = { handle in
                let data = handle.availableData
                guard !data.isEmpty else {
                    handle.readabilityHandler = nil
                    return continuation.finish()
                }
                self.rest += data
                while let end = self.rest.firstIndex(of: UInt8(ascii: "\n")) {
                    continuation.yield(String(decoding: self.rest[..<end], as: UTF8.self))
                    self.rest.removeFirst(end + 1)
                }
            }
        }
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `what a killed process had synced is there, and no batch is there in part`(
        seed: UInt64
    ) async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let (process, output) = try start(program(), ["loop", subject.path, "\(seed)"])
        var synced = 0
        for await line in output {
            synced = Int(line.split(separator: " ").last ?? "") ?? synced
            if synced >= Int(seed) * 12 { break }
        }
        kill(process.processIdentifier, SIGKILL)
        // What it said before it died counts as well.
        for await line in output {
            synced = Int(line.split(separator: " ").last ?? "") ?? synced
        }
        process.waitUntilExit()
        #expect(synced >= Int(seed) * 12)

        let store = SQLiteStore(path: subject.path, newReign: StoreUnderTest.reign)
        let state = try await store.open()
        #expect(state.epoch == Epoch(rawValue: 2))
        #expect(try await store.check().isEmpty)
        await store.close()
        var workload = StoreWorkload(seed: seed, reign: Reign(rawValue: 1))
        workload.open()
        for _ in 0..<synced { _ = workload.next() }
        var isFound = workload.image.state.holdsWhat(state)
        for _ in 0..<5_000 where !isFound {
            _ = workload.next()
            isFound =
                workload.image.state.lastEvent == state.lastEvent
                && workload.image.state.holdsWhat(state)
        }
        #expect(isFound, "neither batch \(synced) nor one of the next")
    }

    /// A file system of two mebibytes needs the right to mount one.
    @Test(.enabled(if: geteuid() == 0, "only root may mount a file system"))
    func `a full disk refuses a batch whole, and takes it when there is room`() async throws {
        let subject = try StoreUnderTest(.sqlite)
        defer { subject.remove() }
        let script = """
            mount -t tmpfs -o size=2m tmpfs "$1" || { echo "cannot mount"; exit 0; }
            head -c 1200k /dev/zero > "$1/filler"
            exec "$0" fill "$1/store.db" 3 "$1/filler"
            """
        let (process, output) = try start(
            URL(fileURLWithPath: "/usr/bin/env"),
            ["unshare", "-m", "sh", "-c", script, try program().path, subject.folder.path]
        )
        var lines: [String] = []
        for await line in output { lines.append(line) }
        process.waitUntilExit()
        // A container may have no right to do so either.
        guard lines != ["cannot mount"] else { return }
        #expect(lines.first?.hasPrefix("full: The disk that holds") == true, "\(lines)")
        #expect(lines.dropLast().last?.hasPrefix("goes on after batch") == true, "\(lines)")
        #expect(lines.last == "equal", "\(lines)")
    }
}
