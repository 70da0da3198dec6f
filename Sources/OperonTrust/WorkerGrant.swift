package import OperonModel
import OperonSystem

/// What a worker may do.
package struct WorkerGrant: Hashable, Sendable {
    package static let idBytes = 16
    /// The most queues and the most kinds that it can name.
    package static let namesMax = 64

    /// Random; the same for the token and for all certificates that were made from it.
    package let id: [UInt8]
    /// The queues that it may serve, and into which its operations may add others; empty: all.
    package let queues: [String]
    /// The registered kinds that it may run, and that operations which its operations add may have;
    /// empty: all. Commands are of no kind.
    package let kinds: [String]
    /// Until when workers may join with it; `nil`: for ever. A worker with a state directory that
    /// has joined in time stays one.
    package let expiresAt: WallTime?

    /// - Throws: `TrustError` for names that no queue and no kind has.
    package init(
        queues: [String] = [],
        kinds: [String] = [],
        expiresAt: WallTime? = nil
    ) throws(TrustError) {
        for (names, what) in [(queues, "queue"), (kinds, "kind")] {
            guard names.count <= Self.namesMax else {
                throw TrustError("A token names at most \(Self.namesMax) \(what)s.")
            }
            for name in names where (try? Limits().check(name: name, of: what)) == nil {
                throw TrustError("“\(name)” is not the name of a \(what).")
            }
        }
        self.init(
            id: RandomBytes.draw(Self.idBytes),
            queues: queues.sorted(),
            kinds: kinds.sorted(),
            expiresAt: expiresAt
        )
    }

    private init(id: [UInt8], queues: [String], kinds: [String], expiresAt: WallTime?) {
        self.id = id
        self.queues = queues
        self.kinds = kinds
        self.expiresAt = expiresAt
    }

    /// By which `operon trust` names it.
    package var idText: String { Hex.text(id) }

    /// `nil`: it limits nothing.
    package var rights: SenderRights? {
        queues.isEmpty && kinds.isEmpty ? nil : SenderRights(queues: queues, kinds: kinds)
    }

    func write(to writer: inout TrustWriter) {
        writer.append(id)
        writer.append(UInt64(bitPattern: expiresAt?.nanosecondsSince1970 ?? 0))
        writer.append(queues)
        writer.append(kinds)
    }

    init?(_ reader: inout TrustReader) {
        guard let id = reader.take(Self.idBytes), let time = reader.number(UInt64.self),
            let queues = reader.texts(countMax: Self.namesMax, bytesMax: Limits().nameBytes),
            let kinds = reader.texts(countMax: Self.namesMax, bytesMax: Limits().nameBytes)
        else { return nil }
        let nanoseconds = Int64(bitPattern: time)
        self.init(
            id: id,
            queues: queues,
            kinds: kinds,
            expiresAt: nanoseconds == 0 ? nil : WallTime(nanosecondsSince1970: nanoseconds)
        )
    }
}

/// What a worker joins with: whom it trusts, and what it may do. It is secret: who has it can be a
/// worker.
package struct JoinToken: Hashable, Sendable {
    package let grant: WorkerGrant
    /// The public key of the coordinator that made it, which the worker pins.
    package let issuer: [UInt8]
    /// The rest of a token can be known to others.
    @Secret private(set) var signature: [UInt8]

    private static let prefix = "operon-join-1."
    /// The most bytes of a token as text.
    package static let textBytesMax = 64 << 10

    package init(_ grant: WorkerGrant, by keys: CoordinatorKeys) {
        self.grant = grant
        issuer = keys.publicKey
        signature = Ed25519.signature(
            of: Self.signed(grant, issuer: keys.publicKey),
            by: keys.privateKey
        )
    }

    private static func signed(_ grant: WorkerGrant, issuer: [UInt8]) -> [UInt8] {
        var writer = TrustWriter()
        writer.append(Array("operon 1 join".utf8))
        writer.append(issuer)
        grant.write(to: &writer)
        return writer.bytes
    }

    /// Whether the issuer signed it.
    var isValid: Bool {
        Ed25519.isValid(signature, of: Self.signed(grant, issuer: issuer), by: issuer)
    }

    var bytes: [UInt8] {
        var writer = TrustWriter()
        writer.append(issuer)
        writer.append(signature)
        grant.write(to: &writer)
        return writer.bytes
    }

    init?(_ bytes: [UInt8]) {
        var reader = TrustReader(bytes)
        guard let issuer = reader.take(Ed25519.keyBytes),
            let signature = reader.take(Ed25519.signatureBytes),
            let grant = WorkerGrant(&reader), reader.isAtEnd
        else { return nil }
        self.grant = grant
        self.issuer = issuer
        self.signature = signature
    }

    /// One word of ASCII.
    package var text: String {
        var text = Array(Self.prefix.utf8)
        Base64.append(bytes[...], to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Whether a text is meant to be a token.
    package static func isToken(_ text: String) -> Bool {
        text.drop(while: \.isWhitespace).hasPrefix(prefix)
    }

    /// - Throws: `TrustError`, which does not contain the token.
    package init(text: String) throws(TrustError) {
        let text = text.split(whereSeparator: \.isWhitespace).first ?? ""
        guard text.hasPrefix(Self.prefix), text.utf8.count <= Self.textBytesMax,
            let bytes = Base64.decode(Array(text.utf8.dropFirst(Self.prefix.utf8.count))[...]),
            let token = JoinToken(bytes), token.isValid
        else {
            throw TrustError(
                "This is not a join token, or it is incomplete: “operon trust token” prints one."
            )
        }
        self = token
    }
}

/// That a coordinator knows the key of a worker, and what that worker may do. Not secret: it is of
/// use only with the private key.
package struct WorkerCertificate: Hashable, Sendable {
    let grant: WorkerGrant
    let workerKey: [UInt8]
    let issuer: [UInt8]
    let signature: [UInt8]

    init(_ grant: WorkerGrant, of workerKey: [UInt8], by keys: CoordinatorKeys) {
        self.grant = grant
        self.workerKey = workerKey
        issuer = keys.publicKey
        signature = Ed25519.signature(
            of: Self.signed(grant, of: workerKey, issuer: keys.publicKey),
            by: keys.privateKey
        )
    }

    private static func signed(
        _ grant: WorkerGrant,
        of workerKey: [UInt8],
        issuer: [UInt8]
    ) -> [UInt8] {
        var writer = TrustWriter()
        writer.append(Array("operon 1 certificate".utf8))
        writer.append(issuer)
        writer.append(workerKey)
        grant.write(to: &writer)
        return writer.bytes
    }

    /// Whether the issuer signed it.
    var isValid: Bool {
        Ed25519.isValid(
            signature,
            of: Self.signed(grant, of: workerKey, issuer: issuer),
            by: issuer
        )
    }

    var bytes: [UInt8] {
        var writer = TrustWriter()
        writer.append(workerKey)
        writer.append(issuer)
        writer.append(signature)
        grant.write(to: &writer)
        return writer.bytes
    }

    init?(_ bytes: [UInt8]) {
        var reader = TrustReader(bytes)
        guard let workerKey = reader.take(Ed25519.keyBytes),
            let issuer = reader.take(Ed25519.keyBytes),
            let signature = reader.take(Ed25519.signatureBytes),
            let grant = WorkerGrant(&reader), reader.isAtEnd
        else { return nil }
        self.workerKey = workerKey
        self.issuer = issuer
        self.signature = signature
        self.grant = grant
    }
}
