import Foundation
import Testing

/// What an operation is given and what it gives: environment, inputs and outputs.
@Suite(.serialized) struct DataTests {
    @Test(arguments: Place.allCases)
    func `an operation sees what it is allowed to, and who it is`(place: Place) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                name: environments
                operations:
                  usual: { run: env | sort > usual.env }
                  chosen:
                    command: [/bin/sh, -c, /usr/bin/env > chosen.env]
                    inheritEnvironment: [SECRET, ABSENT]
                    environment: { ADDED: "1 = 2", HOME: /nowhere }
                  placed: { run: pwd > ../placed.txt, directory: below }
                """
            )
            try FileManager.default.createDirectory(
                atPath: workspace.path("below"),
                withIntermediateDirectories: true
            )
            let variables: [String: String?] = ["SECRET": "word", "OPERON_BROKER": nil]
            if place == .broker { try workspace.startWorkers(1, slots: 2, environment: variables) }
            let ended = try await workspace.run(file, on: place, environment: variables)

            #expect(ended.end == .exit(0), "\(ended.errors)")
            let usual = workspace.lines(of: "usual.env").compactMap {
                $0.split(separator: "=").first
            }
            // What the shell adds of its own does not count.
            #expect(
                Set(usual).subtracting(["PWD", "SHLVL", "_", "OLDPWD"]) == [
                    "PATH", "HOME", "LANG", "TMPDIR", "USER", "OPERON_ATTEMPT", "OPERON_GRAPH",
                    "OPERON_INPUTS", "OPERON_OPERATION", "OPERON_OUTPUT", "OPERON_SOCKET",
                    "OPERON_TOKEN",
                ]
            )
            let chosen = workspace.lines(of: "chosen.env")
            #expect(chosen.contains("ADDED=1 = 2"))
            #expect(chosen.contains("SECRET=word"))
            #expect(chosen.contains("HOME=/nowhere"))
            #expect(chosen.contains("OPERON_GRAPH=environments"))
            #expect(chosen.contains("OPERON_OPERATION=chosen"))
            #expect(chosen.contains("OPERON_ATTEMPT=1"))
            #expect(!chosen.contains { $0.hasPrefix("ABSENT") || $0.hasPrefix("USER=") })
            #expect(try workspace.read("placed.txt") == workspace.path("below") + "\n")
        }
    }

    @Test(arguments: Place.allCases)
    func `outputs of dependencies are inputs by name`(place: Place) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  number: { run: "echo 42 > $OPERON_OUTPUT" }
                  object: { run: 'printf "{\\"ü\\": [1, null]}" > "$OPERON_OUTPUT"' }
                  silent: { run: "true" }
                  bad: { run: exit 1 }
                  reader:
                    run: cat "$OPERON_INPUTS" > inputs.json
                    dependencies: [number, object, silent, bad: finished]
                  lonely: { run: cat "$OPERON_INPUTS" > lonely.json }
                """
            )
            _ = try await workspace.run(file, on: place)

            let inputs = try JSONSerialization.jsonObject(
                with: Data(workspace.read("inputs.json").utf8)
            )
            let expected: NSDictionary = [
                "number": 42, "object": ["ü": [1, NSNull()] as [Any]] as NSDictionary,
                "silent": NSNull(), "bad": NSNull(),
            ]
            #expect(inputs as? NSDictionary == expected)
            #expect(
                try workspace.read("lonely.json").trimmingCharacters(in: .whitespacesAndNewlines)
                    == "{}"
            )
        }
    }

    @Test(arguments: Place.allCases)
    func `two hundred outputs come together in one operation`(place: Place) async throws {
        try await Workspace.run { workspace in
            var text = "operations:\n"
            for number in 1...200 {
                text += "  n\(number): { run: 'echo \(number) > $OPERON_OUTPUT' }\n"
            }
            let names = (1...200).map { "n\($0)" }.joined(separator: ", ")
            text += """
                  sum:
                    run: cp "$OPERON_INPUTS" inputs.json
                    dependencies: [\(names)]

                """
            let file = try workspace.write("graph.yaml", text)
            let ended = try await workspace.run(file, on: place, ["--output", "json"])

            #expect(ended.end == .exit(0))
            try ended.report().expectSuccess(attempts: 1)
            let data = try Data(workspace.read("inputs.json").utf8)
            let inputs = try JSONDecoder().decode([String: Int].self, from: data)
            #expect(inputs == Dictionary(uniqueKeysWithValues: (1...200).map { ("n\($0)", $0) }))
        }
    }

    // MARK: - Limits

    /// A JSON text of so many bytes.
    private static func writer(_ bytes: Int) -> String {
        """
        { printf '"'; head -c \(bytes - 2) /dev/zero | tr '\\0' x; printf '"'; } > $OPERON_OUTPUT
        """
    }

    @Test(arguments: Place.allCases)
    func `an output may have one mebibyte and no byte more`(place: Place) async throws {
        try await Workspace.run { workspace in
            let json = """
                {"operations": {
                  "full": {"run": \(Self.quoted(Self.writer(1 << 20)))},
                  "over": {"run": \(Self.quoted(Self.writer((1 << 20) + 1)))},
                  "reader": {"run": "wc -c < \\"$OPERON_INPUTS\\" > size", "dependencies": ["full"]}
                }}
                """
            let path = try workspace.write("graph.json", json)
            let ended = try await workspace.run(path, on: place, ["--output", "json"])

            let report = try ended.report()
            #expect(report["full"]?.outcome == "succeeded", "\(ended.errors)")
            #expect(report["over"]?.error?.code == "outputTooLarge")
            #expect(report["reader"]?.outcome == "succeeded")
            let size = Int(
                workspace.lines(of: "size").first?.trimmingCharacters(in: .whitespaces) ?? ""
            )
            #expect(size ?? 0 > 1 << 20)
        }
    }

    private static func quoted(_ text: String) -> String {
        let escaped = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        return "\"\(escaped)\""
    }
}
