import Testing

/// The style, read off the repository. Each rule is also tried on a planted violation, below.
@Suite struct TidyTests {
    /// Functions that were longer than allowed when the rule came, with the most they may have.
    /// The list may only get shorter, and its numbers smaller.
    static let longFunctions: [String: Int] = [:]

    static let sources = Repository.swift(under: "Sources/")
    static let tests = Repository.swift(under: "Tests/")
    static let ours = sources + tests + Repository.swift(under: "Benchmarks/")
    static let deciding = sources.filter {
        ["OperonCore", "OperonModel", "OperonWire"].contains($0.target)
    }

    @Test func `the repository is found`() {
        #expect(Self.sources.contains { $0.path == "Sources/OperonModel/Identifiers.swift" })
        #expect(Self.tests.contains { $0.path == "Tests/TidyTests/TidyTests.swift" })
    }

    @Test func `imports follow the layers`() {
        #expect(Self.sources.flatMap(Rules.imports) == [])
    }

    @Test func `every target has its layer`() {
        let targets = Set(Self.sources.map(\.target)).sorted()
        #expect(targets.filter { Rules.allowedImports[$0] == nil } == [])
    }

    @Test func `what decides has no clock, no task and no output`() {
        #expect(Self.deciding.flatMap { Rules.bannedWords($0, Rules.bannedInCore) } == [])
    }

    @Test func `what decides draws no chance of its own`() {
        #expect(Self.deciding.flatMap(Rules.chance) == [])
    }

    @Test func `what decides iterates nothing in hash order`() {
        let core = Self.sources.filter { $0.target == "OperonCore" }
        #expect(core.flatMap(Rules.hashOrder) == [])
    }

    @Test func `numbers of graphs and operations are indices in tables alone`() {
        let files = Self.sources.filter { ["OperonCore", "OperonRuntime"].contains($0.target) }
        #expect(files.flatMap(Rules.numbersAsIndices) == [])
        #expect(Rules.tables.subtracting(files.map(\.path)).sorted() == [])
    }

    @Test func `banned calls are nowhere`() {
        #expect(Self.ours.flatMap { Rules.bannedWords($0, Rules.bannedEverywhere) } == [])
    }

    @Test func `secrets are compared in a time that tells nothing about them`() {
        let files = Self.sources.filter { Rules.withSecrets.contains($0.target) }
        #expect(files.flatMap(Rules.comparedSecrets) == [])
    }

    @Test func `values reach SQL as bound parameters alone`() {
        let files = Self.sources.filter { $0.target == "OperonSQLite" }
        #expect(files.flatMap(Rules.composedSQL) == [])
        // What is allowed is there.
        let used = files.flatMap { $0.code.literals.flatMap(\.interpolations) }
        #expect(Rules.namesInSQL.subtracting(used).sorted() == [])
    }

    @Test func `nothing is declared that nobody uses`() {
        #expect(Rules.unused(in: Self.sources, among: Self.ours) == [])
    }

    @Test func `documents use no word that was retired`() {
        let documents = Repository.files.filter { $0.path.hasSuffix(".md") }
        #expect(documents.contains { $0.path == "docs/GLOSSARY.md" })
        #expect(documents.flatMap(Rules.retiredWords) == [])
    }

    @Test func `nothing is left to be done in a comment`() {
        #expect(Self.ours.flatMap(Rules.leftoverWords) == [])
    }

    @Test func `no path of one machine is anywhere`() {
        #expect(Repository.files.flatMap(Rules.machinePaths) == [])
    }

    @Test func `every command has a name`() {
        #expect(Self.sources.flatMap(Rules.unnamedCommands) == [])
    }

    @Test func `lines fit`() {
        #expect(Self.ours.flatMap(Rules.lineLengths) == [])
    }

    @Test func `files fit`() {
        #expect(Self.ours.flatMap(Rules.fileLength) == [])
    }

    @Test func `functions fit`() {
        let violations = Self.ours.flatMap {
            Rules.functionLengths($0, ratchet: Self.longFunctions)
        }
        #expect(violations == [])
    }

    @Test func `the list of long functions has no entry that is not needed`() {
        for (key, most) in Self.longFunctions {
            let file = Self.ours.first { key.hasPrefix($0.path + " ") }
            let length = file.flatMap { file in
                Rules.functions(file).filter { key == "\(file.path) \($0.name)" }.map(\.length)
                    .max()
            }
            #expect(most > Rules.functionLinesMax && length == most, "\(key)")
        }
    }
}

/// Every rule finds what it is for, and lets pass what looks like it.
@Suite struct RuleTests {
    static func file(_ text: String, path: String = "Sources/OperonCore/X.swift") -> SourceFile {
        SourceFile(path: path, text: text)
    }

    @Test(arguments: [
        ("import Foundation", true), ("package import OperonPorts", true),
        ("@preconcurrency import NIOCore", true), ("import struct Foundation.Date", true),
        ("import OperonModel", false), ("package import OperonModel", false),
        ("// import Foundation", false), ("let text = \"import Foundation\"", false),
    ])
    func `a forbidden import is found`(line: String, isBad: Bool) {
        #expect(Rules.imports(Self.file(line)).isEmpty == !isBad)
    }

