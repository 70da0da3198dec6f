import Foundation
import OperonGraphFile
import OperonModel
import Testing

/// The fixtures: good ones are read, bad ones say what stands in their first lines.
@Suite struct FixtureTests {
    static let bad = files(in: "Bad") + files(in: "BadBeyondSchema")

    static func files(in folder: String) -> [String] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: Fixture.path(folder))
        return (names ?? []).sorted().map { folder + "/" + $0 }
    }

    @Test func `there are fixtures of each sort`() {
        #expect(Self.files(in: "Good").count >= 6)
        #expect(Self.files(in: "Bad").count >= 10)
        #expect(Self.files(in: "BadBeyondSchema").count >= 8)
    }

    @Test(arguments: bad)
    func `a bad file is refused with the messages that it announces`(name: String) throws {
        let text = String(decoding: try Fixture.bytes(name), as: UTF8.self)
        let mark = "# expect "
        let expected = text.split(separator: "\n").prefix { $0.hasPrefix(mark) }
            .map { String($0.dropFirst(mark.count)) }

        let problems = Fixture.problems(text, "f")

        #expect(!expected.isEmpty)
        let found = problems.map { String($0.description.dropFirst($0.line == 0 ? 3 : 2)) }
        #expect(found == expected)
    }

    @Test(arguments: files(in: "Good"))
    func `a good file is read, written and read to the same graph`(name: String) throws {
        let options = GraphFileOptions(directory: "/graphs")
        let graph = try GraphFile.read(path: Fixture.path(name), options: options).graph
        let written = try GraphFile.encodeJSON(graph)
        let again = try GraphFile.read(
            bytes: written,
            file: "other.json",
            options: GraphFileOptions(directory: "/other")
        )

        #expect(again.graph == graph)
        #expect(try GraphFile.encodeJSON(again.graph) == written)
    }

    @Test func `YAML and JSON of one graph are equal`() throws {
        let options = GraphFileOptions(directory: "/graphs")
        let yaml = try GraphFile.read(path: Fixture.path("Good/everything.yaml"), options: options)
        let json = try GraphFile.read(path: Fixture.path("Good/everything.json"), options: options)

        #expect(yaml.graph.queues == json.graph.queues)
        for (left, right) in zip(yaml.graph.operations, json.graph.operations) {
            #expect(left == right)
        }
        #expect(yaml.graph == json.graph)
    }
}
