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

    /// The greeting of a worker that has agreed keys for this address, with these credentials.
    private func greeting(
        _ credentials: (_ transcript: [UInt8]) -> Credentials,
        for address: WorkerAddress,
        to coordinator: inout CoordinatorSeals
    ) throws -> [UInt8] {
        let privateKey = RandomBytes.draw(X25519.keyBytes)
        let knock = Knock(address: address, key: X25519.publicKey(of: privateKey))
        let bytes = try coordinator.receive(knock.frame, at: Pair.start).frame()
        guard case .offer(let offer) = try SealFrame.read(bytes) else { throw Missing() }
        var session = try SealSession(
            side: .worker,
            knock: knock,
            number: offer.session,
            offerHeader: Array(bytes.prefix(offer.headerBytes)),
            privateKey: privateKey,
            publicKey: offer.announcement.statement.key
        ).unwrapped()
        let shown = credentials(session.transcript).bytes
        return session.seal(
            shown + Array("hello".utf8),
            as: SealedContent.joining,
            lane: 0
        )
    }

    @Test("a worker cannot speak for another one, even with a token")
    func otherIncarnation() throws {
        var pair = try Pair(keys: keys)
        let thief = pair.identity
        let victim = try Pair(keys: keys).address
        let greeting = try greeting(thief.credentials, for: victim, to: &pair.coordinator)
        let heard = try pair.coordinator.receive(greeting, at: Pair.start)
        #expect(heard.refusals == ["the worker speaks for another one"])
        #expect(heard.messages.isEmpty)
    }

    @Test("credentials that were shown in another agreement are refused")
    func otherTranscript() throws {
        var pair = try Pair(keys: keys)
        let worker = pair.identity
        let greeting = try greeting(
            { _ in worker.credentials(for: [UInt8](repeating: 0, count: 32)) },
            for: pair.address,
            to: &pair.coordinator
        )
        let heard = try pair.coordinator.receive(greeting, at: Pair.start)
        #expect(heard.refusals == ["the worker has not the key that it names"])
    }

    @Test("a worker does not come back with other rights, also after it was revoked")
    func otherGrant() throws {
        let wide = JoinToken(try WorkerGrant(), by: keys)
        let narrow = JoinToken(try WorkerGrant(queues: ["a"]), by: keys)
        var pair = try Pair(keys: keys, token: wide)
        _ = try pair.join()
        let worker = pair.identity
        func again(_ token: JoinToken) -> (_ transcript: [UInt8]) -> Credentials {
            { transcript in
                WorkerTrust(
                    privateKey: worker.privateKey,
                    nonce: worker.nonce,
                    predecessorNonce: nil,
                    pin: keys.publicKey,
                    proof: .token(token)
                ).credentials(for: transcript)
            }
        }
        let second = WorkerAddress(incarnation: worker.incarnation, connection: 2)
        for revoked in [[], [wide.grant.id]] as [Set<[UInt8]>] {
            _ = pair.coordinator.replace(keys: keys, revoked: revoked)
            let greeting = try greeting(again(narrow), for: second, to: &pair.coordinator)
            let heard = try pair.coordinator.receive(greeting, at: Pair.start)
            #expect(
                heard.refusals == ["it has joined with other rights before: start it again"]
            )
        }
        _ = pair.coordinator.replace(keys: keys, revoked: [])
        let greeting = try greeting(again(wide), for: second, to: &pair.coordinator)
        #expect(try pair.coordinator.receive(greeting, at: Pair.start).messages == ["hello"])
    }

    @Test("a clock that is an hour off refuses new workers in words, and no others")
    func clock() throws {
        let soon = JoinToken(try WorkerGrant(expiresAt: Pair.start + .seconds(600)), by: keys)
        let past = JoinToken(try WorkerGrant(expiresAt: Pair.start + .seconds(-600)), by: keys)
        var member = try Pair(keys: keys, token: soon)
        _ = try member.join()
        let ahead = Pair.start + .seconds(3_600)
        let behind = Pair.start + .seconds(-3_600)
        // A worker that is a member does not notice.
        for (number, now) in zip(UInt32(2)..., [ahead, behind]) {
            let event = try member.say("event")
            #expect(try member.coordinator.receive(event, at: now).messages == ["event"])
            member.worker.connected(number)
            #expect(try member.join("hello", at: now).0.messages == ["hello"])
        }
        // A new one is refused early, or let in late.
        var early = try Pair(keys: keys, token: soon)
        let refusals = try early.join(at: ahead).0.refusals
        #expect(refusals.first?.contains("has expired (2027-01-15T08:10:00Z)") == true)
        var late = try Pair(keys: keys, token: past)
        #expect(try late.join(at: behind).0.messages == ["hello"])
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
