import OperonModel
import OperonSystem
import Testing

@testable import OperonTrust

struct JoinTests {
    private let keys = CoordinatorKeys()

    /// Why a worker with this token is refused; `nil`: it is not.
    private func refusal(_ pair: inout Pair) throws -> String? {
        let (heard, told) = try pair.join()
        guard let why = heard.refusals.first else { return nil }
        #expect(heard.messages.isEmpty)
        #expect(pair.coordinator.sessionCount == 0)
        guard case .refused(let said)? = told.first else { throw Missing() }
        #expect(said == why)
        return why
    }

    @Test("a worker joins with a token, and later with the certificate that it got")
    func certificate() throws {
        let token = JoinToken(
            try WorkerGrant(queues: ["build"], expiresAt: Pair.start + .seconds(60)),
            by: keys
        )
        var pair = try Pair(keys: keys, token: token)
        let (heard, told) = try pair.join()
        guard case .message(_, let peer)? = heard.last, case .accepted(let kept)? = told.first
        else { throw Missing() }
        #expect(peer.grant == token.grant)
        let later = WorkerTrust(
            privateKey: pair.identity.privateKey,
            nonce: [UInt8](repeating: 1, count: Credentials.nonceBytes),
            predecessorNonce: pair.identity.nonce,
            pin: kept.pin,
            proof: .certificate(kept.certificate)
        )
        var second = try Pair(keys: keys, identity: later)
        let (again, _) = try second.join()
        guard case .message(_, let same)? = again.last else { throw Missing() }
        #expect(same.grant == token.grant)
        #expect(same.predecessor == pair.identity.incarnation)
    }

    @Test("a token that has expired is refused with the date")
    func expired() throws {
        let token = JoinToken(try WorkerGrant(expiresAt: Pair.start), by: keys)
        var pair = try Pair(keys: keys, token: token)
        let why = try refusal(&pair)
        #expect(why?.contains("has expired (2027-01-15T08:00:00Z)") == true)
    }

    @Test("a worker that has joined outlives its token, over connections and starts")
    func outlivesToken() throws {
        let token = JoinToken(try WorkerGrant(expiresAt: Pair.start + .seconds(60)), by: keys)
        var pair = try Pair(keys: keys, token: token)
        _ = try pair.join()
        let late = Pair.start + .seconds(3_600)
        pair.worker.connected(2)
        #expect(try pair.join("second", at: late).0.messages == ["second"])
        pair.coordinator = CoordinatorSeals(
            keys: keys,
            revoked: [],
            reign: Pair.reign,
            epoch: Epoch(rawValue: 2)
        )
        let knock = try pair.worker.receive(pair.coordinator.announcement).frame()
        let offer = try pair.coordinator.receive(knock, at: late).frame()
        _ = try pair.worker.receive(offer)
        let hello = try pair.say("third")
        #expect(try pair.coordinator.receive(hello, at: late).messages == ["third"])
    }

    @Test("a token and a worker that are revoked are refused")
    func revoked() throws {
        let token = JoinToken(try WorkerGrant(), by: keys)
        var pair = try Pair(keys: keys, token: token, revoked: [token.grant.id])
        #expect(try refusal(&pair) == "its join token was revoked (\(token.grant.idText))")
        let identity = WorkerTrust(token)
        pair = try Pair(keys: keys, identity: identity, revoked: [identity.publicKey])
        #expect(try refusal(&pair)?.hasPrefix("its key was revoked (") == true)
    }

    @Test("revoking a token ends the sessions of its workers alone")
    func revokedLater() throws {
        let token = JoinToken(try WorkerGrant(), by: keys)
        var pair = try Pair(keys: keys, token: token)
        _ = try pair.join()
        var other = try Pair(keys: keys)
        other.coordinator = pair.coordinator
        _ = try other.join()
        pair.coordinator = other.coordinator
        let lost = pair.coordinator.replace(keys: keys, revoked: [token.grant.id])
        #expect(lost == [pair.address])
        let event = try pair.say("event")
        let answer = try pair.coordinator.receive(event, at: Pair.start)
        #expect(answer.messages.isEmpty)
        let theirs = try other.say("event")
        #expect(try pair.coordinator.receive(theirs, at: Pair.start).messages == ["event"])
    }

    @Test("a token of another coordinator is refused, and such a coordinator is not believed")
    func strangers() throws {
        let other = CoordinatorKeys()
        // The worker trusts one coordinator, its token is of another one.
        let identity = WorkerTrust(
            privateKey: RandomBytes.draw(Ed25519.keyBytes),
            nonce: RandomBytes.draw(Credentials.nonceBytes),
            predecessorNonce: nil,
            pin: keys.publicKey,
            proof: .token(JoinToken(try WorkerGrant(), by: other))
        )
        var pair = try Pair(keys: keys, identity: identity)
        #expect(try refusal(&pair) == "its join token is of another coordinator")
        pair = try Pair(keys: keys, token: JoinToken(try WorkerGrant(), by: other))
        let knock = try pair.say("hello")
        let offer = try pair.coordinator.receive(knock, at: Pair.start).frame()
        #expect(throws: SealFault.strangeKey) { try pair.worker.receive(offer) }
        let announcement = pair.coordinator.announcement
        #expect(throws: SealFault.strangeKey) { try pair.worker.receive(announcement) }
    }

