import Foundation
import OperonFaultKit
import Testing

/// Graph files of every form that are made to harm: refused with a sentence about the file, in
/// little memory, by the program that reads them.
@Suite(.serialized, .timeLimit(.minutes(10))) struct BombTests {
    struct Bomb: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let said: String
        let text: @Sendable () -> String

        init(_ name: String, _ said: String, _ text: @autoclosure @escaping @Sendable () -> String)
        {
            testDescription = name
            self.said = said
            self.text = text
        }
    }

    private static func many(_ text: String, _ count: Int, _ between: String = "") -> String {
        [String](repeating: text, count: count).joined(separator: between)
    }

    private static var laughs: String {
        var text = "operations:\n  a:\n    operation: X\n    input:\n      l0: &l0 [ha, ha, ha]\n"
        for level in 1...30 {
            let aliases = many("*l\(level - 1)", 9, ", ")
            text += "      l\(level): &l\(level) [\(aliases)]\n"
        }
        return text
    }

    private static var chain: String {
        let count = 100_000
        return (0..<count).map { index in
            let before = (index + count - 1) % count
            return #"{"name": "o\#(index)", "wait": 0, "dependencies": ["o\#(before)"]}"# + "\n"
        }
        .joined()
    }

    private static let deep = 1_000_000
    private static let wide = 3_000_000
    private static let inputJSON = #"{"operations": {"a": {"operation": "X", "input": "#
    private static let inputLine = #"{"name": "a", "operation": "X", "input": "#
    private static let workflow = #"{"workflow": {"tasks": [{"name": "a", "parents": "#

    private static let bombs: [Bomb] = [
        Bomb("laughs.yaml", "(yamlAliasExpansion)", laughs),
        Bomb("deep.yaml", "nesting", "operations: " + many("[", deep)),
        Bomb("deep.json", "(yamlDepth)", inputJSON + many("[", deep)),
        Bomb("deep.jsonl", "(yamlDepth)", inputLine + many("[", deep)),
        Bomb("deep-task.json", "(yamlDepth)", workflow + many("[", deep)),
        Bomb("deep-passed-over.json", "(yamlDepth)", #"{"workflow": {"x": "# + many("[", deep)),
        Bomb(
            "wide.json",
            "values in one operation",
            inputJSON + "[" + many("1", wide, ",") + "]}}}"
        ),
        Bomb(
            "wide.jsonl",
            "values in one operation",
            inputLine + "[" + many("1", wide, ",") + "]}"
        ),
        Bomb(
            "wide-task.json",
            "values in one operation",
            workflow + "[" + many(#""p""#, wide, ",") + "]}]}}"
        ),
        Bomb(
            "same.json",
            "appears twice",
            inputJSON + "{" + many(#""k":1"#, 200_000, ",") + "}}}}"
        ),
        Bomb("same.yaml", "defined twice", "operations:\n" + many("  k: {wait: 0}\n", 10_000)),
        Bomb(
            "long.json",
            "(nameBytes)",
            #"{"operations": {""# + many("a", 50_000_000) + #"": {}}}"#
        ),
        Bomb("chain.jsonl", "dependency cycle: o0 → o99999", chain),
        Bomb("number.yaml", "finite numbers", "operations: {a: {operation: X, input: .nan}}"),
        Bomb("number.json", "“NaN” is not JSON", inputJSON + "NaN}}}"),
        Bomb("number.jsonl", "“NaN” is not JSON", inputLine + "NaN}"),
        Bomb("half.yaml", "invalid Unicode", #"operations: {"\ud800": {wait: 0}}"#),
        Bomb("half.json", "half of a surrogate pair", #"{"operations": {"\ud800": {"wait": 0}}}"#),
        Bomb("half.jsonl", "half of a surrogate pair", #"{"name": "\udfff", "wait": 0}"#),
    ]

    /// Runs a command, and says how it ended and how many MiB it took at its largest.
    private static let measure = """
        import resource, subprocess, sys
        ended = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        print(ended.returncode, largest)
        """

    @Test(arguments: bombs) func `a bomb is refused with a sentence, within 200 MiB`(
        bomb: Bomb
    ) async throws {
        try await Workspace.run { workspace in
            let text = bomb.text()
            let file = try workspace.write(bomb.testDescription, text)
            let options = text.hasPrefix(#"{"workflow""#) ? ["--replay", "1"] : []
            let operon = try Program.executable("operon")
            let ended = try await workspace.start(
                "/usr/bin/python3",
                ["-c", Self.measure, operon, "validate", file] + options
            )
            .end()

            let numbers = ended.output.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
            try #require(numbers.count == 2, "\(ended.errors)")
            #expect(numbers[0] == 2)
            #expect(numbers[1] < 200, "\(numbers[1]) MiB")
            #expect(ended.errors.hasPrefix(file + ":"))
            #expect(ended.errors.contains(bomb.said), "\(ended.errors.prefix(300))")
            // A sentence, and not the bomb.
            #expect(ended.errors.utf8.count < 8_192)
        }
    }
}
