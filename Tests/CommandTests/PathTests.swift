import Foundation
import Testing

/// Names are anybody's text, and must not become paths.
@Suite struct PathTests {
    private static let names = [
        "../../up", "..", ".", "/etc/passwd", "a/../../b", "./../c", "..\\..\\d", "~", "-rf",
        ".hidden", "a:b", "a b", "%2e%2e%2f", "．．／e", "con", "é/\u{202E}f", "$(touch g)",
        "`touch h`", "*", "\u{1F98A}", String(repeating: "n", count: 256),
        String(repeating: "../", count: 80) + "i",
    ]

    /// Every file below a folder, by its path in it.
    private static func files(in folder: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: folder).filter { path in
            var isFolder: ObjCBool = false
            let isThere = FileManager.default.fileExists(
                atPath: folder + "/" + path,
                isDirectory: &isFolder
            )
            return isThere && !isFolder.boolValue
        }
    }

    @Test(arguments: Place.allCases)
    func `whatever operations are called, their logs are files of the folder for logs`(
        place: Place
    ) async throws {
        try await Workspace.run { workspace in
            let encoder = JSONEncoder()
            encoder.outputFormatting = .withoutEscapingSlashes
            let lines = try Self.names.enumerated().map { index, name in
                let text = String(decoding: try encoder.encode(name), as: UTF8.self)
                return #"{"name": \#(text), "run": "echo \#(index)"}"#
            }
            let graph = lines.joined(separator: "\n") + "\n"
            let file = try workspace.write("graph.jsonl", graph)
            if place == .broker { _ = try workspace.startWorkers(1, slots: 2) }
            let logs = workspace.path("a/b/logs")
            let run = try workspace.startRun(file, on: place, ["--logs", logs])
            let ended = try await run.end()
            #expect(ended.end == .exit(0), "\(ended.errors)")

            let written = try FileManager.default.contentsOfDirectory(atPath: logs)
            #expect(written.count == Self.names.count)
            for name in written {
                let number = try #require(Int(name.prefix { $0.isNumber }))
                let text = try String(contentsOfFile: logs + "/" + name, encoding: .utf8)
                #expect(text == "\(number)\n")
                #expect(name.wholeMatch(of: /[0-9]+-[A-Za-z0-9_.-]*\.1\.log/) != nil, "\(name)")
            }
            // Nothing lies anywhere else.
            let all = try Self.files(in: workspace.directory).filter { !$0.hasPrefix("tmp/") }
            #expect(all.filter { !$0.hasPrefix("a/b/logs/") } == ["graph.jsonl"], "\(all)")
        }
    }
}
