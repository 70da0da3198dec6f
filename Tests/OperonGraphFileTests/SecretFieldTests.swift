import OperonModel
import Testing

@testable import OperonGraphFile

/// `environment: { NAME: { secret: … } }` in a graph file.
struct SecretFieldTests {
    private func command(_ text: String, _ file: String = "g.yaml") throws -> CommandDescription {
        let graph = try Fixture.read(text, file).graph
        guard case .command(let command) = try #require(graph.operations.first).work else {
            throw GraphFileError(problems: [])
        }
        return command
    }

    private func problem(_ text: String) -> String {
        let problems = Fixture.problems(text, "g.yaml").map(\.description)
        return problems.count == 1
            ? String(problems[0].dropFirst("g.yaml:".count)) : "\(problems.count): \(problems)"
    }

    @Test(arguments: [
        ("g.yaml", "operations:\n  a: { run: x, environment: { A: '1', P: { secret: db } } }"),
        (
            "g.json",
            #"{"operations": {"a": {"run": "x", "environment": {"A": 1, "P": {"secret": "db"}}}}}"#
        ),
        (
            "g.jsonl",
            #"{"name": "a", "run": "x", "environment": {"A": "1", "P": {"secret": "db"}}}"#
        ),
    ])
    func `a variable refers to a secret in each format`(file: String, text: String) throws {
        let command = try command(text, file)

        #expect(command.environment == ["A": "1"])
        #expect(command.secrets == ["P": "db"])
    }

    @Test func `an operation replaces what the defaults set, with a value or with a secret`() throws
    {
        let command = try command(
            """
            defaults:
              environment: { A: { secret: a }, B: plain, C: { secret: c }, D: d }
            operations:
              o: { run: x, environment: { A: own, B: { secret: b } } }
            """
        )

        #expect(command.environment == ["A": "own", "D": "d"])
        #expect(command.secrets == ["B": "b", "C": "c"])
    }

    @Test func `a parameter can be a part of a name, and does not replace a secret`() throws {
        let command = try command(
            """
            parameters: { stage: { default: test } }
            operations:
              o: { run: x, environment: { stage: { secret: "db-${stage}" } } }
            """
        )

        #expect(command.secrets == ["stage": "db-test"])
        #expect(command.environment == [:])
    }

    @Test(arguments: ["a", "DB.password_1-x", "-", "_", String(repeating: "a", count: 128)])
    func `a name of letters, digits and three signs is taken`(name: String) throws {
        let text = "operations:\n  o: { run: x, environment: { P: { secret: '\(name)' } } }"
        #expect(try command(text).secrets == ["P": name])
    }

    @Test(arguments: [
        "", ".", "..", ".hidden", "../etc/passwd", "a/b", "/a", "a b", "ä", "a\\0", "a:b",
        String(repeating: "a", count: 129),
    ])
    func `another name is refused where it is`(name: String) {
        let text = "operations:\n  o: { run: x, environment: { P: { secret: '\(name)' } } }"
        let problem = problem(text)
        #expect(problem.hasPrefix("2:44: "), "\(problem)")
        #expect(problem.contains("cannot be the name of a secret"), "\(problem)")
    }

    @Test(arguments: [
        ("{ P: { file: db } }", "2:36: unknown key “file”"),
        ("{ P: {} }", "2:34: “P” must be a string, or a map with “secret”, not a map"),
        ("{ P: [db] }", "2:34: “P” must be a string, not a list"),
        ("{ P: { secret: [db] } }", "2:44: “secret” must be the name of a secret, not a list"),
        ("{ PATH: { secret: p } }", "2:31: “PATH” cannot have a secret as its value"),
    ])
    func `what is no reference is told where it is`(environment: String, message: String) {
        let text = "operations:\n  o: { run: x, environment: \(environment) }"
        #expect(problem(text) == message)
    }

    @Test func `more secrets than a command may have are refused`() {
        let variables = (0...SecretName.countMax).map { "V\($0): { secret: s }" }
        let all = variables.joined(separator: ", ")
        let text = "operations:\n  o: { run: x, environment: { \(all) } }"
        #expect(problem(text).hasSuffix("65 secrets are more than a command may have, 64"))
    }

    @Test func `a secret is allowed only with commands`() {
        let text = "operations:\n  o: { wait: 1s, environment: { P: { secret: db } } }"
        #expect(problem(text).hasSuffix("is only allowed with “run” and “command”"))
    }

    @Test(arguments: [
        ("", "db", "\"\" cannot be the name of a variable"),
        ("P", "../db", "\"../db\" cannot be the name of a secret"),
        ("A", "db", "A has a value and a secret"),
        ("PATH", "db", "PATH cannot have a secret as its value"),
    ])
    func `a graph that was made by a program is checked as well`(
        variable: String,
        secret: String,
        why: String
    ) {
        var command = CommandDescription(arguments: ["x"], environment: ["A": ""])
        command.secrets = [variable: secret]
        let graph = GraphDescription(
            name: "g",
            operations: [OperationDescription(name: "o", work: .command(command))]
        )

        let refusal = #expect(throws: Refusal.self) { try graph.check(Limits()) }
        #expect(refusal?.description.contains(why) == true, "\(String(describing: refusal))")
    }
}
