import OperonGraphFile
import OperonModel
import Testing

/// JSON as RFC 8259 has it, and nothing beside.
@Suite struct JSONSyntaxTests {
    @Test(arguments: [
        ("", "g.json: the file is empty"),
        (" \n ", "g.json: the file is empty"),
        ("[]", "g.json:1:1: expected a map, found “[”"),
        ("{", "g.json:1:2: the text ends where a key in quotation marks was expected"),
        ("{\n  \"a\" 1}", "g.json:2:7: expected “:”, found “1”"),
        ("{\"name\": \"é\" x}", "g.json:1:14: expected “,” or “}”, found “x”"),
        ("{\"name\": \"a\",}", "g.json:1:14: expected a value behind the comma, found “}”"),
        ("{name: 1}", "g.json:1:2: expected a key in quotation marks, found “n”"),
        ("{\"name\": 'a'}", "g.json:1:10: expected a value, found “'”"),
        ("{\"name\": NaN}", "g.json:1:10: “NaN” is not JSON; a string needs quotation marks"),
        ("{\"name\": -Infinity}", "g.json:1:11: expected a digit, found “I”"),
        ("{\"name\": 01}", "g.json:1:10: a number in JSON does not begin with 0"),
        ("{\"name\": 1.}", "g.json:1:12: expected a digit, found “}”"),
        ("{\"name\": 1e}", "g.json:1:12: expected a digit, found “}”"),
        ("{\"name\": \"a", "g.json:1:10: this string does not end"),
        ("{\"name\": \"a\nb\"}", "g.json:1:12: this string does not end in its line"),
        ("{\"name\": \"\\x\"}", "g.json:1:11: expected an escape such as \\n, found “\\”"),
        ("{\"name\": \"\\u12\"}", "g.json:1:11: expected four hexadecimal digits, found “\\”"),
        ("{\"name\": \"\\ud800\"}", "g.json:1:11: “\\ud800” is half of a surrogate pair"),
        ("{\"name\": \"\\udc00\"}", "g.json:1:11: “\\udc00” is half of a surrogate pair"),
        ("{\"name\": \"\\ud800\\u0041\"}", "g.json:1:11: “\\ud800” is half of a surrogate pair"),
        ("{\"operations\": {}} {}", "g.json:1:20: something follows the end of the JSON text"),
        (
            "{\"operations\": 5}",
            "g.json:1:16: “operations” must be a map or a list of operations, not 5"
        ),
    ])
    func `a mistake is shown where it is`(text: String, message: String) {
        #expect(Fixture.problems(text, "g.json").first?.description == message)
    }

    @Test(
        arguments: [
            ([0xC0, 0xAF], "0xC0"), ([0xED, 0xA0, 0x80], "0xED"),
            ([0xF5, 0x80, 0x80, 0x80], "0xF5"),
            ([0xE0, 0x80, 0x80], "0xE0"), ([0x80], "0x80"), ([0xF0, 0x9F, 0x98], "0xF0"),
        ] as [([UInt8], String)]
    )
    func `a byte that is not UTF-8 is shown where it is`(bytes: [UInt8], thing: String) {
        let text = Array("{\"name\": \"é".utf8) + bytes + Array("\"}".utf8)
        let error = #expect(throws: GraphFileError.self) {
            try GraphFile.read(bytes: text, file: "g.json")
        }
        #expect(error?.description == "g.json:1:12: byte \(thing) is not UTF-8")
    }

    @Test func `escapes and pairs become characters`() throws {
        let text = #"{"operations": {"\u00e9\ud83d\ude00\/": {"run": "\"\\\b\f\n\r\t"}}}"#
        let operation = try #require(try Fixture.read(text, "g.json").graph.operations.first)
        #expect(operation.name == "é😀/")
        guard case .command(let command) = operation.work else {
            Issue.record("not a command")
            return
        }
        #expect(command.arguments.last == "\"\\\u{8}\u{C}\n\r\t")
    }

    @Test func `a byte order mark is passed over`() throws {
        for file in ["g.json", "g.yaml", "g.jsonl"] {
            let text = file == "g.jsonl" ? #"{"name": "a", "wait": 1}"# : #"{"operations": {}}"#
            let bytes = [0xEF, 0xBB, 0xBF] + Array(text.utf8)
            _ = try GraphFile.read(bytes: bytes, file: file)
        }
    }

    @Test func `a mistake in a line is shown in that line`() {
        let text = """
            {"name": "a", "wait": 1}

            {"name": "b", "wiat": 1, "wait": 2}
            {"name": "c", "wait": 1} {"name": "d"}
            """
        #expect(
            Fixture.problems(text, "g.jsonl").map(\.description) == [
                "g.jsonl:3:15: unknown key “wiat”; did you mean “wait”?",
                "g.jsonl:4:26: something follows the end of the JSON text",
            ]
        )
    }

    @Test func `a value does not go over the end of its line`() {
        let problems = Fixture.problems("{\"name\":\n\"a\", \"wait\": 1}", "g.jsonl")
        #expect(
            problems.first?.description
                == "g.jsonl:1:9: the text ends where a value was expected"
        )
    }
}
