import OperonModel
import OperonSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Values of `forEach` and `matrix` from files of the machine where a graph file is submitted.
struct ElementSource {
    /// The bytes that a file of lines may have.
    static let linesBytesMax = 64 << 20

    /// The directory to which paths and patterns are relative.
    let base: String
    /// The number of values that a graph has room for.
    let valuesMax: Int
    /// Where the graph file names the source.
    let position: Position

    private func problem(
        _ code: GraphFileError.Code,
        _ key: String,
        _ thing: String,
        _ reason: String
    ) -> GraphFileError.Problem {
        GraphFileError.Problem(code, at: position, thing, "“\(key)” \(thing.quoted): \(reason)")
    }

    /// The lines of a UTF-8 text file, without those that are empty, and without the byte order
    /// mark that some editors write.
    func lines(of path: String) throws(GraphFileError.Problem) -> [String] {
        let bytes: [UInt8]
        do throws(Stop) {
            let source = try ByteSource(
                path: Path.joined(base, path),
                bytesMax: Self.linesBytesMax
            )
            bytes = try source.readAll()
        } catch {
            guard case .problem(let reason) = error else {
                throw problem(.unreadable, "lines", path, "the file cannot be read")
            }
            var problem = problem(reason.code, "lines", path, reason.message)
            problem.limit = reason.limit
            throw problem
        }
        var lines: [String] = []
        var rest = bytes.starts(with: Self.byteOrderMark) ? bytes.dropFirst(3) : bytes[...]
        var number = 0
        while !rest.isEmpty {
            number += 1
            let end = rest.firstIndex(of: Byte.newline) ?? rest.endIndex
            var line = rest[..<end]
            rest = rest[end...].dropFirst()
            // Files of Windows end their lines with two characters.
            if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
            guard !line.isEmpty else { continue }
            try checkCount(lines.count + 1, "lines", path)
            guard let text = String(validating: line, as: UTF8.self) else {
                throw problem(.syntax, "lines", path, "line \(number) is not UTF-8")
            }
            guard !text.hasControl else {
                let reason =
                    "line \(number) has a control character, and names of operations have none"
                throw problem(.invalidValue, "lines", path, reason)
            }
            lines.append(text)
        }
        return lines
    }

    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// The paths that match a pattern, sorted by their bytes and each once: `*`, `?` and `[a-z]` as
    /// in a shell. They are relative if their pattern is.
    ///
    /// - Throws: a problem for a pattern without wildcards that names no file.
    func files(matching patterns: [String]) throws(GraphFileError.Problem) -> [String] {
        var found: [String] = []
        for pattern in patterns {
            found += try files(matching: pattern)
            try checkCount(found.count, "files", pattern)
        }
        found.sort { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        // `String` takes two files for one if their names differ only in how Unicode writes them.
        var last: String?
        return found.filter { path in
            defer { last = path }
            return last.map { !$0.utf8.elementsEqual(path.utf8) } ?? true
        }
    }

    private func checkCount(
        _ count: Int,
        _ key: String,
        _ thing: String
    ) throws(GraphFileError.Problem) {
        guard count > valuesMax else { return }
        var problem = problem(
            .limitExceeded,
            key,
            thing,
            "there are more values than operations in a graph, \(valuesMax)"
        )
        problem.limit = .operationsPerGraph
        throw problem
    }

    private func files(matching pattern: String) throws(GraphFileError.Problem) -> [String] {
        guard !pattern.isEmpty else {
            throw problem(.invalidValue, "files", pattern, "the pattern is empty")
        }
        let isAbsolute = pattern.hasPrefix("/")
        let directory = base.hasSuffix("/") ? base : base + "/"
        var matches = unsafe glob_t()
        let whole = isAbsolute ? pattern : Self.escaped(directory) + pattern
        // A directory that does not exist has no files; any other error ends the search.
        let result = unsafe glob(
            whole,
            GLOB_NOSORT,
            { _, code in code == ENOENT ? 0 : 1 },
            &matches
        )
        let code = errno
        defer { unsafe globfree(&matches) }
        switch result {
        case 0: break
        case GLOB_NOMATCH where pattern.contains(where: { "*?[".contains($0) }): return []
        case GLOB_NOMATCH:
            throw problem(.unreadable, "files", pattern, "there is no such file")
        case GLOB_NOSPACE:
            throw problem(.unreadable, "files", pattern, "there is not enough memory")
        default:
            let reason = "a directory cannot be read: " + SystemWords.text(of: code)
            throw problem(.unreadable, "files", pattern, reason)
        }
        var paths: [String] = []
        for index in 0..<Int(unsafe matches.gl_pathc) {
            guard let bytes = unsafe matches.gl_pathv[index],
                let path = unsafe String(validatingCString: bytes)
            else {
                throw problem(
                    .unsupported,
                    "files",
                    pattern,
                    "the name of a file is not UTF-8"
                )
            }
            let own =
                isAbsolute ? path : String(Substring(path.utf8.dropFirst(directory.utf8.count)))
            paths.append(own)
        }
        return paths
    }

    /// A path in which no character is a wildcard.
    private static func escaped(_ path: String) -> String {
        var escaped = ""
        for scalar in path.unicodeScalars {
            if "*?[]\\".unicodeScalars.contains(scalar) { escaped += "\\" }
            escaped.unicodeScalars.append(scalar)
        }
        return escaped
    }
}
