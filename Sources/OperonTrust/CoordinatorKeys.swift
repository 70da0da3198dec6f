import OperonModel
import OperonSystem

/// The key pair by which workers know a coordinator, and how it came from those before it.
///
/// A worker pins one public key. When the key is replaced, the old key signs the new one; a worker
/// that has pinned an old key accepts the new one by that chain. Whoever has an old private key can
/// make such a chain as well: a stolen key is not rotated but given up, with new keys for the whole
/// cluster.
package struct CoordinatorKeys: Sendable {
    /// A key and its successor.
    struct Link: Hashable, Sendable {
        let old: [UInt8]
        let new: [UInt8]
        let signature: [UInt8]

        static let bytes = 2 * Ed25519.keyBytes + Ed25519.signatureBytes

        var isValid: Bool {
            Ed25519.isValid(signature, of: Self.signed(old: old, new: new), by: old)
        }

        static func signed(old: [UInt8], new: [UInt8]) -> [UInt8] {
            Array("operon 1 rotation".utf8) + old + new
        }
    }

    /// The most successions that a worker may have missed. Those before are forgotten.
    package static let linksMax = 32

    /// The private key: `Ed25519.keyBytes` bytes.
    @Secret private(set) var privateKey: [UInt8]
    /// The key that workers know it by now.
    package let publicKey: [UInt8]
    /// The oldest first. The last one leads to `publicKey`.
    let links: [Link]

    /// Draws a new key, without a past.
    package init() { self.init(privateKey: RandomBytes.draw(Ed25519.keyBytes), links: []) }

    init(privateKey: [UInt8], links: [Link]) {
        self.privateKey = privateKey
        publicKey = Ed25519.publicKey(of: privateKey)
        self.links = links
    }

    /// The next key, signed by this one.
    package func rotated() -> CoordinatorKeys {
        let next = RandomBytes.draw(Ed25519.keyBytes)
        let new = Ed25519.publicKey(of: next)
        let signature = Ed25519.signature(
            of: Link.signed(old: publicKey, new: new),
            by: privateKey
        )
        let link = Link(old: publicKey, new: new, signature: signature)
        return CoordinatorKeys(
            privateKey: next,
            links: Array((links + [link]).suffix(Self.linksMax))
        )
    }

    /// Whether tokens and certificates that this key signed are valid: it is this key, or one of
    /// those before it.
    func hasIssued(under key: [UInt8]) -> Bool {
        key == publicKey || links.contains { $0.old == key }
    }

    /// The first half of the SHA-256 of a public key, as people compare keys.
    package static func fingerprint(of publicKey: [UInt8]) -> String {
        Hex.text(Array(SHA256.hash(of: publicKey).prefix(16)))
    }

    package var fingerprint: String { Self.fingerprint(of: publicKey) }
}

enum RandomBytes {
    /// Bytes from the system's generator, which is fit for keys (getrandom(2)).
    static func draw(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }
}

// MARK: - As text

extension CoordinatorKeys {
    /// The lines of a file: `key PRIVATE`, and `link OLD NEW SIGNATURE` for each succession.
    package var text: String {
        var lines = ["# The keys of a coordinator of Operon. Who has them commands its workers."]
        lines += links.map { link in
            "link \(Hex.text(link.old)) \(Hex.text(link.new)) \(Hex.text(link.signature))"
        }
        lines.append("key \(Hex.text(privateKey))")
        return lines.joined(separator: "\n") + "\n"
    }

    /// - Throws: `TrustError` that names the line, and never a key.
    package init(text: String, path: String) throws(TrustError) {
        var privateKey: [UInt8]?
        var links: [Link] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated()
        {
            func problem(_ why: String) -> TrustError {
                TrustError("\(path), line \(index + 1): \(why).")
            }
            let words = line.split(separator: " ")
            guard let first = words.first, !first.hasPrefix("#") else { continue }
            switch (first, words.count) {
            case ("key", 2):
                guard let key = Hex.bytes(words[1], count: Ed25519.keyBytes) else {
                    throw problem("a key has \(2 * Ed25519.keyBytes) hexadecimal digits")
                }
                guard privateKey == nil else { throw problem("there is a key above already") }
                privateKey = key
            case ("link", 4):
                guard let old = Hex.bytes(words[1], count: Ed25519.keyBytes),
                    let new = Hex.bytes(words[2], count: Ed25519.keyBytes),
                    let signature = Hex.bytes(words[3], count: Ed25519.signatureBytes)
                else { throw problem("a link has two keys and a signature") }
                let link = Link(old: old, new: new, signature: signature)
                guard link.isValid, links.last.map({ $0.new == old }) ?? true else {
                    throw problem("the signature is not that of the key before")
                }
                links.append(link)
            default: throw problem("it should begin with “key” or “link”")
            }
        }
        guard let privateKey else { throw TrustError("\(path) has no line “key”.") }
        guard links.count <= Self.linksMax else {
            throw TrustError("\(path) has more than \(Self.linksMax) lines “link”.")
        }
        self.init(privateKey: privateKey, links: links)
        guard links.last.map({ $0.new == publicKey }) ?? true else {
            throw TrustError("\(path): the last link does not lead to the key.")
        }
    }
}

/// Why a key, a token or a file of them cannot be used: a sentence for a person.
package struct TrustError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package init(_ message: String) { self.message = message }

    package var description: String { message }
}
