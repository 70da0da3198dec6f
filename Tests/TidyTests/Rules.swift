/// The rules, as functions from text to violations, so that each can be tried on a planted one.
enum Rules {
    static let lineMax = 100
    static let fileLinesMax = 600
    static let functionLinesMax = 70

    // MARK: - Layers

    /// What each target may import. A target that is not here may import nothing.
    static let allowedImports: [String: Set<String>] = {
        let libc: Set = ["Glibc", "Musl", "Darwin"]
        let ports: Set = ["OperonModel", "OperonPorts", "OperonSystem"]
        let nio: Set = ["NIOCore", "NIOPosix", "NIOSSL", "Synchronization"]
        let core: Set = ["OperonModel", "HeapModule", "DequeModule", "OrderedCollections"]
        let shell = ports.union([
            "OperonCore", "OperonTrust", "OperonWire", "COperonProcess", "Logging",
        ])
        let programs = shell.union(libc).union([
            "OperonRuntime", "OperonAMQP", "OperonTerminal", "OperonGraphFile", "OperonArguments",
            "OperonHTTP", "OperonMetrics", "OperonReport", "OperonSQLite",
            "ArgumentParser", "FoundationEssentials", "NIOCore", "NIOPosix", "Synchronization",
            "UnixSignals",
        ])
        return [
            "OperonModel": [],
            // What others ask of the system alike: its words for errors, who may read a file,
            // hashes, and which faults are logged.
            "OperonSystem": libc.union(["OperonModel", "COpenSSL", "Synchronization"]),
            "OperonCore": core,
            "OperonWire": ["OperonModel", "SwiftProtobuf"],
            // It also reads and writes the files of keys.
            "OperonTrust": libc.union(["OperonModel", "OperonSystem", "DequeModule"]),
            // A lock and an array: what both transports queue with.
            "OperonPorts": ["OperonModel", "Synchronization"],
            "OperonAMQP": ports.union(nio).union(libc).union([
                "OperonCore", "CRabbitMQ", "Logging",
            ]),
            "OperonGraphFile": ports.union(libc).union(["COperonYAML"]),
            "OperonTerminal": libc.union([
                "OperonModel", "OperonSystem", "Synchronization",
            ]),
            "OperonReport": ["HeapModule", "OperonModel", "OperonSystem", "OperonTerminal"],
            "OperonSQLite": ports.union(libc).union([
                "COperonSQLite", "NIOConcurrencyHelpers", "Synchronization",
                // The rare records of the journal are JSON.
                "FoundationEssentials",
            ]),
            // JSON needs Foundation's coders, which live in the smaller part of it.
            "OperonHTTP": ports.union(nio).union(libc).union([
                "AsyncHTTPClient", "COperonAPI", "COperonPage", "FoundationEssentials",
                "HTTPTypes", "HummingbirdCore", "Logging", "NIOHTTP1",
                "NIOHTTPTypes",
                // It lays out the pictures that the page draws.
                "OperonReport",
            ]),
            "OperonRuntime": shell.union(libc).union([
                "Synchronization", "DequeModule",
                "CoreMetrics", "Instrumentation", "ServiceContextModule", "Tracing",
                "UnixSignals",
            ]),
            "OperonMetrics": ["CoreMetrics", "Synchronization"],
            // It writes Protocol Buffers with the writer that the wire has.
            "OperonTracing": ports.union(nio).union([
                "AsyncHTTPClient", "CZlib", "DequeModule", "NIOHTTP1", "OperonWire",
            ]),
            "OperonTestKit": ports.union(core).union(["OperonCore", "OperonWire", "Foundation"]),
            // It speaks the wire as others would.
            "OperonFaultKit": nio.union(libc).union([
                "COperonProcess", "Foundation", "OperonCore", "OperonModel", "OperonTrust",
                "OperonWire",
            ]),
            // It makes what programs make, and leaves the choice to them. Not Foundation, which
            // has an Operation of its own.
            "Operon": ports.union([
                "OperonRuntime", "OperonAMQP", "OperonCore", "OperonGraphFile", "OperonHTTP",
                "OperonSQLite", "OperonTrust", "DequeModule", "Logging",
                "ServiceLifecycle", "Synchronization", "UnixSignals", "FoundationEssentials",
            ]),
            "OperonFoundation": ["Foundation", "Operon"],
            "OperonTesting": [
                "Logging", "Operon", "OperonModel", "OperonRuntime", "Synchronization",
            ],
            // What the programs have in common: they alone may import it.
            "OperonArguments": [
                "ArgumentParser", "FoundationEssentials", "Logging", "OperonModel", "OperonPorts",
                "OperonRuntime", "OperonSystem", "OperonTerminal", "OperonTracing", "OperonTrust",
            ],
            "operon": programs,
            "operon-worker": programs,
        ]
    }()

