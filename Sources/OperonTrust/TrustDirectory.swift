import OperonModel
import OperonSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The directory with the keys of a coordinator.
///
/// - `coordinator.keys`: the private key, and how it came from those before it. Who has it commands
///   the workers.
/// - `join`: a token without limits, for workers of the same user on the same machine.
/// - `revoked`: the grants and workers' keys that are not valid any more, one on each line.
package struct TrustDirectory: Hashable, Sendable {
    package let path: String

    package init(path: String) { self.path = path }

    private var keysFile: String { path + "/coordinator.keys" }
    package var joinFile: String { path + "/join" }
    private var revokedFile: String { path + "/revoked" }

    /// Where the programs of a user look if nothing else is said: `operon/trust` in
    /// `$XDG_CONFIG_HOME`, or in `.config` of `$HOME`; `nil`: there is neither.
    package static func standard(_ environment: [String: String]) -> TrustDirectory? {
        if let folder = environment["XDG_CONFIG_HOME"], folder.hasPrefix("/") {
            return TrustDirectory(path: folder + "/operon/trust")
        }
        guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
        return TrustDirectory(path: home + "/.config/operon/trust")
    }

    /// The most lines of `revoked`.
    private static let revokedMax = 100_000
    private static let fileBytesMax = 8 << 20

    // MARK: - Keys

    /// Draws keys and writes them, with a token for workers of this user.
    ///
    /// - Returns: `nil` if there are keys already, which stay as they are.
    package func create() throws(TrustError) -> CoordinatorKeys? {
        let keys = CoordinatorKeys()
        do throws(SecretFile.Problem) {
            try SecretFile.makeFolder(path)
            guard try SecretFile.create(keysFile, with: Array(keys.text.utf8)) else { return nil }
        } catch {
            throw TrustError(error.sentence("keys", in: keysFile))
        }
        try writeJoinFile(of: keys)
        return keys
    }

    /// The id of the token for workers of the same user; `nil`: there is none.
    package var joinID: String? { (try? JoinToken.read(joinFile))?.grant.idText }

    private func writeJoinFile(of keys: CoordinatorKeys) throws(TrustError) {
        // The same grant, so that revoking it revokes all tokens that were ever there.
        var grant = try WorkerGrant()
        if let before = try? JoinToken.read(joinFile) { grant = before.grant }
        let token = JoinToken(grant, by: keys)
        do throws(SecretFile.Problem) {
            try SecretFile.replace(joinFile, with: Array((token.text + "\n").utf8))
        } catch {
            throw TrustError(error.sentence("join token", in: joinFile))
        }
    }

    /// - Returns: `nil` if there are no keys.
    package func keys() throws(TrustError) -> CoordinatorKeys? {
        guard unsafe access(keysFile, F_OK) == 0 || errno != ENOENT else { return nil }
        let text = try Self.text(of: keysFile, "keys")
        return try CoordinatorKeys(text: text, path: keysFile)
    }

    /// The keys, which are drawn if there are none.
    package func keysMadeIfMissing() throws(TrustError) -> (keys: CoordinatorKeys, areNew: Bool) {
        if let keys = try keys() {
            // Whoever made the keys may have ended before.
            if unsafe access(joinFile, F_OK) != 0 { try writeJoinFile(of: keys) }
            return (keys, false)
        }
        if let keys = try create() { return (keys, true) }
        // Somebody else has made them meanwhile.
        guard let keys = try keys() else { throw TrustError("\(keysFile) comes and goes.") }
        return (keys, false)
    }

    /// Replaces the keys by their successors.
    package func rotate() throws(TrustError) -> CoordinatorKeys {
        let lock = try locked()
        defer { close(lock) }
        guard let keys = try keys() else { throw missing }
        let next = keys.rotated()
        do throws(SecretFile.Problem) {
            try SecretFile.replace(keysFile, with: Array(next.text.utf8))
        } catch {
            throw TrustError(error.sentence("keys", in: keysFile))
        }
        try writeJoinFile(of: next)
        return next
    }

    package var missing: TrustError {
        TrustError("There are no keys in \(path): “operon trust init” makes them.")
    }

    // MARK: - What is revoked

    package func revoked() throws(TrustError) -> Set<[UInt8]> {
        guard unsafe access(revokedFile, F_OK) == 0 || errno != ENOENT else { return [] }
        var revoked: Set<[UInt8]> = []
        let lines = try Self.text(of: revokedFile, "list").split(
            separator: "\n",
            omittingEmptySubsequences: false
        )
        guard lines.count <= Self.revokedMax else {
            throw TrustError("\(revokedFile) has more than \(Self.revokedMax) lines.")
        }
        for (index, line) in lines.enumerated() where !line.isEmpty && !line.hasPrefix("#") {
            guard let id = Self.id(line) else {
                throw TrustError("\(revokedFile), line \(index + 1): \(Self.idForm).")
            }
            revoked.insert(id)
        }
        return revoked
    }

    /// Adds a grant or a worker's key to what is revoked.
    ///
    /// - Returns: `false` if it was revoked already.
    package func revoke(_ text: String) throws(TrustError) -> Bool {
        guard let id = Self.id(text) else {
            throw TrustError("“\(text)” cannot be revoked: \(Self.idForm).")
        }
        let lock = try locked()
        defer { close(lock) }
        guard try keys() != nil else { throw missing }
        var revoked = try revoked()
        guard revoked.insert(id).inserted else { return false }
        let lines = revoked.map(Hex.text).sorted().joined(separator: "\n")
        do throws(SecretFile.Problem) {
            try SecretFile.replace(revokedFile, with: Array((lines + "\n").utf8))
        } catch {
            throw TrustError(error.sentence("list", in: revokedFile))
        }
        return true
    }

    private static let idForm =
        "a token has \(2 * WorkerGrant.idBytes) hexadecimal digits, a worker's key "
        + "\(2 * Ed25519.keyBytes)"

    private static func id(_ text: some StringProtocol) -> [UInt8]? {
        Hex.bytes(text, count: WorkerGrant.idBytes) ?? Hex.bytes(text, count: Ed25519.keyBytes)
    }

    // MARK: - Files

    /// A descriptor that keeps others from changing anything until it is closed.
    private func locked() throws(TrustError) -> Int32 {
        let number = unsafe open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
        guard number >= 0 else {
            guard errno != ENOENT else { throw missing }
            throw TrustError("\(path) cannot be opened: \(SystemWords.lastError()).")
        }
        while flock(number, LOCK_EX) != 0 {
            guard errno == EINTR else {
                let why = SystemWords.lastError()
                close(number)
                throw TrustError("\(path) cannot be locked: \(why).")
            }
        }
        return number
    }

    /// What changes when one of the files does.
    package var stamp: [String] {
        [keysFile, revokedFile].map { path in
            var status = stat()
            guard unsafe stat(path, &status) == 0 else { return "" }
            let time = status.st_mtim
            return "\(status.st_ino) \(status.st_size) \(time.tv_sec).\(time.tv_nsec)"
        }
    }

    private static func text(of path: String, _ what: String) throws(TrustError) -> String {
        let bytes: [UInt8]
        do throws(SecretFile.Problem) {
            bytes = try SecretFile.read(path, bytesMax: fileBytesMax)
        } catch {
            throw TrustError(error.sentence(what, in: path))
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw TrustError("\(path) is not UTF-8 text.")
        }
        return text
    }
}
