import OperonModel
import Testing

@testable import OperonTrust

struct SealTests {
    @Test("both sides read what the other says, and nobody else does")
    func conversation() throws {
        var pair = try Pair(keys: CoordinatorKeys())
        let (heard, told) = try pair.join("hello there")
        #expect(heard.messages == ["hello there"])
        guard case .accepted? = told.first else { throw Missing() }
        let order = try pair.order("run it")
        #expect(try pair.worker.receive(order).messages == ["run it"])
        let event = try pair.say("it ran")
        #expect(try pair.coordinator.receive(event, at: Pair.start).messages == ["it ran"])
        for frame in [order, event] {
            #expect(frame.firstRange(of: bytes("run it")) == nil)
            #expect(frame.firstRange(of: bytes("it ran")) == nil)
        }
    }

    @Test("an empty message and a large one are read as they were")
    func sizes() throws {
        var pair = try Pair.joined()
        for size in [0, 1, 16, 100_000, 8 << 20] {
            let body = [UInt8](repeating: 0xA5, count: size)
            let frame = try pair.coordinator.seal(body, to: pair.address, lane: 0).unwrapped()
            #expect(frame.count - size <= Limits.sealBytes)
            guard case .message(let read)? = try pair.worker.receive(frame).first else {
                throw Missing()
            }
            #expect(read == body)
        }
    }

    @Test("a message that was changed at any byte is refused, and changes nothing")
    func changed() throws {
        var pair = try Pair(keys: CoordinatorKeys())
        let knock = try pair.say("hello")
        let offer = try pair.coordinator.receive(knock, at: Pair.start).frame()
        for place in offer.indices {
            var forged = offer
            forged[place] ^= 1
            #expect(throws: SealFault.self) { try pair.worker.receive(forged) }
        }
        guard case .sendAgain(let body)? = try pair.worker.receive(offer).first else {
            throw Missing()
        }
        let hello = try pair.worker.seal(body, lane: 0).unwrapped()
        for place in hello.indices {
            var forged = hello
            forged[place] ^= 1
            expectNothing(forged, by: &pair.coordinator)
        }
        let heard = try pair.coordinator.receive(hello, at: Pair.start)
        #expect(heard.messages == ["hello"])
        let accepted = try heard.frame()
        for place in accepted.indices {
            var forged = accepted
            forged[place] ^= 1
            #expect(throws: SealFault.self) { try pair.worker.receive(forged) }
        }
        _ = try pair.worker.receive(accepted)
        let event = try pair.say("it ran")
        for place in event.indices {
            var forged = event
            forged[place] ^= 1
            expectNothing(forged, by: &pair.coordinator)
        }
        #expect(try pair.coordinator.receive(event, at: Pair.start).messages == ["it ran"])
        let own = pair.coordinator.sealOwn(bytes("tick"), lane: 0)
        for place in own.indices {
            var forged = own
            forged[place] ^= 1
            expectNothing(forged, by: &pair.coordinator)
        }
        guard case .own(let tick)? = try pair.coordinator.receive(own, at: Pair.start).first else {
            throw Missing()
        }
        #expect(tick == bytes("tick"))
    }

    /// Whoever sends this learns at most that a coordinator is there.
    private func expectNothing(_ frame: [UInt8], by coordinator: inout CoordinatorSeals) {
        guard let outputs = try? coordinator.receive(frame, at: Pair.start) else { return }
        for output in outputs {
            switch output {
            case .unknownSession: continue
            case .send(let answer, _): #expect(answer == coordinator.announcement)
            default: Issue.record("something else than an answer: \(output)")
            }
        }
    }

