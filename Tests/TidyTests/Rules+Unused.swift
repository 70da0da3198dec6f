extension Rules {
    /// Called by libraries, whose protocols ask for them.
    static let calledByLibraries: Set = [
        "customMirror", "decrement", "defaultCompletionKind", "defaultValueDescription",
        "destroyCounter", "destroyFloatingPointCounter", "destroyMeter", "destroyRecorder",
        "destroyTimer", "makeCounter", "makeFloatingPointCounter", "makeMeter", "makeRecorder",
        "makeTimer", "userInboundEventTriggered",
    ]

    private static let declaring: Set<Substring> = [
        "func", "var", "let", "case", "struct", "class", "enum", "typealias", "protocol", "actor",
    ]
    private static let modifiers: Set<Substring> = [
        "package", "internal", "private", "fileprivate", "static", "final", "mutating",
        "nonisolated", "indirect", "unsafe", "lazy", "weak", "consuming", "borrowing",
        "private(set)", "package(set)", "@discardableResult", "@usableFromInline", "@inlinable",
    ]

    /// Declarations of `files` whose name stands once in `all`, comments aside: nobody uses them.
    /// A name that something else has as well passes. So does what is public.
    static func unused(in files: [SourceFile], among all: [SourceFile]) -> [Violation] {
        var uses: [String: Int] = [:]
        for file in all {
            for line in file.lines {
                let code = line.drop { $0 == " " }
                if code.hasPrefix("//") { continue }
                for word in words(code) { uses[word, default: 0] += 1 }
            }
        }
        return files.flatMap { file in
            file.code.lines.enumerated().compactMap { index, line in
                guard let name = declaredName(line), uses[name] == 1,
                    !calledByLibraries.contains(name)
                else { return nil }
                return Violation(file.path, index + 1, "nobody uses \(name)")
            }
        }
    }

    /// `nil`: the line declares nothing, or something public.
    static func declaredName(_ line: String) -> String? {
        let tokens = line.split(separator: " ").drop { modifiers.contains($0) }
        guard let keyword = tokens.first, declaring.contains(keyword),
            let name = tokens.dropFirst().first
        else { return nil }
        // `case .a:` and `case A:` are not declarations.
        if keyword == "case", line.hasSuffix(":") || line.contains(": return") { return nil }
        return words(name).first {
            $0.first?.isNumber == false && (name.hasPrefix($0) || name.hasPrefix("`" + $0))
        }
    }

    private static func words(_ text: Substring) -> [String] {
        text.utf8.split { byte in
            !(byte >= 97 && byte <= 122 || byte >= 65 && byte <= 90 || byte >= 48 && byte <= 57
                || byte == 95 || byte >= 128)
        }.map { String(decoding: $0, as: UTF8.self) }
    }
}