    @Test func `an adapter may not import another`() {
        let file = Self.file("import OperonGraphFile", path: "Sources/OperonTerminal/X.swift")
        #expect(Rules.imports(file).count == 1)
    }

    @Test func `a target that nobody knows may import nothing`() {
        let file = Self.file("import OperonModel", path: "Sources/New/X.swift")
        #expect(Rules.imports(file).count == 1)
    }

    @Test(arguments: [
        ("let x = states[Int(graph.rawValue)]", true),
        ("let place = Int(held.operation.index)", true),
        ("all.map { names[Int($0.index)] }", true),
        ("guard Int(graph.rawValue) < count else { return }", false),
        ("counters[Int(outcome.kind.rawValue)] += 1", false), ("digits[Int(byte >> 4)]", false),
    ])
    func `a number that is an index outside of a table is found`(line: String, isBad: Bool) {
        #expect(Rules.numbersAsIndices(Self.file(line)).isEmpty == !isBad)
        let table = Self.file(line, path: "Sources/OperonCore/GraphTable.swift")
        #expect(Rules.numbersAsIndices(table) == [])
    }

    @Test(arguments: [
        ("Task { }", true), ("func f() async {}", true), ("let now = ContinuousClock.now", true),
        ("print(x)", true), ("let d: Date", true), ("unsafe f()", true),
        ("struct TaskList {}", false), ("let asynchronous = 1", false), ("// a Task", false),
        ("/* async /* nested */ print() */", false), ("let s = \"Task\"", false),
        ("let s = #\"a \"Task\" b\"#", false), ("let s = \"\\(f(\"Task\"))\"; Task {}", true),
        ("update(x)", false), ("fingerprint(x)", false),
    ])
    func `a banned word is found in code`(line: String, isBad: Bool) {
        #expect(Rules.bannedWords(Self.file(line), Rules.bannedInCore).isEmpty == !isBad)
    }

    @Test(arguments: [
        ("let x = try! f()", true), ("fatalError()", true), ("Thread.sleep(1)", true),
        ("DispatchQueue.main", true), ("try f()", false), ("fatalError(\"why\")", false),
        ("MyDispatchQueue()", false),
    ])
    func `a banned call is found`(line: String, isBad: Bool) {
        #expect(Rules.bannedWords(Self.file(line), Rules.bannedEverywhere).isEmpty == !isBad)
    }

    @Test(arguments: [
        ("Int.random(in: 0..<9)", true), ("list.shuffled()", true),
        ("Int.random(in: 0..<9, using: &generator)", false), ("randomness()", false),
    ])
    func `chance is found`(line: String, isBad: Bool) {
        #expect(Rules.chance(Self.file(line)).isEmpty == !isBad)
    }

    @Test(arguments: [
        ("if token == known { }", true), ("guard a.digest != entry.digest else { }", true),
        ("entries.first { $0.token.digest == digest }", true),
        ("return SHA256.hash(of: body) == expected", true), ("code == text", true),
        ("x == SHA256.authenticationCode(for: body, key: key)", true),
        ("let code = SHA256.authenticationCode(for: b, key: k); return code == given", true),
        ("delivery\n    .signature\n    == mine.signature", true),
        ("tokens.contains(token)", true), ("tokens.firstIndex(of: request.token)", true),
        ("return shared.tokens[request.token]", true), ("waiting[sessionCode] = nil", true),
        ("waiting.removeValue(forKey: secret)", true),
        ("SHA256.isEqual(digest, entry.digest)", false), ("error.code == .notFound", false),
        ("[EMFILE, ENFILE].contains(code)", false),
        ("code == ENOENT && error.code != SQLITE_OK", false), ("code == 0", false),
        ("body.token == nil", false), ("code == ExitStatus.success", false),
        ("token.name == name", false), ("secret.count == keyBytes", false),
        ("bytes == token.bytes", false), ("let list: [Token] = []", false),
        ("let tokens = [token]", false), ("token = other", false), ("// token == other", false),
    ])
    func `a secret that is compared otherwise is found`(text: String, isBad: Bool) {
        let file = Self.file(text, path: "Sources/OperonHTTP/X.swift")
        #expect(Rules.comparedSecrets(file).isEmpty == !isBad)
    }