    @Test("a message that was cut anywhere is refused")
    func cut() throws {
        var pair = try Pair(keys: CoordinatorKeys())
        let knock = try pair.say("hello")
        let offer = try pair.coordinator.receive(knock, at: Pair.start).frame()
        for count in 0..<knock.count {
            #expect(throws: SealFault.self) {
                try pair.coordinator.receive(Array(knock.prefix(count)), at: Pair.start)
            }
        }
        for count in 0..<offer.count {
            #expect(throws: SealFault.self) { try pair.worker.receive(Array(offer.prefix(count))) }
        }
        let joined = try Pair.joined()
        pair = joined
        let event = try pair.say("it ran")
        for count in 0..<event.count {
            expectNothing(Array(event.prefix(count)), by: &pair.coordinator)
        }
        let announcement = pair.coordinator.announcement
        for count in 0..<announcement.count {
            #expect(throws: SealFault.self) {
                try pair.worker.receive(Array(announcement.prefix(count)))
            }
        }
    }

    @Test("a message is taken once, and never after one that was sent later")
    func replayed() throws {
        var pair = try Pair.joined()
        let first = try pair.order("1")
        let second = try pair.order("2")
        #expect(try pair.worker.receive(second).messages == ["2"])
        #expect(throws: SealFault.replayed) { try pair.worker.receive(first) }
        #expect(throws: SealFault.replayed) { try pair.worker.receive(second) }
        let event = try pair.say("3")
        let later = try pair.say("4")
        #expect(try pair.coordinator.receive(event, at: Pair.start).messages == ["3"])
        #expect(throws: SealFault.replayed) {
            try pair.coordinator.receive(event, at: Pair.start)
        }
        #expect(try pair.coordinator.receive(later, at: Pair.start).messages == ["4"])
        let own = pair.coordinator.sealOwn(bytes("tick"), lane: 1)
        _ = try pair.coordinator.receive(own, at: Pair.start)
        #expect(throws: SealFault.replayed) { try pair.coordinator.receive(own, at: Pair.start) }
    }

    @Test("a beat may overtake events, and is then no reason to refuse them")
    func lanes() throws {
        var pair = try Pair.joined()
        let event = try pair.say("event", lane: 0)
        let beat = try pair.say("beat", lane: 1)
        #expect(try pair.coordinator.receive(beat, at: Pair.start).messages == ["beat"])
        #expect(try pair.coordinator.receive(event, at: Pair.start).messages == ["event"])
        #expect(throws: SealFault.replayed) {
            try pair.coordinator.receive(beat, at: Pair.start)
        }
    }

    @Test("what is sealed for one worker is nothing to another")
    func otherWorker() throws {
        let keys = CoordinatorKeys()
        var pair = try Pair.joined(keys)
        var other = try Pair(keys: keys)
        other.coordinator = pair.coordinator
        _ = try other.join()
        pair.coordinator = other.coordinator
        let order = try pair.order("for the first")
        #expect(throws: SealFault.unknownSession) { try other.worker.receive(order) }
        // With the other's number in its header, too.
        let theirs = try other.coordinator.seal([], to: other.address, lane: 0).unwrapped()
        let header = SealedHeader.bytes
        let mixed = Array(theirs.prefix(header)) + order.dropFirst(header)
        #expect(throws: SealFault.forged) { try other.worker.receive(mixed) }
        // A worker's message in the name of another worker's session.
        let event = try pair.say("event")
        let their = try other.say("event")
        let swapped = Array(their.prefix(header)) + event.dropFirst(header)
        #expect(throws: SealFault.forged) {
            try pair.coordinator.receive(swapped, at: Pair.start)
        }
        // A message that is sent back to its sender.
        #expect(throws: SealFault.forged) { try pair.worker.receive(event) }
    }

    @Test("nothing of an earlier start is taken")
    func earlierEpoch() throws {
        let keys = CoordinatorKeys()
        var old = try Pair.joined(keys)
        let oldAnnouncement = old.coordinator.announcement
        let oldOrder = try old.order("old")
        let oldEvent = try old.say("old")
        var pair = try Pair(keys: keys, identity: old.identity, epoch: 2)
        let oldOffer: [UInt8]
        do {
            var earlier = try Pair(keys: keys, identity: old.identity)
            let knock = try earlier.say("hello")
            oldOffer = try earlier.coordinator.receive(knock, at: Pair.start).frame()
        }
        _ = try pair.join()
        #expect(throws: SealFault.earlierEpoch) { try pair.worker.receive(oldAnnouncement) }
        #expect(throws: SealFault.unexpected) { try pair.worker.receive(oldOffer) }
        #expect(throws: SealFault.unknownSession) { try pair.worker.receive(oldOrder) }
        let answer = try pair.coordinator.receive(oldEvent, at: Pair.start)
        #expect(answer.messages.isEmpty)
        #expect(try answer.frame() == pair.coordinator.announcement)
        // The worker goes on as if nothing had been.
        #expect(try pair.worker.receive(try pair.order("new")).messages == ["new"])
    }

    @Test("a worker follows the next start of its coordinator, and is asked to greet it")
    func nextEpoch() throws {
        let keys = CoordinatorKeys()
        var pair = try Pair.joined(keys)
        pair.coordinator = CoordinatorSeals(
            keys: keys,
            revoked: [],
            reign: Pair.reign,
            epoch: Epoch(rawValue: 2)
        )
        let knock = try pair.worker.receive(pair.coordinator.announcement).frame()
        let offer = try pair.coordinator.receive(knock, at: Pair.start).frame()
        guard case .resync(let reign, let epoch)? = try pair.worker.receive(offer).first else {
            throw Missing()
        }
        #expect(reign == Pair.reign && epoch == Epoch(rawValue: 2))
        let hello = try pair.say("hello again")
        #expect(try pair.coordinator.receive(hello, at: Pair.start).messages == ["hello again"])
    }

    @Test("an announcement that comes again does not disturb a worker that is known")
    func needlessOffer() throws {
        var pair = try Pair.joined()
        let knock = try pair.worker.receive(pair.coordinator.announcement).frame()
        let offer = try pair.coordinator.receive(knock, at: Pair.start).frame()
        #expect(try pair.worker.receive(offer).isEmpty)
        #expect(try pair.worker.receive(try pair.order("go on")).messages == ["go on"])
    }

    @Test("a worker whose session was forgotten agrees on another one")
    func forgotten() throws {
        let keys = CoordinatorKeys()
        var pair = try Pair.joined(keys)
        pair.coordinator = CoordinatorSeals(
            keys: keys,
            revoked: [],
            reign: Pair.reign,
            epoch: Epoch(rawValue: 1)
        )
        let beat = try pair.say("beat", lane: 1)
        let announcement = try pair.coordinator.receive(beat, at: Pair.start).frame()
        let knock = try pair.worker.receive(announcement).frame()
        let offer = try pair.coordinator.receive(knock, at: Pair.start).frame()
        guard case .resync? = try pair.worker.receive(offer).first else { throw Missing() }
        let hello = try pair.say("hello")
        #expect(try pair.coordinator.receive(hello, at: Pair.start).messages == ["hello"])
    }

    @Test("a greeting that was recorded opens no session, however it is sent again")
    func recordedGreeting() throws {
        let keys = CoordinatorKeys()
        var pair = try Pair(keys: keys)
        let knock = try pair.say("hello")
        let offer = try pair.coordinator.receive(knock, at: Pair.start).frame()
        _ = try pair.worker.receive(offer)
        let hello = try pair.say("hello")
        _ = try pair.coordinator.receive(hello, at: Pair.start)
        #expect(throws: SealFault.replayed) {
            try pair.coordinator.receive(hello, at: Pair.start)
        }
        let lost = pair.coordinator.replace(keys: keys, revoked: [pair.identity.publicKey])
        #expect(lost == [pair.address])
        _ = pair.coordinator.replace(keys: keys, revoked: [])
        // The knock gives other keys each time.
        _ = try pair.coordinator.receive(knock, at: Pair.start)
        let answer = try pair.coordinator.receive(hello, at: Pair.start)
        #expect(answer.messages.isEmpty)
        #expect(pair.coordinator.sessionCount == 0)
    }

    @Test("what was sealed cannot be opened with the coordinator's keys, which were stolen later")
    func recordedBefore() throws {
        let keys = CoordinatorKeys()
        var pair = try Pair.joined(keys)
        let event = try pair.say("secret")
        let order = try pair.order("secret")
        // With the same keys, reign and epoch, and everything that was said in clear.
        var thief = try Pair.joined(keys)
        #expect(try thief.coordinator.receive(event, at: Pair.start).messages.isEmpty)
        #expect(throws: SealFault.unknownSession) { try thief.worker.receive(order) }
    }

    @Test("with too many sessions, the oldest of the grant that has most of them goes")
    func manySessions() throws {
        var pair = try Pair(keys: CoordinatorKeys())
        let max = 8
        pair.coordinator.sessionsMax = max
        _ = try pair.join()
        let keys = pair.keys
        let token = JoinToken(try WorkerGrant(), by: keys)
        for _ in 0..<3 * max {
            var other = try Pair(keys: keys, token: token)
            other.coordinator = pair.coordinator
            _ = try other.join()
            pair.coordinator = other.coordinator
        }
        #expect(pair.coordinator.sessionCount == max)
        let event = try pair.say("still here")
        #expect(try pair.coordinator.receive(event, at: Pair.start).messages == ["still here"])
    }

    @Test("a message in clear is refused by both sides")
    func clear() throws {
        var pair = try Pair.joined()
        let clear: [UInt8] = [8, 1, 16, 0]
        #expect(throws: SealFault.unsealed) { try pair.worker.receive(clear) }
        #expect(throws: SealFault.unsealed) {
            try pair.coordinator.receive(clear, at: Pair.start)
        }
    }

    @Test("knocks without end cost a bounded memory, and leave sessions alone")
    func manyKnocks() throws {
        var pair = try Pair.joined()
        let key = try pair.worker.receive(pair.coordinator.announcement).frame()
        for number in 1...UInt64(CoordinatorSeals.offersMax + 200) {
            var knock = key
            for (place, shift) in zip(3..<11, stride(from: 56, through: 0, by: -8)) {
                knock[place] = UInt8(truncatingIfNeeded: number >> UInt64(shift))
            }
            _ = try pair.coordinator.receive(knock, at: Pair.start)
        }
        #expect(pair.coordinator.offerCount == CoordinatorSeals.offersMax)
        let event = try pair.say("still here")
        #expect(try pair.coordinator.receive(event, at: Pair.start).messages == ["still here"])
    }

    @Test("a later connection of a worker ends what an earlier one may say")
    func connections() throws {
        var pair = try Pair.joined()
        let late = try pair.say("late")
        pair.worker.connected(2)
        _ = try pair.join("second")
        let answer = try pair.coordinator.receive(late, at: Pair.start)
        #expect(answer.messages.isEmpty)
        #expect(pair.coordinator.sessionCount == 1)
    }
}
