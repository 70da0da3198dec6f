import Foundation
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonSQLite
import OperonTestKit
import Testing

/// A disk that fails one call. `scripts/lib/failing_disk.c` is loaded into the program that writes.
@Suite struct FailingDiskTests {
    private static let seed: UInt64 = 3

    private struct Run {
        let lines: [String]
        /// Calls that change or sync a file of the store.
        let calls: Int
        /// Those after the one that failed.
        let after: Int

        /// The last batch that is said to be on the disk.
        var synced: Int {
            lines.compactMap { line in
                line.hasPrefix("synced ") ? Int(line.dropFirst("synced ".count)) : nil
            }.max() ?? 0
        }
    }

    private func write(
        _ subject: StoreUnderTest,
        failing call: Int,
        _ library: String
    ) async throws -> Run {
        let ended = try await Program(
            "store-writer",
            ["some", subject.path, "\(Self.seed)"],
            environment: [
                "LD_PRELOAD": library, "FAILING_DISK": subject.path, "FAILING_CALL": "\(call)",
                "SWIFT_BACKTRACE": "enable=no",
            ],
            directory: "/"
        ).end()
        #expect(ended.end == .exit(0), "call \(call): \(ended.errors)")
        let words = ended.errors.split(separator: "\n").last?.split(separator: " ") ?? []
        return Run(
            lines: ended.output.split(separator: "\n").map(String.init),
            calls: words.count == 4 ? Int(words[1]) ?? 0 : 0,
            after: words.count == 4 ? Int(words[3]) ?? 0 : 0
        )
    }

    @Test func `whichever call fails, nothing is written after it, and what was synced is there`()
        async throws
    {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-disk-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let library = folder.appendingPathComponent("failing_disk.so").path
        let source = URL(fileURLWithPath: #filePath)
            .appendingPathComponent("../../../scripts/lib/failing_disk.c").standardized.path
        // The toolchain of Swift has it.
        try await SystemTool.run("clang", "-O2", "-shared", "-fPIC", "-o", library, source)

        let whole = try StoreUnderTest(.sqlite)
        let all = try await write(whole, failing: 0, library)
        whole.remove()
        #expect(all.synced == 30 && all.calls > 30, "\(all)")
        for call in 1...all.calls {
            let subject = try StoreUnderTest(.sqlite)
            defer { subject.remove() }
            let run = try await write(subject, failing: call, library)
            try await check(run, failing: call, subject)
        }
    }

    private func check(_ run: Run, failing call: Int, _ subject: StoreUnderTest) async throws {
        if run.lines.first == "opened" {
            let mayGoOn = run.synced == 30
            #expect(mayGoOn || run.lines.last?.hasPrefix("failed: ") == true, "\(call): \(run)")
            if !mayGoOn { #expect(run.after == 0, "call \(call): \(run)") }
        } else {
            #expect(run.lines.first?.hasPrefix("not opened: ") == true, "call \(call): \(run)")
        }
        let store = SQLiteStore(path: subject.path, newReign: StoreUnderTest.reign)
        let state = try await store.open()
        #expect(try await store.check().isEmpty)
        await store.close()
        var workload = StoreWorkload(seed: Self.seed, reign: Reign(rawValue: 1))
        workload.open()
        for _ in 0..<run.synced { _ = workload.next() }
        var isFound = run.lines.first != "opened" || workload.image.state.holdsWhat(state)
        for _ in run.synced..<30 where !isFound {
            _ = workload.next()
            isFound =
                workload.image.state.lastEvent == state.lastEvent
                && workload.image.state.holdsWhat(state)
        }
        #expect(isFound, "call \(call): neither batch \(run.synced) nor one of the next")
    }
}
