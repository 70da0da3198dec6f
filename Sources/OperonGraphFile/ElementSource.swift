import OperonModel

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

    /// Why the values cannot be read.
    struct Failure: Error {
        let code: GraphFileError.Code
        let thing: String
        let message: String
    }

    /// The lines of a UTF-8 text file, without those that are empty.
    func lines(of path: String) throws(Failure) -> [String] {
        let bytes: [UInt8]
        do throws(Stop) {
            let source = try ByteSource(
                path: Path.joined(base, path),
                bytesMax: Self.linesBytesMax
            )
            bytes = try source.readAll()
        } catch {
            var reason = "the file cannot be read"
            var code = GraphFileError.Code.unreadable
            if case .problem(let problem) = error {
                reason = problem.message
                code = problem.code
            }
            throw Failure(code: code, thing: path, message: "“lines” \(path.quoted): \(reason)")
        }
        var lines: [String] = []
        var rest = bytes[...]
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
                throw Failure(
                    code: .syntax,
                    thing: path,
                    message: "“lines” \(path.quoted): line \(number) is not UTF-8"
                )
            }
            lines.append(text)
        }
        return lines
    }

    /// The paths that match a pattern, sorted by their bytes and each once: `*`, `?` and `[a-z]` as
    /// in a shell. They are relative if their pattern is.
    ///
    /// - Throws: `Failure` for a pattern without wildcards that names no file.
    func files(matching patterns: [String]) throws(Failure) -> [String] {
        var found: Set<String> = []
        for pattern in patterns {
            found.formUnion(try files(matching: pattern))
            try checkCount(found.count, "files", pattern)
        }
        return found.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    private func checkCount(_ count: Int, _ key: String, _ thing: String) throws(Failure) {
        guard count > valuesMax else { return }
        throw Failure(
            code: .limitExceeded,
            thing: thing,
            message: "“\(key)” \(thing.quoted) has more values than a graph has operations,"
                + " \(valuesMax)"
        )
    }

    private func files(matching pattern: String) throws(Failure) -> [String] {
        let isAbsolute = pattern.hasPrefix("/")
        let directory = base.hasSuffix("/") ? base : base + "/"
        var matches = unsafe glob_t()
        let whole = isAbsolute ? pattern : Self.escaped(directory) + pattern
        let result = unsafe glob(whole, GLOB_ERR | GLOB_NOSORT, nil, &matches)
        defer { unsafe globfree(&matches) }
        switch result {
        case 0: break
        case GLOB_NOMATCH where pattern.contains(where: { "*?[".contains($0) }): return []
        case GLOB_NOMATCH:
            throw Failure(
                code: .unreadable,
                thing: pattern,
                message: "“files” \(pattern.quoted): there is no such file"
            )
        default:
            throw Failure(
                code: .unreadable,
                thing: pattern,
                message: "“files” \(pattern.quoted): a directory cannot be read"
            )
        }
        var paths: [String] = []
        for index in 0..<Int(unsafe matches.gl_pathc) {
            guard let bytes = unsafe matches.gl_pathv[index],
                let path = unsafe String(validatingCString: bytes)
            else {
                throw Failure(
                    code: .unsupported,
                    thing: pattern,
                    message: "“files” \(pattern.quoted): the name of a file is not UTF-8"
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
