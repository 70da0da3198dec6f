import Foundation
import Testing

/// A file of this folder that has what commands print. `OPERON_BLESS=1` writes it anew.
struct Golden {
    private let name: String
    private(set) var text = ""

    init(_ name: String) { self.name = name }

    private var path: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("Golden/\(name)")
    }

    mutating func add(_ part: String) { text += part }

    /// A command line, what it said, and how it ended. It printed no data.
    mutating func add(
        refused line: String,
        _ ended: Ended,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(ended.output == "", "\(line)", sourceLocation: sourceLocation)
        add("$ operon \(line)\n\(ended.errors)[\(ended.end)]\n\n")
    }

    func check() throws {
        if ProcessInfo.processInfo.environment["OPERON_BLESS"] != nil {
            try text.write(to: path, atomically: true, encoding: .utf8)
        }
        let expected = try String(contentsOf: path, encoding: .utf8)
        let parts = zip(text.split(separator: "\n\n"), expected.split(separator: "\n\n"))
        for (part, golden) in parts { #expect(part == golden) }
        #expect(text == expected, "OPERON_BLESS=1 writes Golden/\(name) anew")
    }
}

extension String {
    /// Times that are different in each run; those of 2030 are not.
    var withoutTimes: String {
        replacing(/2[01][012]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/, with: "TIME")
    }
}
