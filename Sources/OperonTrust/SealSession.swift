import OperonModel
import OperonSystem

/// The keys that a coordinator and one connection of a worker have agreed, for both directions.
///
/// Each direction has lanes, because a message of one lane may overtake one of another. Within a
/// lane, numbers only grow: a message that comes again, or after one that was sent later, is
/// refused. The broker keeps the order of a lane, so nothing is refused that it has delivered as it
/// was sent. What is lost between two messages is repaired by the layers above.
struct SealSession {
    enum Side {
        case coordinator, worker
    }

    /// The lanes of either direction.
    static let lanes = 8

    let address: WorkerAddress
    let number: UInt64
    /// Of everything that was said until the keys were agreed.
    let transcript: [UInt8]
    private let sealing: SealCipher
    private let opening: SealCipher
    /// Of the message that was sealed last.
    private var header: [UInt8]
    /// By lane; the number of the last message.
    private var sent = [UInt64](repeating: 0, count: lanes)
    private var received = [UInt64](repeating: 0, count: lanes)

    /// The lane of an offer, which has no number.
    private static let offerLane: UInt8 = 255

    /// - Parameter offerHeader: the offer in clear; with the knock it is all that both sides know.
    init?(
        side: Side,
        knock: Knock,
        number: UInt64,
        offerHeader: [UInt8],
        privateKey: [UInt8],
        publicKey: [UInt8]
    ) {
        guard let secret = X25519.secret(of: privateKey, with: publicKey) else { return nil }
        address = knock.address
        self.number = number
        header = SealedHeader.template(of: knock.address, session: number)
        let transcript = SHA256.hash(
            of: Array("operon 1 session".utf8) + knock.frame + offerHeader
        )
        self.transcript = transcript
        func cipher(_ purpose: String, isForSealing: Bool) -> SealCipher {
            let key = HKDF.key(
                from: secret,
                salt: transcript,
                purpose: purpose,
                byteCount: SealCipher.keyBytes
            )
            return SealCipher(key: key, isForSealing: isForSealing)
        }
        let toWorker = "operon 1 to worker"
        let toCoordinator = "operon 1 to coordinator"
        sealing = cipher(side == .worker ? toCoordinator : toWorker, isForSealing: true)
        opening = cipher(side == .worker ? toWorker : toCoordinator, isForSealing: false)
    }

    // MARK: - The offer

    /// The offer, with the proof that the sender has the secret.
    func confirmed(offer header: [UInt8], isKnown: Bool) -> [UInt8] {
        sealing.sealed(
            [isKnown ? 1 : 0],
            behind: header,
            nonce: SealCipher.Nonce(lane: Self.offerLane, number: 0)
        )
    }

    /// Whether the sender of an offer has a session with this worker already; `nil`: the offer is
    /// not authentic.
    func isKnown(byOffer bytes: [UInt8], headerBytes: Int) -> Bool? {
        let text = opening.opened(
            bytes,
            headerBytes: headerBytes,
            nonce: SealCipher.Nonce(lane: Self.offerLane, number: 0)
        )
        guard let text, text.count == 1 else { return nil }
        return text[0] != 0
    }

    // MARK: - Messages

    /// - Parameter lane: Less than `lanes`. What is sealed for one lane is sent in that order.
    mutating func seal(_ body: [UInt8], as content: UInt8, lane: UInt8) -> [UInt8] {
        let place = Int(lane)
        // 2^64 messages take some 50,000 years.
        sent[place] += 1
        header[SealedHeader.lanePlace] = lane
        header.write(sent[place], at: SealedHeader.numberPlace)
        header[SealedHeader.contentPlace] = content
        return sealing.sealed(
            body,
            behind: header,
            nonce: SealCipher.Nonce(lane: lane, number: sent[place])
        )
    }

    mutating func open(_ bytes: [UInt8], _ header: SealedHeader) throws(SealFault) -> [UInt8] {
        let place = Int(header.lane)
        guard place < Self.lanes else { throw .malformed }
        guard header.address == address else { throw .forged }
        guard header.number > received[place] else { throw .replayed }
        let text = opening.opened(
            bytes,
            headerBytes: SealedHeader.bytes,
            nonce: SealCipher.Nonce(lane: header.lane, number: header.number)
        )
        guard let text else { throw .forged }
        received[place] = header.number
        return text
    }
}

/// What a sealed text is.
enum SealedContent {
    /// A message.
    static let message: UInt8 = 0
    /// The credentials of a worker, behind their size, and a message.
    static let joining: UInt8 = 1
    /// That a coordinator has accepted the credentials, with a certificate behind its size.
    static let accepted: UInt8 = 2
    /// Why a coordinator has not accepted them: UTF-8.
    static let refused: UInt8 = 3
}

/// By what a worker shows who it is.
struct Credentials {
    enum Proof {
        case token(JoinToken)
        case certificate(WorkerCertificate)
    }

    let workerKey: [UInt8]
    /// From which, with the key, the incarnation follows.
    let nonce: [UInt8]
    /// That of the life before, on the same state directory.
    let predecessorNonce: [UInt8]?
    let proof: Proof
    /// Of the transcript, by the worker's key.
    let signature: [UInt8]

    static let nonceBytes = 16

    static func signed(_ transcript: [UInt8]) -> [UInt8] {
        Array("operon 1 worker".utf8) + transcript
    }

    /// Another key that has this incarnation takes 2^64 attempts to find; and while a worker has a
    /// session, its coordinator refuses any other key for its incarnation.
    static func incarnation(of workerKey: [UInt8], nonce: [UInt8]) -> Incarnation {
        let hash = SHA256.hash(of: Array("operon 1 incarnation".utf8) + workerKey + nonce)
        let value = hash.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        return Incarnation(rawValue: max(1, value))
    }

    var bytes: [UInt8] {
        var writer = TrustWriter()
        writer.append(workerKey)
        writer.append(nonce)
        writer.append(counted: predecessorNonce ?? [])
        switch proof {
        case .token(let token):
            writer.append(UInt8(0))
            writer.append(UInt32(token.bytes.count))
            writer.append(token.bytes)
        case .certificate(let certificate):
            writer.append(UInt8(1))
            writer.append(UInt32(certificate.bytes.count))
            writer.append(certificate.bytes)
        }
        writer.append(signature)
        return writer.bytes
    }

    init(
        workerKey: [UInt8],
        nonce: [UInt8],
        predecessorNonce: [UInt8]?,
        proof: Proof,
        signature: [UInt8]
    ) {
        self.workerKey = workerKey
        self.nonce = nonce
        self.predecessorNonce = predecessorNonce
        self.proof = proof
        self.signature = signature
    }

    init?(_ reader: inout TrustReader) {
        guard let workerKey = reader.take(Ed25519.keyBytes),
            let nonce = reader.take(Self.nonceBytes),
            let predecessor = reader.takeCounted(),
            predecessor.isEmpty || predecessor.count == Self.nonceBytes,
            let form = reader.number(UInt8.self), let count = reader.number(UInt32.self),
            let body = reader.take(Int(count)),
            let signature = reader.take(Ed25519.signatureBytes)
        else { return nil }
        let proof: Proof? =
            switch form {
            case 0: JoinToken(body).map { .token($0) }
            case 1: WorkerCertificate(body).map { .certificate($0) }
            default: nil
            }
        guard let proof else { return nil }
        self.init(
            workerKey: workerKey,
            nonce: nonce,
            predecessorNonce: predecessor.isEmpty ? nil : predecessor,
            proof: proof,
            signature: signature
        )
    }
}
