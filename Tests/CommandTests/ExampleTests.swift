import Foundation
import Testing

/// The examples do what their page says, wherever they run.
@Suite(.serialized) struct ExampleTests {
    private static let folder = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Examples/wordcount")

    /// The words of the text, counted by other means.
    private static func counts() throws -> [String] {
        let text = try String(
            contentsOf: folder.appendingPathComponent("text.txt"),
            encoding: .utf8
        )
        var counts: [String: Int] = [:]
        for word in text.split(whereSeparator: { !($0.isASCII && $0.isLetter) }) {
            counts[word.lowercased(), default: 0] += 1
        }
        return counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "\($0.key) \($0.value)" }
    }

    @Test(arguments: Place.allCases)
    func `the words of a text are counted through files`(place: Place) async throws {
        try await Workspace.run { workspace in
            for name in ["text.txt", "wordcount.yaml"] {
                try FileManager.default.copyItem(
                    atPath: Self.folder.appendingPathComponent(name).path,
                    toPath: workspace.path(name)
                )
            }
            let file = workspace.path("wordcount.yaml")
            let ended = try await workspace.run(file, on: place, ["--output", "json"])

            #expect(ended.end == .exit(0), "\(ended.errors)")
            try ended.report().expectSuccess(attempts: 1)
            #expect(workspace.lines(of: "out/counts.txt") == (try Self.counts()))
        }
    }

    @Test(arguments: Place.allCases)
    func `the words of a text are counted through inputs and outputs`(place: Place) async throws {
        try await Workspace.run { workspace in
            let file = Self.folder.appendingPathComponent("wordcount-data.yaml").path
            let options = ["--output", "json", "--logs", "logs"]
            let ended = try await workspace.run(file, on: place, options)

            #expect(ended.end == .exit(0), "\(ended.errors)")
            let report = try ended.report()
            report.expectSuccess(attempts: 1)
            let number = try #require(report.operations.firstIndex { $0.name == "result" })
            #expect(workspace.lines(of: "logs/\(number)-result.1.log") == (try Self.counts()))
        }
    }
}
