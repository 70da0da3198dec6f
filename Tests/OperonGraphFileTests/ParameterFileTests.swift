import OperonGraphFile
import OperonModel
import Testing

/// Files with values for parameters.
@Suite struct ParameterFileTests {
    private func arguments(_ graph: GraphDescription) -> [String] {
        guard case .command(let command) = graph.operations[0].work else { return [] }
        return command.arguments
    }

    @Test func `a file gives values, and says where one is wrong`() throws {
        let values = #"{"width": 640, "files": ["a", "b"], "out": "o", "deep": true}"#
        try Fixture.withFile("values.json", Array(values.utf8)) { path in
            let given = try ParameterAssignment.read(path: path)
            #expect(given.map(\.name) == ["width", "files", "out", "deep"])
            let text = """
                parameters: { width: 1, files: [], out: { type: path }, deep: false }
                operations: { a: { command: [x, "${width}", "${files}", "${out}", "${deep}"] } }
                """
            let options = GraphFileOptions(directory: "/graphs", parameters: given)
            let graph = try Fixture.read(text, "g.yaml", options).graph
            let directory = String(path.dropLast("/values.json".count))
            #expect(
                arguments(graph) == ["x", "640", "a", "b", directory + "/o", "true"]
            )
            let other = text.replacing("width: 1", with: "width: { values: [1, 2] }")
            let error = #expect(throws: GraphFileError.self) {
                try Fixture.read(other, "g.yaml", options)
            }
            #expect(
                error?.problems.first?.description
                    == "\(path):1:11: “width” must be one of “1”, “2”, not 640"
            )
        }
    }

    @Test(arguments: [
        ("v.json", "[1]", "1:1: parameters are a map from names to values, not a list"),
        ("v.json", #"{"a": 1} {"b": 2}"#, "1:10: something follows the end of the JSON text"),
        ("v.json", #"{"a": 1}}"#, "1:9: something follows the end of the JSON text"),
        ("v.yaml", "a: 1\n---\nb: 2\n", "2:1: the file has more than one document"),
        ("v.yaml", "a: 1\na: 2\n", "2:1: key “a” appears twice in this map, first in line 1"),
        ("v.yaml", "", " the file is empty"),
    ])
    func `a file of values that is no map is refused`(
        name: String,
        text: String,
        wanted: String
    ) throws {
        try Fixture.withFile(name, Array(text.utf8)) { path in
            let error = #expect(throws: GraphFileError.self) {
                try ParameterAssignment.read(path: path)
            }
            #expect(error?.description == "\(path):\(wanted)")
        }
    }

    @Test func `a file of values is what programs write, and names what is unknown`() throws {
        let graph = "parameters: { a: , b: x }\noperations: { a: { command: ['${a}', '${b}'] } }\n"
        func options(_ name: String, _ text: String) throws -> GraphFileOptions {
            try Fixture.withFile(name, Array(text.utf8)) { path in
                GraphFileOptions(parameters: try ParameterAssignment.read(path: path))
            }
        }
        // Python writes what is not ASCII as pairs of surrogates.
        let json = try options("v.json", #"{"a": "\ud83d\ude00", "b": null}"#)
        let error = #expect(throws: GraphFileError.self) {
            try Fixture.read(graph, "g.yaml", json)
        }
        #expect(error?.description.hasSuffix(":1:28: “b” must be a string, not nothing") == true)
        let yaml = try options("v.yaml", "a: 😀\nb: 1.10\n")
        #expect(arguments(try Fixture.read(graph, "g.yaml", yaml).graph) == ["😀", "1.10"])
        let other = try options("v.yaml", "a: y\nc:\n  - 1\n")
        let unknown = #expect(throws: GraphFileError.self) {
            try Fixture.read(graph, "g.yaml", other)
        }
        #expect(unknown?.problems.first?.line == 2)
        #expect(unknown?.problems.first?.code == .unknownKey)
        #expect(unknown?.description.contains("the graph has no parameter “c”") == true)
    }
}
