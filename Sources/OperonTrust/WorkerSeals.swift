package import OperonModel
import OperonSystem

/// A worker's side of trust: it agrees keys with the coordinator, and seals and opens all messages.
///
/// It does nothing by itself: the same calls with the same random bytes give the same results. A
/// copy must not seal, because it would use numbers a second time.
package struct WorkerSeals: Sendable {
    package enum Output: Sendable {
        case message([UInt8])
        /// To be sent as it is, where the coordinator receives events.
        case send([UInt8])
        /// To be sealed and sent now: it was to be sent while there were no keys.
        case sendAgain([UInt8])
        /// The coordinator has started, or has forgotten this worker: it has to be greeted again.
        case resync(Reign, Epoch)
        /// The coordinator has accepted the worker, which should keep this.
        case accepted(WorkerMembership)
        /// The coordinator will never accept the worker: why, as a clause.
        case refused(String)
    }

    private struct Session {
        var seal: SealSession
        /// What shows who the worker is, signed once.
        @Secret private(set) var joining: [UInt8]
        let reign: Reign
        let epoch: Epoch
        let signer: [UInt8]
        /// Whether the coordinator has answered, so that it knows the worker.
        var isConfirmed = false
    }

    /// The announcement that was believed last, so that its signatures are checked once.
    private var believed: Announcement?

    /// A question that waits for an offer.
    private struct Question {
        let knock: Knock
        @Secret var privateKey: [UInt8]
    }

    private var identity: WorkerTrust
    private let random: @Sendable (Int) -> [UInt8]
    /// The coordinator's key, or its latest successor that has spoken.
    private var pin: [UInt8]
    private var address: WorkerAddress?
    private var session: Session?
    private var question: Question?
    /// The last message that was to be sent while there were no keys: that by which the worker
    /// introduces itself, which is the only one that it then sends.
    private var held: [UInt8]?

    /// The lane of greetings and events.
    package static let eventsLane: UInt8 = 0

    /// - Parameter random: Draws this many bytes, fit for keys.
    package init(_ identity: WorkerTrust, random: @escaping @Sendable (Int) -> [UInt8]) {
        self.identity = identity
        self.random = random
        pin = identity.pin
    }

    package init(_ identity: WorkerTrust) { self.init(identity) { RandomBytes.draw($0) } }

    // MARK: - The connection

    /// `nil`: there is no connection.
    package var connection: UInt32? { address?.connection }

    /// Keys belong to one connection.
    package mutating func connected(_ connection: UInt32) {
        disconnected()
        address = WorkerAddress(incarnation: identity.incarnation, connection: connection)
    }

    package mutating func disconnected() {
        address = nil
        session = nil
        question = nil
        held = nil
    }

    // MARK: - Out

    /// What to send for a message; `nil`: nothing.
    ///
    /// - Parameter lane: What is sealed for one lane is sent in that order.
    package mutating func seal(_ body: [UInt8], lane: UInt8) -> [UInt8]? {
        switch session?.isConfirmed {
        case true?: return session?.seal.seal(body, as: SealedContent.message, lane: lane)
        case false?:
            let joining = session?.joining ?? []
            return session?.seal.seal(joining + body, as: SealedContent.joining, lane: lane)
        case nil:
            guard lane == Self.eventsLane, address != nil else { return nil }
            held = body
            return knock()
        }
    }

    private mutating func knock() -> [UInt8]? {
        guard let address else { return nil }
        if let question { return question.knock.frame }
        let privateKey = random(X25519.keyBytes)
        let knock = Knock(address: address, key: X25519.publicKey(of: privateKey))
        question = Question(knock: knock, privateKey: privateKey)
        return knock.frame
    }

    // MARK: - In

    /// - Throws: `SealFault`; then nothing has changed.
    package mutating func receive(_ bytes: [UInt8]) throws(SealFault) -> [Output] {
        switch try SealFrame.read(bytes) {
        case .sealed(let header): try open(bytes, header)
        case .announcement(let announcement): try hear(announcement)
        case .offer(let offer): try take(offer, bytes)
        case .knock, .own: throw .unexpected
        }
    }

    /// What anybody can send again is only a reason to ask: the answer shows who is there.
    private mutating func hear(_ announcement: Announcement) throws(SealFault) -> [Output] {
        try believe(announcement)
        let statement = announcement.statement
        if let session, session.reign == statement.reign, statement.epoch < session.epoch {
            throw .earlierEpoch
        }
        return [knock().map { .send($0) }].compactMap(\.self)
    }

    private mutating func believe(_ announcement: Announcement) throws(SealFault) {
        guard announcement != believed else { return }
        guard announcement.isTrusted(by: pin) else { throw .strangeKey }
        believed = announcement
    }

    private mutating func take(_ offer: Offer, _ bytes: [UInt8]) throws(SealFault) -> [Output] {
        guard let question, offer.knockKey == question.knock.key else { throw .unexpected }
        let statement = offer.announcement.statement
        try believe(offer.announcement)
        let agreed = SealSession(
            side: .worker,
            knock: question.knock,
            number: offer.session,
            offerHeader: Array(bytes.prefix(offer.headerBytes)),
            privateKey: question.privateKey,
            publicKey: statement.key
        )
        guard let agreed,
            let isKnown = agreed.isKnown(byOffer: bytes, headerBytes: offer.headerBytes)
        else { throw .forged }
        if let session, session.reign == statement.reign {
            guard statement.epoch >= session.epoch else { throw .earlierEpoch }
            // Nothing is wrong with the keys that there are.
            if isKnown, session.isConfirmed, statement.epoch == session.epoch { return [] }
        }
        self.question = nil
        session = Session(
            seal: agreed,
            joining: identity.credentials(for: agreed.transcript).bytes,
            reign: statement.reign,
            epoch: statement.epoch,
            signer: statement.signer
        )
        guard let waiting = held else { return [.resync(statement.reign, statement.epoch)] }
        held = nil
        return [.sendAgain(waiting)]
    }

    private mutating func open(
        _ bytes: [UInt8],
        _ header: SealedHeader
    ) throws(SealFault) -> [Output] {
        guard session?.seal.number == header.session else { throw .unknownSession }
        guard let text = try session?.seal.open(bytes, header) else { throw .unknownSession }
        switch header.content {
        case SealedContent.message:
            session?.isConfirmed = true
            return [.message(text)]
        case SealedContent.accepted:
            guard let session, let certificate = WorkerCertificate(text),
                certificate.isValid, certificate.workerKey == identity.publicKey
            else { throw .malformed }
            self.session?.isConfirmed = true
            pin = session.signer
            // From now on it needs the token no more, which may expire.
            identity = identity.certified(by: certificate)
            return [.accepted(WorkerMembership(pin: pin, certificate: certificate))]
        case SealedContent.refused:
            // Ends the worker, so only the coordinator that it trusts may say so.
            return [.refused(String(decoding: text, as: UTF8.self))]
        default: throw .malformed
        }
    }
}
