import Foundation
import OperonRuntime
import Testing

/// Where others may write, only what this program made is written.
@Suite struct LogFolderTests {
    private let folder = FileManager.default.temporaryDirectory
        .appendingPathComponent("operon-log-folder-\(UUID().uuidString)")

    private func withFolder(_ body: (LogFolder) throws -> Void) throws {
        try FileManager.default.createDirectory(
            at: folder.appendingPathComponent("logs"),
            withIntermediateDirectories: true
        )
        defer {
            do {
                try FileManager.default.removeItem(at: folder)
            } catch {
                Issue.record(error)
            }
        }
        try body(try LogFolder(path: path("logs")))
    }

    private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    private func text(_ name: String) throws -> String {
        try String(contentsOfFile: path(name), encoding: .utf8)
    }

    @Test func `a link that was put there is replaced, and its target stays as it is`() throws {
        try withFolder { logs in
            try Data("mine".utf8).write(to: URL(fileURLWithPath: path("victim")))
            try FileManager.default.createSymbolicLink(
                atPath: path("logs/0-a.1.log"),
                withDestinationPath: path("victim")
            )
            try logs.replace("0-a.1.log", with: "one".utf8)
            try logs.append(Array(" two".utf8), to: "0-a.1.log")
            #expect(try text("victim") == "mine")
            #expect(try text("logs/0-a.1.log") == "one two")
        }
    }

    @Test func `a link that is put there while it is written is refused`() throws {
        try withFolder { logs in
            try Data("mine".utf8).write(to: URL(fileURLWithPath: path("victim")))
            try logs.replace("a.log", with: "one".utf8)
            try FileManager.default.removeItem(atPath: path("logs/a.log"))
            try FileManager.default.createSymbolicLink(
                atPath: path("logs/a.log"),
                withDestinationPath: path("victim")
            )
            #expect(throws: LogFolder.Failure.self) { try logs.append([1], to: "a.log") }
            try FileManager.default.removeItem(atPath: path("logs/a.log"))
            try FileManager.default.linkItem(atPath: path("victim"), toPath: path("logs/a.log"))
            #expect(throws: LogFolder.Failure.self) { try logs.append([1], to: "a.log") }
            #expect(try text("victim") == "mine")
        }
    }

    @Test func `the folder itself may be a link, and stays the one that was opened`() throws {
        try withFolder { _ in
            try FileManager.default.createSymbolicLink(
                atPath: path("link"),
                withDestinationPath: path("logs")
            )
            let logs = try LogFolder(path: path("link"))
            try FileManager.default.removeItem(atPath: path("link"))
            try logs.replace("a.log", with: "one".utf8)
            #expect(try text("logs/a.log") == "one")
        }
    }
}
