import DequeModule
package import OperonModel
import OperonSystem

/// A coordinator's side of trust: it agrees keys with workers, and seals and opens all messages.
///
/// A worker knocks, and is offered keys; the offer shows that the coordinator is there now. The
/// first message that the worker seals shows its credentials. Only then is there a session, and
/// nothing without a session reaches the coordinator's decisions.
///
/// It does nothing by itself: the same calls with the same random bytes give the same results. A
/// copy must not seal, because it would use numbers a second time.
package struct CoordinatorSeals: Sendable {
    package enum Output: Sendable {
        case message([UInt8], from: Peer)
        /// A message of the coordinator to itself.
        case own([UInt8])
        /// To be sent as it is.
        case send([UInt8], to: WorkerAddress)
        /// Credentials were refused. The worker is told why.
        case refused(WorkerAddress, String)
        /// The message was refused, and its sender is told that there are no keys.
        case unknownSession
    }

    /// Who has sealed a message.
    package struct Peer: Hashable, Sendable {
        package let address: WorkerAddress
        package let grant: WorkerGrant
        package let workerKey: [UInt8]
        /// The life of the same worker before this one, if it has shown that it was its own.
        package let predecessor: Incarnation?

        /// By which the worker can be revoked.
        package var keyText: String { Hex.text(workerKey) }
    }

    private struct Member {
        var session: SealSession
        let peer: Peer
        let certificate: WorkerCertificate
    }

    /// What belongs to an incarnation as long as it has a session. One whose session was revoked is
    /// remembered, so that it does not come back with other rights.
    private struct Known {
        var connection: UInt32
        let workerKey: [UInt8]
        let grant: [UInt8]
    }

    /// The most agreements that a worker has not answered; a further one replaces the oldest. Who
    /// knocks without end can keep others from joining meanwhile, and nothing else.
    static let offersMax = 4_096
    /// The most sessions; with more, the oldest of the grant that has most of them is forgotten, so
    /// that the holder of one token cannot put others out. Twice as many as there may be workers.
    var sessionsMax = 20_000

    private var keys: CoordinatorKeys
    /// Grants and workers' keys that are revoked.
    private var revoked: Set<[UInt8]>
    @Secret private var epochKey: [UInt8]
    private var statement: Statement
    private let random: @Sendable (Int) -> [UInt8]
    /// By the number of the session. Only looked up.
    private var offers: [UInt64: SealSession] = [:]
    private var offerOrder = Deque<UInt64>()
    private var members: [UInt64: Member] = [:]
    private var memberOrder = Deque<UInt64>()
    private var numbers: [WorkerAddress: UInt64] = [:]
    private var known: [Incarnation: Known] = [:]
    /// The sessions of each grant.
    private var counts: [[UInt8]: Int] = [:]
    private let ownSealing: SealCipher
    private let ownOpening: SealCipher
    private var ownSent = [UInt64](repeating: 0, count: SealSession.lanes)
    private var ownReceived = [UInt64](repeating: 0, count: SealSession.lanes)

    /// - Parameter random: Draws this many bytes, fit for keys.
    package init(
        keys: CoordinatorKeys,
        revoked: Set<[UInt8]> = [],
        reign: Reign,
        epoch: Epoch,
        random: @escaping @Sendable (Int) -> [UInt8]
    ) {
        self.keys = keys
        self.revoked = revoked
        self.random = random
        let epochKey = random(X25519.keyBytes)
        self.epochKey = epochKey
        statement = Statement(
            reign: reign,
            epoch: epoch,
            key: X25519.publicKey(of: epochKey),
            by: keys
        )
        let own = random(SealCipher.keyBytes)
        ownSealing = SealCipher(key: own, isForSealing: true)
        ownOpening = SealCipher(key: own, isForSealing: false)
    }

    package init(keys: CoordinatorKeys, revoked: Set<[UInt8]>, reign: Reign, epoch: Epoch) {
        self.init(keys: keys, revoked: revoked, reign: reign, epoch: epoch) {
            RandomBytes.draw($0)
        }
    }

    // MARK: - Out

    /// Tells all workers that the coordinator has started.
    package var announcement: [UInt8] { Announcement(statement, keys.links).frame }

    /// A message to a worker; `nil`: there is no session with it, so that it could not read it.
    package mutating func seal(
        _ body: [UInt8],
        to address: WorkerAddress,
        lane: UInt8
    ) -> [UInt8]? {
        guard let number = numbers[address] else { return nil }
        return members[number]?.session.seal(
            body,
            as: SealedContent.message,
            lane: lane
        )
    }

    /// A message to the coordinator itself, which only it can make.
    package mutating func sealOwn(_ body: [UInt8], lane: UInt8) -> [UInt8] {
        ownSent[Int(lane)] += 1
        let number = ownSent[Int(lane)]
        var header = SealFrame.writer(SealFrame.ownKind)
        header.append(lane)
        header.append(number)
        return ownSealing.sealed(
            body,
            behind: header.bytes,
            nonce: SealCipher.Nonce(lane: lane, number: number)
        )
    }

    // MARK: - In

    /// - Parameter now: decides whether a token has expired.
    /// - Throws: `SealFault`; then nothing has changed.
    package mutating func receive(
        _ bytes: [UInt8],
        at now: WallTime
    ) throws(SealFault) -> [Output] {
        switch try SealFrame.read(bytes) {
        case .knock(let knock): return [offer(to: knock)].compactMap(\.self)
        case .sealed(let header): return try open(bytes, header, at: now)
        case .own(let lane, let number): return [.own(try openOwn(bytes, lane, number))]
        case .announcement, .offer: throw .unexpected
        }
    }

    private mutating func openOwn(
        _ bytes: [UInt8],
        _ lane: UInt8,
        _ number: UInt64
    ) throws(SealFault) -> [UInt8] {
        guard Int(lane) < SealSession.lanes else { throw .malformed }
        guard number > ownReceived[Int(lane)] else { throw .replayed }
        let text = ownOpening.opened(
            bytes,
            headerBytes: SealFrame.ownHeaderBytes,
            nonce: SealCipher.Nonce(lane: lane, number: number)
        )
        guard let text else { throw .forged }
        ownReceived[Int(lane)] = number
        return text
    }

    /// `nil`: nobody can have the key of this knock.
    private mutating func offer(to knock: Knock) -> Output? {
        let number = random(8).reduce(0) { $0 << 8 | UInt64($1) }
        let header = Offer.header(
            knockKey: knock.key,
            session: number,
            challenge: random(Offer.challengeBytes),
            Announcement(statement, keys.links)
        )
        guard offers[number] == nil, members[number] == nil,
            let session = SealSession(
                side: .coordinator,
                knock: knock,
                number: number,
                offerHeader: header,
                privateKey: epochKey,
                publicKey: knock.key
            )
        else { return nil }
        offers[number] = session
        offerOrder.append(number)
        while offers.count > Self.offersMax, let oldest = offerOrder.popFirst() {
            offers[oldest] = nil
        }
        // Numbers of offers that were taken up would stay for ever.
        if offerOrder.count > 2 * Self.offersMax { offerOrder.removeAll { offers[$0] == nil } }
        let isKnown = numbers[knock.address] != nil
        return .send(session.confirmed(offer: header, isKnown: isKnown), to: knock.address)
    }

    private mutating func open(
        _ bytes: [UInt8],
        _ header: SealedHeader,
        at now: WallTime
    ) throws(SealFault) -> [Output] {
        if let peer = members[header.session]?.peer {
            guard let text = try members[header.session]?.session.open(bytes, header) else {
                throw .unknownSession
            }
            return try outputs(of: text, header, from: peer)
        }
        guard var session = offers[header.session] else {
            // The worker's keys are of an earlier start, or were forgotten.
            return [.unknownSession, .send(announcement, to: header.address)]
        }
        let text = try session.open(bytes, header)
        offers[header.session] = session
        var reader = TrustReader(text)
        guard header.content == SealedContent.joining, let credentials = Credentials(&reader)
        else { throw .malformed }
        let peer: Peer
        do throws(Refused) {
            peer = try check(credentials, session, at: now)
        } catch {
            let answer = session.seal(
                Array(error.why.utf8),
                as: SealedContent.refused,
                lane: Self.answerLane
            )
            offers[header.session] = nil
            return [.send(answer, to: header.address), .refused(header.address, error.why)]
        }
        // A connection that came before the present one says nothing any more.
        if let known = known[peer.address.incarnation],
            known.connection > peer.address.connection
        {
            throw .replayed
        }
        offers[header.session] = nil
        let certificate = WorkerCertificate(peer.grant, of: peer.workerKey, by: keys)
        admit(Member(session: session, peer: peer, certificate: certificate))
        return [accept(header.session), .message(reader.takeRest(), from: peer)]
    }

    /// Answers to credentials, which are sent where messages are received.
    private static let answerLane: UInt8 = 7

    private mutating func outputs(
        of text: [UInt8],
        _ header: SealedHeader,
        from peer: Peer
    ) throws(SealFault) -> [Output] {
        switch header.content {
        case SealedContent.message: return [.message(text, from: peer)]
        case SealedContent.joining:
            // It has not read yet that it is accepted.
            var reader = TrustReader(text)
            guard Credentials(&reader) != nil else { throw .malformed }
            return [accept(header.session), .message(reader.takeRest(), from: peer)]
        default: throw .malformed
        }
    }

    private mutating func accept(_ number: UInt64) -> Output {
        guard let peer = members[number]?.peer,
            let certificate = members[number]?.certificate,
            let answer = members[number]?.session.seal(
                certificate.bytes,
                as: SealedContent.accepted,
                lane: Self.answerLane
            )
        else { preconditionFailure("only members are accepted") }
        return .send(answer, to: peer.address)
    }

    // MARK: - Members

    private struct Refused: Error { let why: String }

    private func check(
        _ credentials: Credentials,
        _ session: SealSession,
        at now: WallTime
    ) throws(Refused) -> Peer {
        let isSigned = Ed25519.isValid(
            credentials.signature,
            of: Credentials.signed(session.transcript),
            by: credentials.workerKey
        )
        guard isSigned else { throw Refused(why: "the worker has not the key that it names") }
        let incarnation = Credentials.incarnation(
            of: credentials.workerKey,
            nonce: credentials.nonce
        )
        guard incarnation == session.address.incarnation else {
            throw Refused(why: "the worker speaks for another one")
        }
        let grant: WorkerGrant
        switch credentials.proof {
        case .token(let token):
            guard token.isValid, keys.hasIssued(under: token.issuer) else {
                throw Refused(why: "its join token is of another coordinator")
            }
            if let end = token.grant.expiresAt, now >= end {
                let date = DateText.text(end)
                throw Refused(
                    why: "its join token has expired (\(date)): make another one with "
                        + "“operon trust token”"
                )
            }
            grant = token.grant
        case .certificate(let certificate):
            guard certificate.isValid, keys.hasIssued(under: certificate.issuer),
                certificate.workerKey == credentials.workerKey
            else { throw Refused(why: "its certificate is of another coordinator") }
            grant = certificate.grant
        }
        guard !revoked.contains(grant.id) else {
            throw Refused(why: "its join token was revoked (\(grant.idText))")
        }
        guard !revoked.contains(credentials.workerKey) else {
            let key = Hex.text(credentials.workerKey)
            throw Refused(why: "its key was revoked (\(key))")
        }
        if let known = known[incarnation],
            known.workerKey != credentials.workerKey || known.grant != grant.id
        {
            throw Refused(why: "it has joined with other rights before: start it again")
        }
        return Peer(
            address: session.address,
            grant: grant,
            workerKey: credentials.workerKey,
            predecessor: credentials.predecessorNonce.map { nonce in
                Credentials.incarnation(of: credentials.workerKey, nonce: nonce)
            }
        )
    }

    /// Tells a worker that was accepted why it cannot stay; `nil`: there is no session with it.
    package mutating func refusal(_ why: String, of address: WorkerAddress) -> [UInt8]? {
        guard let number = numbers[address] else { return nil }
        return members[number]?.session.seal(
            Array(why.utf8),
            as: SealedContent.refused,
            lane: Self.answerLane
        )
    }

    private mutating func admit(_ member: Member) {
        let address = member.peer.address
        // An earlier connection of the same worker, or an earlier agreement on this one.
        if let known = known[address.incarnation] {
            forget(
                WorkerAddress(incarnation: address.incarnation, connection: known.connection)
            )
        }
        if members.count >= sessionsMax { forgetOldest() }
        let number = member.session.number
        members[number] = member
        memberOrder.append(number)
        numbers[address] = number
        counts[member.peer.grant.id, default: 0] += 1
        known[address.incarnation] = Known(
            connection: address.connection,
            workerKey: member.peer.workerKey,
            grant: member.peer.grant.id
        )
        if memberOrder.count > 2 * sessionsMax {
            memberOrder.removeAll { members[$0] == nil }
        }
    }

    private mutating func forgetOldest() {
        let most = counts.values.max()
        let oldest = memberOrder.firstIndex { number in
            guard let peer = members[number]?.peer else { return false }
            return counts[peer.grant.id] == most
        }
        guard let oldest, let peer = members[memberOrder[oldest]]?.peer else { return }
        memberOrder.remove(at: oldest)
        forget(peer.address)
        known[peer.address.incarnation] = nil
    }

    /// Its incarnation stays known.
    private mutating func forget(_ address: WorkerAddress) {
        guard let number = numbers.removeValue(forKey: address),
            let member = members.removeValue(forKey: number)
        else { return }
        let grant = member.peer.grant.id
        let left = (counts[grant] ?? 1) - 1
        counts[grant] = left > 0 ? left : nil
    }

    package var sessionCount: Int { members.count }

    /// Who has a session for each of these incarnations.
    package func peers(of incarnations: [Incarnation]) -> [Incarnation: Peer] {
        var peers: [Incarnation: Peer] = [:]
        for incarnation in incarnations {
            guard let connection = known[incarnation]?.connection else { continue }
            let address = WorkerAddress(incarnation: incarnation, connection: connection)
            peers[incarnation] = numbers[address].flatMap { members[$0]?.peer }
        }
        return peers
    }
    var offerCount: Int { offers.count }

    /// Uses other keys from now on, and gives up the sessions of workers that are revoked. Sessions
    /// of others go on.
    ///
    /// - Returns: The workers whose sessions were given up.
    package mutating func replace(
        keys: CoordinatorKeys,
        revoked: Set<[UInt8]>
    ) -> [WorkerAddress] {
        self.keys = keys
        self.revoked = revoked
        statement = Statement(
            reign: statement.reign,
            epoch: statement.epoch,
            key: statement.key,
            by: keys
        )
        let lost = members.values.map(\.peer).filter { peer in
            revoked.contains(peer.grant.id) || revoked.contains(peer.workerKey)
        }
        for peer in lost { forget(peer.address) }
        return lost.map(\.address).sorted {
            ($0.incarnation.rawValue, $0.connection) < ($1.incarnation.rawValue, $1.connection)
        }
    }
}