    @Test(arguments: [
        (#""DELETE FROM logs WHERE id = \(id)""#, ["id"]),
        (#""DELETE FROM \(table) WHERE \(key) >= ?""#, []),
        (#""INSERT INTO a VALUES (\(f("x", 1)), \(b))""#, [#"f("x", 1)"#, "b"]),
        ("try run(\"SELECT a FROM \" + name)", ["name"]),
        ("name + \n  \" WHERE id = ?\"", ["name"]), ("sql += \" ORDER BY id\"", ["sql"]),
        ("\"SELECT a \"\n    + \"FROM b\"", []),
        ("\"\"\"\nDELETE FROM a\nWHERE b = \\(c)\n\"\"\"", ["c"]),
        (#""The store \(path) was set up.""#, []), (#"// "SELECT \(a)""#, []),
    ])
    func `a value in SQL is found`(text: String, found: [String]) {
        let file = Self.file(text, path: "Sources/OperonSQLite/X.swift")
        let rules = Rules.composedSQL(file).map(\.rule)
        #expect(rules == found.map { "bind \($0) instead of writing it into SQL" })
    }

    @Test func `what nobody uses is found`() {
        let file = Self.file(
            """
            package struct Used { private let field = 1 }
            private static func unused() {}
            // unused
            public func published() {}
            let used = Used()
            let text = "\\(used)"
            enum Kind { case first }
            """
        )
        let found = Rules.unused(in: [file], among: [file]).map(\.rule)
        #expect(found == ["nobody uses unused", "nobody uses text", "nobody uses Kind"])
    }

    @Test(arguments: [
        ("Whoever asks is told.", true), ("It is nobody's.", true), ("The client is told.", false),
        ("`whoever`", false), ("A test: \"whoever asks\"", false), ("```\nwhoever\n```", false),
    ])
    func `a retired word is found in prose`(text: String, isBad: Bool) {
        let file = Self.file(text, path: "docs/X.md")
        #expect(Rules.retiredWords(file).isEmpty == !isBad)
    }

    @Test func `a leftover is found, in comments too`() {
        let word = "TO" + "DO"
        #expect(Rules.leftoverWords(Self.file("// \(word): later")).count == 1)
        #expect(Rules.leftoverWords(Self.file("let mas\(word)n = 1")).isEmpty)
    }

    @Test func `a path of one machine is found`() {
        #expect(Rules.machinePaths(Self.file("let p = \"/wo" + "rk/x\"")).count == 1)
        #expect(Rules.machinePaths(Self.file("let p = \"/usr/bin/env\"")).isEmpty)
    }

    @Test func `a command without a name is found`() {
        let first = "static let configuration = CommandConfiguration("
        #expect(Rules.unnamedCommands(Self.file("\(first)\n    abstract: \"\"\n)")).count == 1)
        #expect(Rules.unnamedCommands(Self.file("\(first)\n    commandName: \"a\",")).isEmpty)
    }

    @Test func `a long line is found, unless an address makes it long`() {
        let long = String(repeating: "x", count: 101)
        #expect(Rules.lineLengths(Self.file("a\n\(long)")).map(\.line) == [2])
        #expect(Rules.lineLengths(Self.file("// https://\(long)")).isEmpty)
        #expect(Rules.lineLengths(Self.file(String(long.dropFirst()))).isEmpty)
    }

    @Test func `a long file is found`() {
        let lines = Array(repeating: "x", count: 601).joined(separator: "\n")
        #expect(Rules.fileLength(Self.file(lines)).count == 1)
        #expect(Rules.fileLength(Self.file(String(lines.dropLast(2)))).isEmpty)
    }

    @Test func `a function is measured from its name to its brace`() {
        let text = """
            protocol P {
                func required(_ body: () -> Void)
            }
            struct S {
                init(
                    a: Int = { 1 }()
                ) {
                    let s = "}"  // }
                }
                func outer() {
                    func inner() { g { } }
                    for x in y {
                        if z { }
                    }
                }
            }
            """
        let found = Rules.functions(Self.file(text)).map { "\($0.name) \($0.line) \($0.length)" }
        #expect(found == ["init 5 5", "inner 11 1", "outer 10 6"])
    }

    @Test func `a long function is found, and the ratchet lets it pass`() {
        let body = Array(repeating: "    x()", count: 70).joined(separator: "\n")
        let file = Self.file("func f() {\n\(body)\n}")

        #expect(Rules.functionLengths(file, ratchet: [:]).count == 1)
        #expect(Rules.functionLengths(file, ratchet: ["\(file.path) f": 72]).isEmpty)
        #expect(Rules.functionLengths(file, ratchet: ["\(file.path) f": 71]).count == 1)
    }

    @Test(arguments: [
        ("private var waiting: [Key: Int] = [:]", "for x in waiting {", true),
        ("var waiting: Set<Key> = []", "for x in self.waiting where x.a {", true),
        ("var waiting = Set<Key>()", "for x in waiting {", true),
        ("var waiting = [Key: Int]()", "for (k, v) in waiting.values {", true),
        ("var waiting: [Key: Int]", "for x in waiting.sorted(by: f) {", false),
        ("var waiting: [Int]", "for x in waiting {", false),
        ("var waiting: [[Key: Int]]", "for x in waiting {", false),
        ("var waiting: OrderedDictionary<Key, Int>", "for x in waiting {", false),
    ])
    func `a loop in hash order is found`(declaration: String, loop: String, isBad: Bool) {
        let file = Self.file(declaration + "\n" + loop)
        #expect(Rules.hashOrder(file).isEmpty == !isBad)
    }
}
