import Foundation
import OperonGraphFile
import OperonModel
import Testing

/// What a file means beyond its syntax.
@Suite struct ReadingTests {
    private func operation(_ text: String) throws -> OperationDescription {
        let graph = try Fixture.read("operations: {a: {\(text)}}", "g.yaml").graph
        return try #require(graph.operations.first)
    }

    private func command(_ text: String) throws -> CommandDescription {
        guard case .command(let command) = try operation(text).work else {
            throw GraphFileError(problems: [])
        }
        return command
    }

    @Test func `operations keep the order of the file`() throws {
        let names = (0..<200).map { "o\(($0 * 37) % 200)" }
        let text = "operations:\n" + names.map { "  \($0): {run: ls}\n" }.joined()
        #expect(try Fixture.read(text, "g.yaml").graph.operations.map(\.name) == names)
    }

    @Test func `a run line goes to the shell and a command does not`() throws {
        #expect(try command("run: 'a | b'").arguments == ["/bin/sh", "-c", "a | b"])
        #expect(try command("command: [a, '|', b]").arguments == ["a", "|", "b"])
    }

    @Test(arguments: [
        ("500ms", 500_000_000), ("2s", 2_000_000_000), ("5m", 300_000_000_000),
        ("1h30m", 5_400_000_000_000), ("1d", 86_400_000_000_000), ("90", 90_000_000_000),
        ("0.1", 100_000_000), ("1.5h", 5_400_000_000_000), ("1e-3", 1_000_000),
        ("'7'", 7_000_000_000),
        ("1us", 1_000), ("3ns", 3), ("1s1ms", 1_001_000_000), ("36500d", 3_153_600_000_000_000_000),
    ])
    func `a duration is read to the nanosecond`(text: String, nanoseconds: Int64) throws {
        #expect(try operation("run: ls, timeout: \(text)").timeout == .nanoseconds(nanoseconds))
    }

    @Test(arguments: [
        "5 m", "m", "1m1h", "1m1m", "1.s", ".5s", "1x", "1h30", "''", "true", "1,5s", "36500d1ns",
        "99999999999999999999s", "1e300", "0x10", "٣s", "1s ", "--1s",
    ])
    func `what is no duration is refused`(text: String) {
        let file = "operations: {a: {run: ls, timeout: \"\(text)\"}}"
        #expect(Fixture.problems(file, "g.yaml").map(\.code) == [.invalidValue])
    }

    @Test(arguments: [
        ("2026-11-21T03:20:00Z", 1_795_231_200_000_000_000),
        ("2026-11-21T05:20+02:00", 1_795_231_200_000_000_000),
        ("2026-11-20 22:50:00.25-0430", 1_795_231_200_250_000_000),
        ("1970-01-01T00:00:00Z", 0),
        ("2024-02-29T23:59:59.999999999Z", 1_709_251_199_999_999_999),
        ("1969-12-31T23:59:59Z", -1_000_000_000),
    ])
    func `a moment is read with its zone`(text: String, nanoseconds: Int64) throws {
        let moment = try operation("run: ls, deadline: '\(text)'").deadline
        #expect(moment == WallTime(nanosecondsSince1970: nanoseconds))
    }

    @Test(arguments: [
        "2026-11-21T03:20:00", "2026-11-21", "2023-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
        "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z", "tomorrow",
        "2300-01-01T00:00:00Z", "1600-01-01T00:00:00Z", "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00.1234567890Z", "2026-01-01T00:00:00Z ", "",
    ])
    func `what is no moment is refused`(text: String) {
        let file = "operations: {a: {run: ls, notBefore: '\(text)'}}"
        #expect(Fixture.problems(file, "g.yaml").map(\.code) == [.invalidValue])
    }

    @Test(arguments: [Int64.min, Int64.min + 1, -1, 0, 1, Int64.max - 1, Int64.max])
    func `the ends of time are written and read`(nanoseconds: Int64) throws {
        var operation = OperationDescription(name: "a", work: .nothing)
        operation.deadline = WallTime(nanosecondsSince1970: nanoseconds)
        let graph = GraphDescription(name: "g", operations: [operation])
        let written = try GraphFile.encodeJSON(graph)
        #expect(try GraphFile.read(bytes: written, file: "g.json").graph == graph)
    }