    static func imports(_ file: SourceFile) -> [Violation] {
        let allowed = allowedImports[file.target] ?? []
        return file.code.lines.enumerated().compactMap { index, line in
            guard let module = importedModule(line), !allowed.contains(module) else { return nil }
            return Violation(file.path, index + 1, "\(file.target) may not import \(module)")
        }
    }

    /// The module of an import line, whatever stands before and behind it.
    static func importedModule(_ line: String) -> String? {
        var words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })[...]
        let before: Set<Substring> = [
            "public", "package", "internal", "fileprivate", "private", "@testable",
            "@preconcurrency", "@_exported",
        ]
        while let word = words.first, before.contains(word) { words.removeFirst() }
        guard words.popFirst() == "import" else { return nil }
        let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "let"]
        if let word = words.first, kinds.contains(word) { words.removeFirst() }
        return words.first.flatMap { $0.split(separator: ".").first }.map(String.init)
    }

    // MARK: - Words

    /// Words that have no place in what decides, and what to use instead.
    static let bannedInCore: [(word: String, instead: String)] = [
        ("Foundation", "the standard library"), ("Glibc", "the standard library"),
        ("Task", "an effect"), ("async", "an event later"), ("await", "an event later"),
        ("ContinuousClock", "the time that is passed in"),
        ("SuspendingClock", "the time that is passed in"), ("Date", "a WallTime passed in"),
        ("print", "a notice"), ("unsafe", "an array"), ("Logger", "a notice"),
    ]

    /// Words that have no place anywhere, and what to use instead.
    static let bannedEverywhere: [(word: String, instead: String)] = [
        ("try!", "an error with a sentence"), ("Thread.sleep", "waiting for a signal"),
        ("DispatchQueue", "an actor"), ("DispatchSemaphore", "an async stream"),
        ("fatalError()", "fatalError with a sentence"),
        ("preconditionFailure()", "preconditionFailure with a sentence"),
    ]

    /// What a finished file has none of, comments included. Spelled apart, so that this file may
    /// be read by the rule as well.
    static let leftovers = ["FIX" + "ME", "TO" + "DO", "XX" + "X:"]

    static func bannedWords(
        _ file: SourceFile,
        _ banned: [(word: String, instead: String)]
    ) -> [Violation] {
        file.code.lines.enumerated().flatMap { index, line in
            banned.filter { contains(line, word: $0.word) }.map {
                Violation(file.path, index + 1, "no \($0.word): use \($0.instead)")
            }
        }
    }

    /// Chance without a generator that is passed in.
    static func chance(_ file: SourceFile) -> [Violation] {
        file.code.lines.enumerated().compactMap { index, line in
            let draws = [".random(", ".randomElement(", ".shuffled(", ".shuffle("]
            let isBad = draws.contains { line.containsBytes(of: $0) } && !line.contains("using:")
            return isBad
                ? Violation(file.path, index + 1, "chance comes from a generator passed in") : nil
        }
    }

    static func leftoverWords(_ file: SourceFile) -> [Violation] {
        file.lines.enumerated().flatMap { index, line in
            leftovers.filter { contains(String(line), word: $0) }.map {
                Violation(file.path, index + 1, "leftover \($0)")
            }
        }
    }

    /// Paths that exist on one machine only, and folders outside of the repository.
    static func machinePaths(_ file: SourceFile) -> [Violation] {
        let paths = ["/wo" + "rk/", "/tmp" + "/w/", "/home" + "/user", "../sha" + "red"]
        return file.lines.enumerated().flatMap { index, line in
            paths.filter { line.containsBytes(of: $0) }.map {
                Violation(file.path, index + 1, "path of one machine: \($0)")
            }
        }
    }

    /// Whether the word stands there by itself, not as a part of a longer name.
    static func contains(_ line: String, word: String) -> Bool {
        guard line.containsBytes(of: word) else { return false }
        func isName(_ character: Character?) -> Bool {
            character.map { $0.isLetter || $0.isNumber || $0 == "_" } ?? false
        }
        var rest = line[...]
        var before: Character?
        while let range = firstRange(of: word, in: rest) {
            if range.lowerBound > rest.startIndex {
                before = rest[rest.index(before: range.lowerBound)]
            }
            let after = range.upperBound < rest.endIndex ? rest[range.upperBound] : nil
            let endsInName = isName(word.last)
            if !(isName(word.first) && isName(before)), !(endsInName && isName(after)) {
                return true
            }
            before = word.last
            rest = rest[range.upperBound...]
        }
        return false
    }

    private static func firstRange(
        of word: String,
        in text: Substring
    ) -> Range<Substring.Index>? {
        var start = text.startIndex
        while start < text.endIndex {
            if text[start...].hasPrefix(word) {
                return start..<text.index(start, offsetBy: word.count)
            }
            start = text.index(after: start)
        }
        return nil
    }
}
