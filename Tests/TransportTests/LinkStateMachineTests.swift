import OperonCore
import OperonModel
import Testing

/// Drives the machine and keeps what it asked for.
private struct Driven {
    var machine: LinkStateMachine
    var now = Timestamp.zero

    init(seed: UInt64 = 1) { machine = LinkStateMachine(seed: seed) }

    mutating func callAsFunction(_ event: LinkStateMachine.Event) -> [LinkStateMachine.Effect] {
        var effects: [LinkStateMachine.Effect] = []
        machine.handle(event, at: now, into: &effects)
        return effects
    }

    /// Lets the time pass until the machine has something to do.
    mutating func wait() throws -> [LinkStateMachine.Effect] {
        now = try #require(machine.wakeAt)
        return self(.tick)
    }

    /// Up on its first connection.
    static func up(heartbeat: Duration = .seconds(5)) -> Driven {
        var link = Driven()
        _ = link(.started)
        _ = link(.opened(attempt: 1, heartbeat: heartbeat))
        _ = link(.ready(attempt: 1))
        return link
    }
}

@Suite struct LinkStateMachineTests {
    @Test func `a link connects, prepares and is up`() {
        var link = Driven()

        #expect(link(.started) == [.connect(attempt: 1)])
        #expect(link(.opened(attempt: 1, heartbeat: .seconds(5))) == [.prepare(number: 1)])
        #expect(link(.ready(attempt: 1)) == [.announceUp(number: 1)])
        #expect(link.machine.state == .up(since: .zero))
    }

    @Test func `a failed try is followed by the next after a pause`() throws {
        var link = Driven()
        _ = link(.started)

        #expect(link(.failed(attempt: 1, .lost("gone"))) == [.disconnect(reason: "gone")])

        #expect(try link.wait() == [.connect(attempt: 2)])
    }

    @Test func `pauses grow from 50 ms to 5 s and stay there`() throws {
        var link = Driven()
        _ = link(.started)
        var limit = Duration.milliseconds(50)

        for attempt in UInt64(1)...30 {
            let failedAt = link.now
            _ = link(.failed(attempt: attempt, .lost("gone")))
            let pause = try #require(link.machine.wakeAt) - failedAt
            #expect(pause >= limit / 2 && pause <= limit)
            limit = min(limit * 2, .seconds(5))
            _ = try link.wait()
        }
    }

    @Test func `links of different seeds come back at different times`() throws {
        let pauses = Set(
            (UInt64(1)...20).map { seed in
                var link = Driven(seed: seed)
                _ = link(.started)
                _ = link(.failed(attempt: 1, .lost("gone")))
                return link.machine.wakeAt
            }
        )

        #expect(pauses.count == 20)
    }

    @Test func `a connection that broke at once does not shorten the pause`() throws {
        var link = Driven()
        _ = link(.started)
        for attempt in UInt64(1)...10 {
            _ = link(.opened(attempt: attempt, heartbeat: .seconds(5)))
            _ = link(.ready(attempt: attempt))
            _ = link(.failed(attempt: attempt, .lost("gone")))
            if attempt < 10 { _ = try link.wait() }
        }

        #expect(try #require(link.machine.wakeAt) - link.now >= .milliseconds(2_500))
    }

    @Test func `a connection that lasted is followed by a short pause`() throws {
        var link = Driven()
        _ = link(.started)
        for attempt in UInt64(1)...10 {
            _ = link(.failed(attempt: attempt, .lost("gone")))
            _ = try link.wait()
        }
        _ = link(.opened(attempt: 11, heartbeat: .zero))
        _ = link(.ready(attempt: 11))

        link.now = link.now + .seconds(6)
        _ = link(.failed(attempt: 11, .lost("gone")))

        #expect(try #require(link.machine.wakeAt) - link.now <= .milliseconds(50))
    }

