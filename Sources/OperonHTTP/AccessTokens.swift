package import OperonModel
import OperonSystem

/// The tokens of a file.
///
/// A token is a long random text that its holder sends with each request. The coordinator knows
/// only its SHA-256, and records the token's name with each action.
package struct AccessTokens: Sendable {
    private(set) var entries: [Entry] = []

    /// One token: its name, what it allows, and until when.
    struct Entry: Hashable, Sendable {
        var name: String
        var role: AccessRole
        /// SHA-256 of the token.
        @Secret var digest: [UInt8]
        /// The queues to which it may submit; `nil`: all.
        var queues: [String]?
        /// `nil`: it does not expire.
        var expires: WallTime?

        var caller: Caller { Caller(name: name, role: role, queues: queues, digest: digest) }
    }

    /// The least bytes of a token: half of what `openssl rand -hex 16` writes.
    package static let tokenBytesMin = 16
    /// The most bytes of a file of tokens.
    static let fileBytesMax = 1 << 20
    /// The most queues that a token names.
    package static let queuesMax = 100

    /// No tokens: everyone who can reach the address may do everything.
    package init() {}

    package var isEmpty: Bool { entries.isEmpty }

    package var count: Int { entries.count }

    /// Adds a token in the form in which its holder sends it.
    package mutating func add(
        _ name: String,
        token: String,
        role: AccessRole = .operate,
        queues: [String]? = nil,
        expires: WallTime? = nil
    ) {
        entries.append(
            Entry(
                name: name,
                role: role,
                digest: Self.digest(token),
                queues: queues,
                expires: expires
            )
        )
    }

    /// The token with this hash. Every token is compared, and every byte of it, so that the time
    /// reveals nothing.
    func entry(_ digest: [UInt8]) -> Entry? {
        var found: Entry?
        for entry in entries where SHA256.isEqual(digest, entry.digest) { found = entry }
        return found
    }

    static func digest(_ token: String) -> [UInt8] { SHA256.hash(of: Array(token.utf8)) }

    /// Reads a file of lines `NAME:TOKEN` or `NAME:sha256:HEX`, each optionally followed by a role,
    /// ` queues=NAME,…` and ` expires=TIME`. Empty lines and lines that begin with `#` are ignored.
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
        var names: Set<String> = []
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            let line = String(line).trimmingSpaces
            if line.isEmpty || line.hasPrefix("#") { continue }
            do throws(TokenLine.Problem) {
                let entry = try TokenLine(line).entry()
                guard names.insert(entry.name).inserted else {
                    throw TokenLine.Problem("the name “\(entry.name)” is there twice")
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
}

/// A line of a file of tokens: the name and the secret, then a role and options.
struct TokenLine {
    struct Problem: Error {
        let text: String

        init(_ text: String) { self.text = text }
    }

    let name: String
    private let secret: Substring
    private(set) var role: AccessRole?
    private(set) var options: [String: String] = [:]

    init(_ line: String) throws(Problem) {
        let words = line.split(whereSeparator: \.isWhitespace)
        guard let first = words.first, let colon = first.firstIndex(of: ":") else {
            throw Problem("it should be NAME:TOKEN, or NAME:TOKEN ROLE")
        }
        name = String(first[..<colon])
        secret = first[first.index(after: colon)...]
        guard Self.isName(name) else { throw Problem(Self.nameRule) }
        for word in words.dropFirst() {
            if let equals = word.firstIndex(of: "=") {
                let option = String(word[..<equals])
                let value = String(word[word.index(after: equals)...])
                guard options.updateValue(value, forKey: option) == nil else {
                    throw Problem("\(option)= is there twice")
                }
            } else {
                guard role == nil else {
                    // No word is repeated: it may be a token.
                    throw Problem("there is a word too much: it should be NAME:TOKEN ROLE")
                }
                guard let named = AccessRole(name: word) else {
                    throw Problem("the role is none of \(AccessRole.names) and read")
                }
                role = named
            }
        }
    }

    static let nameRule = "a name has 1 to 64 letters, digits, or any of ._@-"

    static func isName(_ name: String) -> Bool {
        let isName = name.utf8.allSatisfy { byte in
            byte.isASCIILetterOrDigit || "._@-".utf8.contains(byte)
        }
        return isName && (1...64).contains(name.utf8.count)
    }

    /// The token that the line describes.
    ///
    /// - Parameter more: Further options that this file may have.
    func entry(_ more: Set<String> = []) throws(Problem) -> AccessTokens.Entry {
        let known = more.union(["queues", "expires"])
        guard known.isSuperset(of: options.keys) else {
            throw Problem("there is an unknown option: queues= and expires= are known")
        }
        let role = role ?? .operate
        return AccessTokens.Entry(
            name: name,
            role: role,
            digest: try digest(),
            queues: try queues(role),
            expires: try time("expires")
        )
    }

    func time(_ option: String) throws(Problem) -> WallTime? {
        guard let text = options[option] else { return nil }
        guard let time = DateText.moment(text) else {
            throw Problem("\(option)= is \(DateText.hint)")
        }
        return time
    }

    private func queues(_ role: AccessRole) throws(Problem) -> [String]? {
        guard let text = options["queues"] else { return nil }
        guard role == .submit else {
            throw Problem(
                "queues= is only for the role submit: \(role.rawValue) is not bound to any"
            )
        }
        var queues: [String] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let name = PercentText.decode(part), !name.isEmpty else {
                throw Problem("queues= has names of queues, percent-encoded, with commas between")
            }
            queues.append(name)
        }
        guard queues.count <= AccessTokens.queuesMax else {
            throw Problem("queues= has at most \(AccessTokens.queuesMax) names")
        }
        return queues
    }

    private func digest() throws(Problem) -> [UInt8] {
        if secret.hasPrefix("sha256:") {
            guard let digest = HexText.digest(secret.dropFirst("sha256:".count)) else {
                throw Problem("a SHA-256 has 64 hexadecimal digits")
            }
            return digest
        }
        guard secret.utf8.count >= AccessTokens.tokenBytesMin,
            secret.utf8.allSatisfy({ (33...126).contains($0) })
        else {
            throw Problem(
                "a token has at least \(AccessTokens.tokenBytesMin) ASCII characters and no space"
            )
        }
        return AccessTokens.digest(String(secret))
    }
}

enum HexText {
    /// Thirty-two bytes from sixty-four digits.
    static func digest(_ text: Substring) -> [UInt8]? {
        let digits = text.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
        guard digits.count == 64, text.utf8.count == 64 else { return nil }
        return stride(from: 0, to: 64, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    /// Two lower-case digits for each byte.
    static func text(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] },
            as: UTF8.self
        )
    }
}
