import OperonModel
import OperonSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension JoinToken {
    /// Reads a token from a file, or from the file `join` in a directory of keys.
    package static func read(_ path: String) throws(TrustError) -> JoinToken {
        var status = stat()
        let isFolder = unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
        let file = isFolder ? TrustDirectory(path: path).joinFile : path
        let bytes: [UInt8]
        do throws(SecretFile.Problem) {
            bytes = try SecretFile.read(file, bytesMax: JoinToken.textBytesMax)
        } catch {
            throw TrustError(error.sentence("join token", in: file))
        }
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        do throws(TrustError) {
            return try JoinToken(text: lines.first.map(String.init) ?? "")
        } catch {
            throw TrustError("\(file): \(error.message)")
        }
    }
}

/// What a worker keeps of its trust in its state directory, in the file `trust`.
package struct WorkerTrustStore: Sendable {
    private let path: String

    package init(stateDirectory: String) { path = stateDirectory + "/trust" }

    private static let fileBytesMax = 128 << 10

    private struct Kept {
        @Secret var privateKey: [UInt8]
        var nonce: [UInt8]?
        /// The coordinator's key, or its latest successor.
        var pin: [UInt8]?
        var certificate: WorkerCertificate?
        /// The key that made the token by which the worker joined.
        var issuer: [UInt8]?
    }

    /// Who the worker is in this life. Writes nothing: the caller may not have the directory yet.
    ///
    /// A worker that has joined with a token of the same coordinator does not need the token again.
    package func identity(_ token: JoinToken) throws(TrustError) -> WorkerTrust {
        let kept = try read()
        let isMember = kept?.issuer == token.issuer
        let certificate = isMember ? kept?.certificate : nil
        // Another token of the same coordinator may allow something else.
        let isSameGrant = certificate?.grant.id == token.grant.id
        return WorkerTrust(
            privateKey: kept?.privateKey ?? RandomBytes.draw(Ed25519.keyBytes),
            nonce: RandomBytes.draw(Credentials.nonceBytes),
            predecessorNonce: kept?.nonce,
            pin: (isMember ? kept?.pin : nil) ?? token.issuer,
            proof: certificate.flatMap { isSameGrant ? .certificate($0) : nil } ?? .token(token)
        )
    }

    /// Keeps the worker's key and this life. Call it once the directory is locked.
    package func begin(_ identity: WorkerTrust, _ token: JoinToken) throws(TrustError) {
        var kept = try read()
        if kept?.issuer != token.issuer {
            kept?.certificate = nil
            kept?.pin = nil
            kept?.issuer = nil
        }
        var next = kept ?? Kept(privateKey: identity.privateKey)
        next.nonce = identity.nonce
        next.issuer = token.issuer
        try write(next)
    }

    /// Keeps what the coordinator has accepted.
    package func keep(_ membership: WorkerMembership) throws(TrustError) {
        guard var kept = try read() else { return }
        guard kept.pin != membership.pin || kept.certificate != membership.certificate else {
            return
        }
        kept.pin = membership.pin
        kept.certificate = membership.certificate
        try write(kept)
    }

    // MARK: - The file

    private func read() throws(TrustError) -> Kept? {
        guard unsafe access(path, F_OK) == 0 || errno != ENOENT else { return nil }
        let bytes: [UInt8]
        do throws(SecretFile.Problem) {
            bytes = try SecretFile.read(path, bytesMax: Self.fileBytesMax)
        } catch {
            throw TrustError(error.sentence("worker's key", in: path))
        }
        var fields: [Substring: Substring] = [:]
        let text = String(decoding: bytes, as: UTF8.self)
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count == 2 { fields[words[0]] = words[1] }
        }
        func key(_ name: Substring) -> [UInt8]? {
            fields[name].flatMap { Hex.bytes($0, count: Ed25519.keyBytes) }
        }
        guard let privateKey = key("key") else {
            throw TrustError("\(path) has no line “key”: remove the file, and join again.")
        }
        var kept = Kept(privateKey: privateKey)
        kept.nonce = fields["nonce"].flatMap { Hex.bytes($0, count: Credentials.nonceBytes) }
        kept.pin = key("pin")
        kept.issuer = key("issuer")
        kept.certificate = fields["certificate"]
            .flatMap { Base64.decode(Array($0.utf8)[...]) }
            .flatMap { WorkerCertificate($0) }
        return kept
    }

    private func write(_ kept: Kept) throws(TrustError) {
        var lines = ["key \(Hex.text(kept.privateKey))"]
        if let nonce = kept.nonce { lines.append("nonce \(Hex.text(nonce))") }
        if let issuer = kept.issuer { lines.append("issuer \(Hex.text(issuer))") }
        if let pin = kept.pin { lines.append("pin \(Hex.text(pin))") }
        if let certificate = kept.certificate {
            var text: [UInt8] = []
            Base64.append(certificate.bytes[...], to: &text)
            lines.append("certificate \(String(decoding: text, as: UTF8.self))")
        }
        do throws(SecretFile.Problem) {
            try SecretFile.replace(path, with: Array((lines.joined(separator: "\n") + "\n").utf8))
        } catch {
            throw TrustError(error.sentence("worker's key", in: path))
        }
    }
}
