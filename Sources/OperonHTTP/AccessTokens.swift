import OperonModel
import OperonSystem

/// The tokens that give access to the API.
///
/// A token is a long random text that its holder sends with each request. The coordinator knows
/// only its SHA-256, and records the token's name with each action.
package struct AccessTokens: Sendable {
    private var entries: [Entry] = []

    private struct Entry: Sendable {
        let name: String
        let scope: AccessScope
        /// SHA-256 of the token.
        let digest: [UInt8]
    }

    /// The least bytes of a token: half of what `openssl rand -hex 16` writes.
    package static let tokenBytesMin = 16
    /// The most bytes of a file of tokens.
    private static let fileBytesMax = 1 << 20

    /// No tokens: everyone who can reach the address may do everything.
    package init() {}

    package var isEmpty: Bool { entries.isEmpty }

    /// Adds a token in the form in which its holder sends it.
    package mutating func add(_ name: String, token: String, scope: AccessScope = .operate) {
        entries.append(Entry(name: name, scope: scope, digest: Self.digest(token)))
    }

    /// The holder of a token. Every token is compared, and every byte of it, so that the time
    /// reveals nothing.
    package func caller(showing token: String) -> Caller? {
        let digest = Self.digest(token)
        var found: Caller?
        for entry in entries {
            if SHA256.isEqual(digest, entry.digest) {
                found = Caller(name: entry.name, scope: entry.scope)
            }
        }
        return found
    }

    private static func digest(_ token: String) -> [UInt8] {
        SHA256.hash(of: Array(token.utf8))
    }

    /// Reads a file of lines `NAME:TOKEN` or `NAME:sha256:HEX`, each optionally followed by ` read`
    /// or ` operate`. Empty lines and lines that begin with `#` are ignored.
    /// - Throws: an error if others can read the file, or the number of a line that is not valid.
    ///   No error contains a token.
    package init(file path: String) throws(HTTPServerError) {
        let bytes: [UInt8]
        do throws(SecretFile.Problem) {
            bytes = try SecretFile.read(path, bytesMax: Self.fileBytesMax)
        } catch {
            throw HTTPServerError(error, "tokens", in: path)
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw HTTPServerError(.file, "\(path) is not UTF-8 text.")
        }
        try self.init(text: text, path: path)
    }

    init(text: String, path: String) throws(HTTPServerError) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            let line = String(line).trimmingSpaces
            if line.isEmpty || line.hasPrefix("#") { continue }
            do throws(LineProblem) {
                let entry = try Self.entry(line)
                guard !entries.contains(where: { $0.name == entry.name }) else {
                    throw LineProblem(text: "the name “\(entry.name)” is there twice")
                }
                entries.append(entry)
            } catch {
                throw HTTPServerError(.file, "\(path), line \(index + 1): \(error.text).")
            }
        }
        guard !entries.isEmpty else {
            throw HTTPServerError(
                .file,
                "\(path) has no token: write a line NAME:TOKEN; to make a token, use "
                    + "“openssl rand -hex 32”."
            )
        }
    }

    private struct LineProblem: Error { let text: String }

    private static func entry(_ line: String) throws(LineProblem) -> Entry {
        let words = line.split(whereSeparator: \.isWhitespace)
        guard words.count <= 2, let colon = words[0].firstIndex(of: ":") else {
            throw LineProblem(text: "it should be NAME:TOKEN, or NAME:TOKEN read")
        }
        var scope = AccessScope.operate
        if words.count == 2 {
            guard let named = AccessScope(rawValue: String(words[1])) else {
                throw LineProblem(text: "“\(words[1])” is neither read nor operate")
            }
            scope = named
        }
        let name = String(words[0][..<colon])
        let isName = name.utf8.allSatisfy { byte in
            byte.isASCIILetterOrDigit || "._@-".utf8.contains(byte)
        }
        guard (1...64).contains(name.utf8.count), isName else {
            throw LineProblem(text: "a name has 1 to 64 letters, digits, or any of ._@-")
        }
        let secret = words[0][words[0].index(after: colon)...]
        if secret.hasPrefix("sha256:") {
            guard let digest = HexText.digest(secret.dropFirst("sha256:".count)) else {
                throw LineProblem(text: "a SHA-256 has 64 hexadecimal digits")
            }
            return Entry(name: name, scope: scope, digest: digest)
        }
        guard secret.utf8.count >= tokenBytesMin,
            secret.utf8.allSatisfy({ (33...126).contains($0) })
        else {
            throw LineProblem(
                text: "a token has at least \(tokenBytesMin) ASCII characters and no space"
            )
        }
        return Entry(name: name, scope: scope, digest: Self.digest(String(secret)))
    }
}

/// What a token allows.
package enum AccessScope: String, Hashable, Sendable {
    /// Only to look.
    case read
    /// To look, and everything else.
    case operate
}

/// The sender of a request.
package struct Caller: Hashable, Sendable {
    /// Empty if no token was needed.
    package var name: String
    package var scope: AccessScope
}

private enum HexText {
    /// Thirty-two bytes from sixty-four digits.
    static func digest(_ text: Substring) -> [UInt8]? {
        let digits = text.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
        guard digits.count == 64, text.utf8.count == 64 else { return nil }
        return stride(from: 0, to: 64, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
