import Foundation
import OperonGraphFile
import OperonModel
import Testing

/// Files and texts for the tests.
enum Fixture {
    static func path(_ name: String) -> String {
        Bundle.module.resourceURL?.appendingPathComponent("Fixtures/" + name).path ?? name
    }

    static func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: path(name))))
    }

    static func read(
        _ text: String,
        _ file: String,
        _ options: GraphFileOptions = GraphFileOptions(directory: "/graphs")
    ) throws(GraphFileError) -> GraphFile {
        try GraphFile.read(bytes: Array(text.utf8), file: file, options: options)
    }

    /// What is wrong with a text; an empty list if it is accepted.
    static func problems(
        _ text: String,
        _ file: String,
        _ limits: Limits = Limits()
    ) -> [GraphFileError.Problem] {
        do {
            _ = try read(text, file, GraphFileOptions(limits: limits, directory: "/graphs"))
            return []
        } catch {
            return error.problems
        }
    }

    /// Writes a file that is gone when the test ends.
    static func withFile<Result>(
        _ name: String,
        _ bytes: [UInt8],
        _ body: (String) throws -> Result
    ) throws -> Result {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-graph-file-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: directory,
            withIntermediateDirectories: true
        )
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = directory.appendingPathComponent(name)
        try Data(bytes).write(to: file)
        return try body(file.path)
    }
}

/// Texts of a chosen size.
enum Sample {
    static func letters(_ count: Int) -> String { String(repeating: "x", count: count) }

    static func nested(_ levels: Int) -> String {
        String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    }

    static func json(operations count: Int) -> String {
        let operations = (0..<count).map { #""o\#($0)":{"wait":1}"# }.joined(separator: ",")
        return #"{"operations":{\#(operations)}}"#
    }

    static func lines(operations count: Int) -> String {
        (0..<count).map { #"{"name":"o\#($0)","wait":1}"# + "\n" }.joined()
    }

    static func yaml(operations count: Int) -> String {
        "operations:\n" + (0..<count).map { "  o\($0): {wait: 1}\n" }.joined()
    }
}