    @Test func `a bare number of retries has the usual pauses`() throws {
        #expect(try operation("run: ls, retry: 3").retry == RetryPolicy(limit: 3))
    }

    @Test func `a first pause longer than the usual longest one is kept`() throws {
        let retry = try operation("run: ls, retry: {limit: 1, delay: 5m}").retry
        #expect(retry.maxDelay == .seconds(300))
    }

    @Test func `defaults hold for what an operation does not say, wherever they stand`() throws {
        let text = """
            operations:
              a: { run: ls, timeout: 1s, environment: { A: own } }
              b: { run: ls, timeout: null }
              c: { wait: 1s }
            defaults: { timeout: 9s, environment: { A: all, B: all }, queue: q }
            """
        let operations = try Fixture.read(text, "g.yaml").graph.operations
        #expect(operations.map(\.timeout) == [.seconds(1), nil, .seconds(9)])
        #expect(operations.map(\.queue) == ["q", "q", "q"])
        guard case .command(let command) = operations[0].work else {
            Issue.record("not a command")
            return
        }
        #expect(command.environment == ["A": "own", "B": "all"])
    }

    @Test func `processes start where the file lies`() throws {
        let text = "{operations: {a: {run: ls}, b: {run: ls, directory: sub/../x}}}"
        try Fixture.withFile("g.yaml", Array(text.utf8)) { path in
            let directory = String(path.dropLast("/g.yaml".count))
            let operations = try GraphFile.read(path: path).graph.operations
            let directories = operations.map { operation -> String? in
                guard case .command(let command) = operation.work else { return nil }
                return command.directory
            }
            #expect(directories == [directory, directory + "/sub/../x"])
        }
    }

    @Test func `a graph without a name has that of its file`() throws {
        #expect(try Fixture.read("operations: {}", "/x/my.graph.yaml").graph.name == "my.graph")
        #expect(try Fixture.read("{name: g, operations: {}}", "x.yaml").graph.name == "g")
    }

    @Test(arguments: [
        (#"{"operations": {"a": {"wait": 1}}}"#, 1), ("operations: {a: {wait: 1}}", 1),
        ("{operations: {a: {wait: 1}}}", 1),
        ("{\"name\":\"a\",\"wait\":1}\n{\"name\":\"b\",\"wait\":1}", 2),
        ("\n\n{\n\"operations\": []}", 0),
    ])
    func `a file without a suffix is known by its content`(text: String, count: Int) throws {
        #expect(try Fixture.read(text, "graph").graph.operations.count == count)
    }

    @Test func `a given format wins over the suffix`() throws {
        let bytes = Array("operations: {a: {wait: 1}}".utf8)
        let file = try GraphFile.read(bytes: bytes, file: "g.json", format: .yaml)
        #expect(file.graph.operations.count == 1)
    }

    @Test func `an input that is not JSON cannot be written`() {
        let input = Payload(contentType: "text/plain", bytes: [0x61])
        let work = Work.registered(kind: "X", input: input)
        let graph = GraphDescription(
            name: "g",
            operations: [OperationDescription(name: "a", work: work)]
        )
        let error = #expect(throws: GraphFileError.self) { try GraphFile.encodeJSON(graph) }
        #expect(error?.description == "g: input of “a”: it is not JSON")
    }

    @Test func `long lines and pieces of a file are put together`() throws {
        // Lines of all lengths around the piece that is read at once.
        let lines = (0..<40).map { index in
            let text = Sample.letters(index * 9_973 + 1)
            return #"{"name": "o\#(index)", "operation": "X", "input": "\#(text)"}"#
        }
        try Fixture.withFile("g.jsonl", Array(lines.joined(separator: "\n").utf8)) { path in
            let graph = try GraphFile.read(path: path).graph
            #expect(graph.operations.map(\.name) == (0..<40).map { "o\($0)" })
            let sizes = graph.operations.map { operation -> Int in
                guard case .registered(_, let input) = operation.work else { return 0 }
                return input.bytes.count
            }
            #expect(sizes == (0..<40).map { $0 * 9_973 + 3 })
        }
    }
}
