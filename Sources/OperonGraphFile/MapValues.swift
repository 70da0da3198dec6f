package import OperonModel

/// The command and the values of `operon map`, and the rows that the values make: one operation for
/// each. Memory is that of the values, not of the rows.
package struct MapValues: Sendable {
    /// The command before the values; empty: the values are the commands.
    package let command: String
    /// How many values each row has.
    package let sourceCount: Int
    /// The number of rows.
    package let count: Int
    /// Sources whose values are taken side by side; the groups make a product.
    private let groups: [[[String]]]

    /// Where values come from.
    private enum Source {
        case values([String])
        case file(String)
        case standardInput
    }

    /// How the words after a separator are taken.
    private enum Separator: String {
        case values = ":::"
        case files = "::::"
        case linkedValues = ":::+"
        case linkedFiles = "::::+"

        var isLinked: Bool { self == .linkedValues || self == .linkedFiles }
        var isFiles: Bool { self == .files || self == .linkedFiles }
    }

    /// Reads the values.
    ///
    /// - Parameters:
    ///   - words: the command and the values, as the shell passes them.
    ///   - files: files of values, before those of the words; `-` stands for standard input.
    ///   - isNull: whether the values of files and of standard input end with NUL, not with a
    ///     newline.
    /// - Throws: what is wrong with the words, the files or their number.
    package init(
        words: [String],
        files: [String],
        isNull: Bool,
        limits: Limits = Limits()
    ) throws(MapError) {
        var sources: [(source: Source, isLinked: Bool)] = files.map { (Self.file($0), false) }
        let first = words.firstIndex { Separator(rawValue: $0) != nil }
        if let first {
            command = words[..<first].joined(separator: " ")
            sources += try Self.sources(words[first...])
        } else {
            command = words.first ?? ""
            if words.count > 1 {
                sources.append((.values(try Self.values(words.dropFirst())), false))
            }
        }
        if sources.isEmpty { sources = [(.standardInput, false)] }
        if sources.count(where: { if case .standardInput = $0.source { true } else { false } }) > 1
        {
            throw MapError("Standard input is named as a source of values twice.")
        }
        var groups: [[[String]]] = []
        for (source, isLinked) in sources {
            let values = try Self.read(source, isNull: isNull, limits)
            if isLinked, !groups.isEmpty {
                groups[groups.count - 1].append(values)
            } else {
                groups.append([values])
            }
        }
        self.groups = groups
        sourceCount = sources.count
        count = try Self.count(groups, limits)
    }

    /// The values of a row, by its index. The last source changes fastest.
    package subscript(index: Int) -> [String] {
        var rest = index
        var rows: [[String]] = []
        for group in groups.reversed() {
            let count = Self.length(group)
            rows.append(group.map { $0[rest % count] })
            rest /= count
        }
        return rows.reversed().flatMap { $0 }
    }

    /// The shortest of linked sources decides.
    private static func length(_ group: [[String]]) -> Int { group.map(\.count).min() ?? 0 }

    private static func count(_ groups: [[[String]]], _ limits: Limits) throws(MapError) -> Int {
        var count = 1
        for group in groups {
            let (product, isTooLarge) = count.multipliedReportingOverflow(by: length(group))
            count = isTooLarge ? .max : product
        }
        // A source without values makes no rows, however many the others have.
        if groups.contains(where: { length($0) == 0 }) { count = 0 }
        guard count <= limits.operationsPerGraph else {
            throw tooMany(count == .max ? "more than can be counted" : "\(count)", limits)
        }
        return count
    }

    private static func tooMany(_ count: String, _ limits: Limits) -> MapError {
        MapError(
            "Too many operations: \(count), and a graph has at most \(limits.operationsPerGraph)"
                + " (\(LimitName.operationsPerGraph.rawValue)); split the values."
        )
    }

    // MARK: - Words

    private static func sources(
        _ words: ArraySlice<String>
    ) throws(MapError) -> [(source: Source, isLinked: Bool)] {
        var sources: [(source: Source, isLinked: Bool)] = []
        var rest = words
        while let word = rest.popFirst(), let separator = Separator(rawValue: word) {
            if separator.isLinked, sources.isEmpty {
                throw MapError(
                    "\(word) takes its values together with those of the source before it, and"
                        + " there is none."
                )
            }
            let values = rest.prefix { Separator(rawValue: $0) == nil }
            rest = rest[values.endIndex...]
            if separator.isFiles {
                guard !values.isEmpty else { throw MapError("\(word) needs the name of a file.") }
                sources += values.map { (file($0), separator.isLinked) }
            } else {
                sources.append((.values(Array(values)), separator.isLinked))
            }
        }
        return sources
    }

    /// - Throws: if a command was not quoted, so that its words would be taken for values.
    private static func values(_ words: ArraySlice<String>) throws(MapError) -> [String] {
        let part = words.first { $0.hasPrefix("-") || CommandTemplate.hasReplacement($0) }
        if let part {
            throw MapError(
                "\(part.quoted) is taken for a value, because only the first word is the command:"
                    + " quote the whole command, or write ::: before the values."
            )
        }
        return Array(words)
    }

    private static func file(_ path: String) -> Source {
        path == "-" ? .standardInput : .file(path)
    }

    // MARK: - Reading

    private static func read(
        _ source: Source,
        isNull: Bool,
        _ limits: Limits
    ) throws(MapError) -> [String] {
        do throws(Stop) {
            switch source {
            case .values(let values): return values
            case .file(let path):
                let bytes = try ByteSource(path: path, bytesMax: limits.graphFileBytes)
                return try split(bytes, at: isNull ? 0 : newline, limits)
            case .standardInput:
                let bytes = try ByteSource(duplicating: 0, bytesMax: limits.graphFileBytes)
                return try split(bytes, at: isNull ? 0 : newline, limits)
            }
        } catch .problem(let problem) {
            let name = if case .file(let path) = source { path } else { "standard input" }
            throw MapError("\(name.shortened): \(problem.message)")
        } catch {
            preconditionFailure("only readers of graph files collect problems")
        }
    }

    private static let newline = UInt8(ascii: "\n")
    /// MAX_ARG_STRLEN of Linux (execve(2)), without the NUL at the end.
    private static let valueBytesMax = (128 << 10) - 1

    /// Splits a source while it is read, so that one that is too long is refused early. The last
    /// value needs no end.
    private static func split(
        _ source: consuming ByteSource,
        at end: UInt8,
        _ limits: Limits
    ) throws(Stop) -> [String] {
        var values: [String] = []
        var buffer: [UInt8] = []
        func add(_ bytes: ArraySlice<UInt8>) throws(Stop) {
            guard values.count < limits.operationsPerGraph else {
                let more = tooMany("more than \(limits.operationsPerGraph)", limits)
                throw .problem(.init(.limitExceeded, at: .none, "", more.message))
            }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw .problem(
                    .init(.syntax, at: .none, "", "value \(values.count + 1) is not UTF-8 text")
                )
            }
            guard !text.utf8.contains(0) else {
                throw .problem(
                    .init(
                        .syntax,
                        at: .none,
                        "",
                        "value \(values.count + 1) has a NUL character; do the values end with"
                            + " NUL (--null)?"
                    )
                )
            }
            values.append(text)
        }
        // The bytes that are known to have no end of a value.
        var searched = 0
        while try source.read(appendingTo: &buffer) {
            var rest = buffer[...]
            while let place = rest[(rest.startIndex + searched)...].firstIndex(of: end) {
                try add(rest[..<place])
                rest = rest[(place + 1)...]
                searched = 0
            }
            searched = rest.count
            guard searched <= valueBytesMax else {
                throw .problem(
                    .init(
                        .limitExceeded,
                        at: .none,
                        "",
                        "value \(values.count + 1) has more than \(valueBytesMax) bytes, which is"
                            + " more than Linux takes as one argument of a program"
                    )
                )
            }
            if rest.count < buffer.count { buffer = Array(rest) }
        }
        if !buffer.isEmpty { try add(buffer[...]) }
        return values
    }
}
