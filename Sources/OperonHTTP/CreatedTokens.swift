import OperonModel
import OperonSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The tokens that were created by command, with those that were revoked, as a file that only the
/// coordinator writes. It has hashes, no tokens. Methods block.
struct CreatedTokens: Sendable {
    struct Entry: Hashable, Sendable {
        var token: AccessTokens.Entry
        var createdAt: WallTime
        var createdBy: String
        /// `nil`: it was not revoked.
        var revokedAt: WallTime?
    }

    /// The most tokens that are not revoked.
    static let tokensMax = 1_000
    /// The most revoked tokens whose holders are told that. Of older ones nothing is known.
    static let revokedMax = 1_000

    /// In the order of their creation.
    private(set) var entries: [Entry] = []

    init() {}

    func entry(_ digest: [UInt8]) -> Entry? {
        var found: Entry?
        for entry in entries where SHA256.isEqual(digest, entry.token.digest) { found = entry }
        return found
    }

    /// The token of this name that is not revoked.
    func valid(_ name: String) -> Entry? {
        entries.first { $0.token.name == name && $0.revokedAt == nil }
    }

    mutating func add(_ entry: Entry) throws(ClientErrorText) {
        guard entries.count(where: { $0.revokedAt == nil }) < Self.tokensMax else {
            throw ClientErrorText(
                "There are \(Self.tokensMax) tokens, and no more can be created: revoke those that "
                    + "nobody needs."
            )
        }
        entries.append(entry)
    }

    mutating func revoke(_ name: String, at time: WallTime) -> Entry? {
        guard
            let place = entries.firstIndex(where: {
                $0.token.name == name && $0.revokedAt == nil
            })
        else { return nil }
        entries[place].revokedAt = time
        let revoked = entries[place]
        let tooMany = entries.count(where: { $0.revokedAt != nil }) - Self.revokedMax
        if tooMany > 0, let oldest = entries.firstIndex(where: { $0.revokedAt != nil }) {
            entries.remove(at: oldest)
        }
        return revoked
    }

    struct ClientErrorText: Error {
        let text: String

        init(_ text: String) { self.text = text }
    }

    // MARK: - The file

    private static let header =
        "# Tokens that were created by “operon token create”. Only the coordinator writes here.\n"
    /// More than the most tokens need.
    private static let fileBytesMax = 64 << 20

    /// - Throws: an error if others can read the file, or if a line is not valid.
    init(file path: String) throws(HTTPServerError) {
        guard unsafe access(path, F_OK) == 0 || errno != ENOENT else { return }
        let bytes: [UInt8]
        do throws(SecretFile.Problem) {
            bytes = try SecretFile.readOwn(path, bytesMax: Self.fileBytesMax)
        } catch {
            throw HTTPServerError(error, "tokens", in: path)
        }
        let lines = String(decoding: bytes, as: UTF8.self).split(
            separator: "\n",
            omittingEmptySubsequences: false
        )
        for (index, line) in lines.enumerated() where !line.isEmpty && !line.hasPrefix("#") {
            do throws(TokenLine.Problem) {
                entries.append(try Self.entry(String(line)))
            } catch {
                throw HTTPServerError(.file, "\(path), line \(index + 1): \(error.text).")
            }
        }
    }

    private static func entry(_ text: String) throws(TokenLine.Problem) -> Entry {
        let line = try TokenLine(text)
        let token = try line.entry(["created", "by", "revoked"])
        guard let createdAt = try line.time("created"), line.role != nil else {
            throw TokenLine.Problem("it lacks the role or created=")
        }
        return Entry(
            token: token,
            createdAt: createdAt,
            createdBy: line.options["by"].flatMap { PercentText.decode($0[...]) } ?? "",
            revokedAt: try line.time("revoked")
        )
    }

    private static func line(_ entry: Entry) -> String {
        let token = entry.token
        var line = "\(token.name):sha256:\(HexText.text(token.digest)) \(token.role.rawValue)"
        if let queues = token.queues {
            line += " queues=" + queues.map(PercentText.encode).joined(separator: ",")
        }
        if let expires = token.expires { line += " expires=" + DateText.text(expires) }
        line += " created=" + DateText.text(entry.createdAt)
        if !entry.createdBy.isEmpty { line += " by=" + PercentText.encode(entry.createdBy) }
        if let revoked = entry.revokedAt { line += " revoked=" + DateText.text(revoked) }
        return line + "\n"
    }

    func write(to path: String) throws(HTTPServerError) {
        let text = Self.header + entries.map(Self.line).joined()
        do throws(SecretFile.Problem) {
            try SecretFile.replace(path, with: Array(text.utf8))
        } catch {
            throw HTTPServerError(error, "tokens", in: path)
        }
    }
}