    @Test("a grant that was widened is no token")
    func widened() throws {
        let narrow = JoinToken(try WorkerGrant(queues: ["build"]), by: keys)
        var bytes = narrow.bytes
        let place = try bytes.firstRange(of: Array("build".utf8)).unwrapped().lowerBound
        bytes[place] = UInt8(ascii: "B")
        let wide = try JoinToken(bytes).unwrapped()
        #expect(!wide.isValid)
        var pair = try Pair(keys: keys, identity: WorkerTrust(wide))
        #expect(try refusal(&pair) == "its join token is of another coordinator")
    }

    @Test("a worker cannot speak for another one, even with a token")
    func otherIncarnation() throws {
        let victim = try Pair(keys: keys)
        var pair = try Pair(keys: keys)
        // It knocks with the address of the other.
        let thief = pair.identity
        var seals = WorkerSeals(thief)
        seals.connected(1)
        var knock = try seals.seal(bytes("hello"), lane: 0).unwrapped()
        let number = victim.identity.incarnation.rawValue
        for (place, shift) in zip(3..<11, stride(from: 56, through: 0, by: -8)) {
            knock[place] = UInt8(truncatingIfNeeded: number >> UInt64(shift))
        }
        let offer = try pair.coordinator.receive(knock, at: Pair.start).frame()
        // Its own seals notice that the offer is for another one.
        #expect(throws: SealFault.forged) { try seals.receive(offer) }
        // With seals that do not, the coordinator notices.
        let incarnation = Credentials.incarnation(of: thief.publicKey, nonce: thief.nonce)
        #expect(incarnation == thief.incarnation)
        #expect(incarnation != victim.identity.incarnation)
    }

    @Test("a life before that was another worker's is not believed")
    func predecessor() throws {
        let victim = try Pair(keys: keys)
        let thief = WorkerTrust(
            privateKey: RandomBytes.draw(Ed25519.keyBytes),
            nonce: RandomBytes.draw(Credentials.nonceBytes),
            predecessorNonce: victim.identity.nonce,
            pin: keys.publicKey,
            proof: .token(JoinToken(try WorkerGrant(), by: keys))
        )
        var pair = try Pair(keys: keys, identity: thief)
        let (heard, _) = try pair.join()
        guard case .message(_, let peer)? = heard.last else { throw Missing() }
        #expect(peer.predecessor != nil)
        #expect(peer.predecessor != victim.identity.incarnation)
    }

    // MARK: - Rotation

    @Test("workers follow the coordinator's key over as many successions as it keeps")
    func rotation() throws {
        let token = JoinToken(try WorkerGrant(), by: keys)
        var later = keys
        for _ in 0..<CoordinatorKeys.linksMax { later = later.rotated() }
        var pair = try Pair(keys: later, token: token)
        #expect(try refusal(&pair) == nil)
        pair = try Pair(keys: later.rotated(), token: token)
        let knock = try pair.say("hello")
        let offer = try pair.coordinator.receive(knock, at: Pair.start).frame()
        #expect(throws: SealFault.strangeKey) { try pair.worker.receive(offer) }
    }

    @Test("sessions go on when the key is replaced, and the worker pins the new one")
    func rotationUnderWay() throws {
        var pair = try Pair.joined(keys)
        let next = keys.rotated()
        #expect(pair.coordinator.replace(keys: next, revoked: []).isEmpty)
        #expect(try pair.worker.receive(try pair.order("go on")).messages == ["go on"])
        pair.worker.connected(2)
        let (_, told) = try pair.join()
        guard case .accepted(let kept)? = told.first else { throw Missing() }
        #expect(kept.pin == next.publicKey)
    }

    @Test("a chain that another key has signed is not believed")
    func forgedChain() throws {
        let thief = CoordinatorKeys()
        let forged = CoordinatorKeys.Link(
            old: keys.publicKey,
            new: thief.publicKey,
            signature: Ed25519.signature(
                of: CoordinatorKeys.Link.signed(old: keys.publicKey, new: thief.publicKey),
                by: thief.privateKey
            )
        )
        let stolen = CoordinatorKeys(privateKey: thief.privateKey, links: [forged])
        var pair = try Pair(keys: stolen, token: JoinToken(try WorkerGrant(), by: keys))
        let knock = try pair.say("hello")
        let offer = try pair.coordinator.receive(knock, at: Pair.start).frame()
        #expect(throws: SealFault.strangeKey) { try pair.worker.receive(offer) }
    }
}