    @Test func `losing a connection that was up is announced once`() {
        var link = Driven.up()

        #expect(
            link(.failed(attempt: 1, .lost("gone")))
                == [.disconnect(reason: "gone"), .announceDown(reason: "gone")]
        )
        #expect(link(.failed(attempt: 1, .lost("gone again"))).isEmpty)
    }

    @Test func `only connections that came to declare something get a number`() throws {
        var link = Driven.up()
        _ = link(.failed(attempt: 1, .lost("gone")))
        _ = try link.wait()
        _ = link(.failed(attempt: 2, .lost("refused")))
        _ = try link.wait()

        #expect(link(.opened(attempt: 3, heartbeat: .seconds(5))) == [.prepare(number: 2)])
    }

    @Test func `news of an earlier connection changes nothing`() throws {
        var link = Driven.up()
        _ = link(.failed(attempt: 1, .lost("gone")))
        _ = try link.wait()
        let before = link.machine

        for event: LinkStateMachine.Event in [
            .opened(attempt: 1, heartbeat: .seconds(5)), .ready(attempt: 1),
            .failed(attempt: 1, .refused("no")),
        ] {
            #expect(link(event).isEmpty)
        }
        #expect(link.machine == before)
    }

    @Test func `a heartbeat goes out after half an interval without bytes`() throws {
        var link = Driven.up()
        link.machine.bytesReceived(at: .zero + .seconds(2))

        #expect(link.machine.wakeAt == .zero + .milliseconds(2_500))
        #expect(try link.wait() == [.sendHeartbeat])
    }

    @Test func `bytes that go out put the heartbeat off`() {
        var link = Driven.up()
        link.now = .zero + .seconds(2)
        link.machine.bytesSent(at: link.now)
        link.machine.bytesReceived(at: link.now)

        link.now = .zero + .seconds(3)

        #expect(link(.tick).isEmpty)
        #expect(link.machine.wakeAt == .zero + .milliseconds(4_500))
    }

    @Test func `two intervals of silence end a connection`() throws {
        var link = Driven.up()
        for _ in 0..<3 { #expect(try link.wait() == [.sendHeartbeat]) }

        let effects = try link.wait()

        #expect(link.now == .zero + .seconds(10))
        #expect(
            effects == [
                .disconnect(reason: "the broker is silent"),
                .announceDown(reason: "the broker is silent"),
            ]
        )
    }

    @Test func `a connection that takes too long is given up`() throws {
        var link = Driven()
        _ = link(.started)

        let effects = try link.wait()

        #expect(link.now == .zero + .seconds(10))
        #expect(effects == [.disconnect(reason: "connecting took too long")])
    }

    @Test func `what is absent is looked for again on the same connection`() throws {
        var link = Driven()
        _ = link(.started)
        _ = link(.opened(attempt: 1, heartbeat: .zero))
        var pauses: [Duration] = []

        for _ in 0..<20 {
            #expect(link(.failed(attempt: 1, .absent("no exchange"))).isEmpty)
            let before = link.now
            #expect(try link.wait() == [.prepare(number: 1)])
            pauses.append(link.now - before)
        }

        #expect(pauses[0] >= .milliseconds(25))
        #expect(pauses[19] >= .milliseconds(500) && pauses[19] <= .seconds(1))
        #expect(link(.ready(attempt: 1)) == [.announceUp(number: 1)])
    }

    @Test func `heartbeats go on while something is absent`() throws {
        var link = Driven()
        _ = link(.started)
        _ = link(.opened(attempt: 1, heartbeat: .milliseconds(20)))
        _ = link(.failed(attempt: 1, .absent("no exchange")))

        #expect(try link.wait() == [.sendHeartbeat])
    }

    @Test func `a refused login ends the link`() {
        var link = Driven()
        _ = link(.started)

        #expect(
            link(.failed(attempt: 1, .refused("no")))
                == [.disconnect(reason: "no"), .end(.accessRefused("no"))]
        )
        #expect(link.machine.wakeAt == nil)
    }

    @Test(arguments: [LinkFailure.notAllowed("no"), .incompatible("no")])
    func `a place that is wrong ends a link only before it was ever up`(
        failure: LinkFailure
    ) throws {
        var new = Driven()
        _ = new(.started)
        let end = try #require(new(.failed(attempt: 1, failure)).last)
        #expect(end == .end(.accessRefused("no")) || end == .end(.incompatible("no")))

        var old = Driven.up()
        _ = old(.failed(attempt: 1, .lost("gone")))
        _ = try old.wait()
        #expect(old(.failed(attempt: 2, failure)) == [.disconnect(reason: "no")])
        #expect(try old.wait() == [.connect(attempt: 3)])
    }

    @Test func `a lock whose holder answers ends the link at once`() {
        var link = Driven()
        _ = link(.started)
        _ = link(.opened(attempt: 1, heartbeat: .zero))

        #expect(
            link(.failed(attempt: 1, .locked(holder: "host, process 1")))
                == [
                    .disconnect(reason: "the prefix is held"),
                    .end(.prefixHeld(holder: "host, process 1")),
                ]
        )
    }

    @Test func `a silent lock is retried for 20 s`() throws {
        var link = Driven()
        _ = link(.started)
        var attempt: UInt64 = 1
        var effects: [LinkStateMachine.Effect] = []
        while effects.last != .end(.prefixHeld(holder: nil)) {
            _ = link(.opened(attempt: attempt, heartbeat: .zero))
            effects = link(.failed(attempt: attempt, .locked(holder: nil)))
            attempt += 1
            guard effects.last == .disconnect(reason: "the prefix is locked") else { break }
            #expect(link.now - .zero < .seconds(20))
            _ = try link.wait()
        }

        #expect(effects.last == .end(.prefixHeld(holder: nil)))
        #expect(link.now - .zero >= .seconds(20) && link.now - .zero <= .seconds(26))
    }

    @Test func `a lock that was one's own ghost's is forgotten when up`() throws {
        var link = Driven()
        _ = link(.started)
        _ = link(.opened(attempt: 1, heartbeat: .zero))
        _ = link(.failed(attempt: 1, .locked(holder: nil)))
        _ = try link.wait()
        _ = link(.opened(attempt: 2, heartbeat: .zero))
        _ = link(.ready(attempt: 2))
        link.now = link.now + .seconds(100)
        _ = link(.failed(attempt: 2, .lost("gone")))
        _ = try link.wait()
        _ = link(.opened(attempt: 3, heartbeat: .zero))

        #expect(
            link(.failed(attempt: 3, .locked(holder: nil)))
                == [.disconnect(reason: "the prefix is locked")]
        )
    }

    @Test func `a new connection on request follows within 50 ms`() throws {
        var link = Driven.up()
        let reason = "a new connection was asked for"

        #expect(
            link(.reconnectRequested)
                == [.disconnect(reason: reason), .announceDown(reason: reason)]
        )
        #expect(try link.wait() == [.connect(attempt: 2)])
        #expect(link.now - .zero <= .milliseconds(50))
    }

    @Test func `closing drains what was accepted and then ends`() {
        var link = Driven.up()

        #expect(link(.closeRequested) == [.drain])
        #expect(link(.failed(attempt: 1, .lost("closed"))) == [.end(.closed)])
    }

    @Test func `closing does not wait longer than 5 s`() throws {
        var link = Driven.up()
        _ = link(.closeRequested)

        #expect(
            try link.wait()
                == [.disconnect(reason: "closing took too long"), .end(.closed)]
        )
        #expect(link.now == .zero + .seconds(5))
    }

    @Test func `an ended link answers to nothing`() {
        var link = Driven.up()
        _ = link(.cancelled)

        for event: LinkStateMachine.Event in [
            .started, .opened(attempt: 1, heartbeat: .zero), .ready(attempt: 1),
            .failed(attempt: 1, .lost("gone")), .tick, .reconnectRequested, .closeRequested,
            .cancelled,
        ] {
            #expect(link(event).isEmpty)
        }
        #expect(link.machine.state == .ended)
    }

    /// Any events in any order, a million of them: it never does two things at once.
    @Test(arguments: UInt64(1)...20)
    func `whatever happens, up and down alternate and nothing follows the end`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var link = Driven(seed: seed)
        var isUp = false
        var attempt: UInt64 = 0
        var hasEnded = false
        _ = link(.started)
        for _ in 0..<5_000 {
            link.now = link.now + .milliseconds(Int64(generator.next() % 4_000))
            let about = attempt + (generator.next() % 4 == 0 ? 0 : 1)
            for effect in link(randomEvent(attempt: about, &generator)) {
                #expect(!hasEnded)
                switch effect {
                case .announceUp:
                    #expect(!isUp)
                    isUp = true
                case .announceDown:
                    #expect(isUp)
                    isUp = false
                case .connect(let next):
                    #expect(!isUp && next > attempt)
                    attempt = next - 1
                case .end: hasEnded = true
                case .prepare, .sendHeartbeat, .disconnect, .drain: break
                }
            }
            if hasEnded { break }
            #expect(link.machine.wakeAt != nil || isUp)
        }
    }

    private func randomEvent(
        attempt: UInt64,
        _ generator: inout SeededGenerator
    ) -> LinkStateMachine.Event {
        switch generator.next() % 1_000 {
        case 0: .closeRequested
        case 1: .cancelled
        case 2: .failed(attempt: attempt, .locked(holder: nil))
        case 3..<50: .reconnectRequested
        case 50..<150: .failed(attempt: attempt, .lost("gone"))
        case 150..<200: .failed(attempt: attempt, .absent("not there"))
        case 200..<450: .opened(attempt: attempt, heartbeat: .seconds(5))
        case 450..<700: .ready(attempt: attempt)
        default: .tick
        }
    }
}
