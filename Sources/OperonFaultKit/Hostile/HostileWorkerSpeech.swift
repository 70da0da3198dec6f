package import OperonModel

/// One message of a hostile worker.
package struct HostileMessage: Sendable {
    package let kind: String
    /// Through the exchange of beats, else through that of events.
    package var isBeat: Bool
    package let body: [UInt8]
}

/// Draws what a worker's login on the broker lets it say to the coordinator.
///
/// It starts from messages that the coordinator would take and has some of their fields wrong. What
/// it knows of the coordinator (reign, epoch, attempts that it was given) is told to it by whoever
/// reads the worker's queue, so that the coordinator looks further than at the first field.
package struct HostileWorkerSpeech: Sendable {
    package var values: HostileValues
    package var name: String
    package var incarnation: UInt64
    package var connection: UInt64 = 1
    package var reign: UInt64 = 0
    package var epoch: UInt64 = 0
    /// Of the coordinator's messages, the last that came.
    package var received: UInt64 = 0
    /// Events up to this number are acknowledged.
    package var acknowledged: UInt64 = 0
    package private(set) var held: [HeldAttempt] = []
    /// The last watch that it was ordered.
    package var watch: UInt64 = 1
    /// Milliseconds on the worker's clock.
    package var now: Int64 = 1_000

    private var sequence: UInt64 = 0
    private var lastEvent: UInt64 = 0
    private var request: UInt64 = 0
    private var earlier: [HostileMessage] = []
    private let queue: String
    private let addition: HostileAddition

    /// Attempts that are remembered, and messages that may be said again.
    private static let memory = 64

    /// - Parameter queue: the one whose operations it may be given.
    package init(values: HostileValues, name: String, incarnation: UInt64, queue: String) {
        self.values = values
        self.name = name
        self.incarnation = incarnation
        self.queue = queue
        addition = HostileAddition(queue: queue)
    }

    package mutating func take(_ attempt: HeldAttempt) {
        held.append(attempt)
        if held.count > Self.memory { held.removeFirst() }
        values.knownNumbers = [
            acknowledged, received, UInt64(attempt.attempt.epoch.rawValue), attempt.attempt.number,
            UInt64(attempt.operation.graph.rawValue), UInt64(attempt.operation.index),
        ]
    }

    /// Events are wanted again from this number on.
    package mutating func repeatEvents(from number: UInt64) { lastEvent = number &- 1 }

    // MARK: - Sound messages

    /// What a worker says first, with nothing wrong in it.
    package mutating func soundHello() -> HostileMessage {
        sound { $0.hello() }
    }

    /// What keeps its lease.
    package mutating func soundBeat() -> HostileMessage {
        sound { $0.beat() }
    }

    private mutating func sound(
        _ make: (inout HostileWorkerSpeech) -> HostileMessage
    ) -> HostileMessage {
        let usual = values.wrongPercent
        values.wrongPercent = 0
        defer { values.wrongPercent = usual }
        return make(&self)
    }

    // MARK: - Any message

    package mutating func next() -> HostileMessage {
        values.wrongPercent = values.pick([0, 5, 10, 30])
        var message = draw()
        if values.isRare(50) { message.isBeat.toggle() }
        earlier.append(message)
        if earlier.count > Self.memory { earlier.removeFirst() }
        return message
    }

    private mutating func draw() -> HostileMessage {
        switch values.below(100) {
        case 0..<6: return hello()
        case 6..<46: return events()
        case 46..<60: return beat()
        case 60..<65: return log()
        case 65..<68: return progress()
        case 68..<70: return watched()
        case 70..<73: return tick()
        case 73..<80: return fetch()
        case 80..<84: return coordinatorsOwn()
        case 84..<88 where !earlier.isEmpty:
            let old = values.pick(earlier)
            return HostileMessage(kind: "said again", isBeat: old.isBeat, body: old.body)
        case 88..<94:
            let whole = values.flag() ? events() : beat()
            let body = values.damaged(whole.body)
            return HostileMessage(kind: "damaged", isBeat: whole.isBeat, body: body)
        case 94..<96: return HostileMessage(kind: "random", isBeat: false, body: values.bytes())
        case 96: return HostileMessage(kind: "empty", isBeat: values.flag(), body: [])
        case 97 where values.isRare(4): return manyElements()
        case 98 where values.isRare(4):
            let deep = HostileValues.deepGroups(values.pick([17, 10_000, 100_000]))
            return message("deep", isBeat: false) { _, raw in raw.append(deep) }
        default:
            return message("no kind, or an unknown one", isBeat: values.flag()) { values, raw in
                if values.flag() { raw.data(36 + UInt64(values.below(40)), values.bytes()) }
            }
        }
    }

    // MARK: - Kinds

    /// Reports of sources that it may not watch, or may.
    private mutating func watched() -> HostileMessage {
        let (watch, epoch) = (self.watch, self.epoch)
        return message("watched", isBeat: false) { values, raw in
            raw.message(37) { reports in
                for _ in 0..<1 + values.below(3) {
                    reports.message(1) { report in
                        report.fixed(1, values.number(or: watch))
                        Self.fill(&report, &values, watch: watch, epoch: epoch)
                    }
                }
            }
        }
    }

    private static func fill(
        _ report: inout RawMessage,
        _ values: inout HostileValues,
        watch: UInt64,
        epoch: UInt64
    ) {
        switch values.below(6) {
        case 0:
            report.message(2) { holds in
                for _ in 0..<values.below(4) {
                    holds.message(1) { held in
                        held.fixed(1, values.number(or: watch))
                        // As a coordinator numbers its triggers.
                        held.fixed(2, values.number(or: epoch << 32 | 1))
                        held.integer(3, values.number(or: 2))
                        held.string(4, values.text(or: "line:1"))
                    }
                }
            }
        case 1:
            report.message(3) { state in
                state.integer(1, values.number(or: 4))
                state.message(2) { $0.string(2, values.text()) }
            }
        case 2:
            report.message(4) { refused in
                refused.integer(1, values.number(or: 4_294_967_295))
                refused.message(2) { $0.string(2, values.text()) }
            }
        case 3:
            report.message(5) { occurred in
                occurred.string(1, values.text(or: "line:1"))
                occurred.string(2, values.text(or: "{\"line\":1}"))
            }
        case 4: report.message(6) { $0.integer(1, values.number(or: 1)) }
        default: report.message(7) { $0.integer(1, values.number(or: 1)) }
        }
    }

    private mutating func hello() -> HostileMessage {
        let (held, now, lastEvent, queue) = (self.held, self.now, self.lastEvent, self.queue)
        let acknowledged = self.acknowledged
        return message("hello", isBeat: false) { values, raw in
            let isDraining = values.number(or: 0)
            raw.message(13) { hello in
                hello.string(1, values.text(or: "host"))
                hello.integer(2, signed: values.signed(or: 1))
                hello.integer(3, values.number(or: 4))
                // Never none, which would mean all: whoever serves a queue is trusted with what is
                // in it, and this one is to leave the honest work alone.
                hello.string(4, queue)
                for _ in 0..<values.below(3) { hello.string(4, "hostile-\(values.text())") }
                for kind in ["command", "nothing", "wait"] { hello.string(5, kind) }
                if values.isIn(values.wrongPercent) { hello.string(5, values.text()) }
                for attempt in held { hello.data(6, Self.attempt(attempt, &values)) }
                hello.integer(7, values.number(or: acknowledged &+ 1))
                hello.integer(8, values.number(or: max(lastEvent, acknowledged)))
                if isDraining != 0 { hello.integer(9, isDraining) }
                hello.integer(13, signed: values.signed(or: now))
                if values.isIn(20) { hello.string(14, values.text()) }
                if values.isIn(20) { hello.fixed(15, values.number()) }
                if values.isIn(20) { hello.integer(16, values.number()) }
                if values.isIn(50) { hello.integer(24, 1) }
            }
        }
    }

    private mutating func beat() -> HostileMessage {
        let (held, now, lastEvent, received) = (self.held, self.now, self.lastEvent, self.received)
        let request = self.request
        return message("beat", isBeat: true) { values, raw in
            raw.message(10) { beat in
                beat.integer(1, signed: values.signed(or: now))
                beat.integer(2, values.number(or: received))
                beat.integer(3, values.number(or: lastEvent))
                for attempt in held where !values.isIn(values.wrongPercent) {
                    beat.data(4, Self.attempt(attempt, &values))
                }
                if values.isIn(values.wrongPercent) { beat.integer(5, values.number()) }
                for _ in 0..<(values.isIn(values.wrongPercent) ? values.below(4) : 0) {
                    beat.data(6, Self.outputRequest(held, request, &values))
                    beat.message(7) { open in
                        open.integer(1, values.number(or: request))
                        open.data(2, Self.attempt(held, &values))
                        open.integer(3, values.number(or: lastEvent))
                    }
                }
            }
        }
    }

    private mutating func events() -> HostileMessage {
        let first = values.isIn(70) ? lastEvent &+ 1 : acknowledged &+ 1
        let count = values.isRare(20) ? values.pick([0, 100, 1_000]) : 1 + values.below(4)
        var kinds: Set<String> = []
        var list: [[UInt8]] = []
        for _ in 0..<count {
            let (kind, bytes) = event()
            kinds.insert(kind)
            list.append(bytes)
        }
        let now = self.now
        let isRight = !values.isIn(values.wrongPercent)
        if isRight { lastEvent = first &+ UInt64(count) &- 1 }
        let kind = kinds.count == 1 ? "event \(kinds.first ?? "")" : "several events"
        return message(kind, isBeat: false) { values, raw in
            raw.message(9) { batch in
                batch.integer(1, isRight ? first : values.number())
                batch.integer(2, signed: values.signed(or: now))
                for event in list { batch.data(3, event) }
            }
        }
    }

    private mutating func event() -> (kind: String, bytes: [UInt8]) {
        request &+= 1
        let number = values.number(or: request)
        var raw = RawMessage()
        if !values.isIn(values.wrongPercent / 3) { raw.data(1, Self.attempt(held, &values)) }
        switch values.below(12) {
        case 0, 1:
            raw.integer(2, signed: values.signed(or: now))
            return ("started", raw.bytes)
        case 2, 3:
            raw.data(3, result())
            return ("finished", raw.bytes)
        case 4:
            raw.message(4)
            return ("returned", raw.bytes)
        case 5, 6, 7, 8:
            let (kind, operations) = addition.bytes(&values)
            raw.message(5) { added in
                added.integer(1, number)
                added.data(2, operations)
            }
            return ("added: \(kind)", raw.bytes)
        case 9:
            let names = (0..<values.below(4)).map { _ in values.text() }
            raw.message(6) { yielded in
                yielded.integer(1, number)
                for name in names { yielded.string(2, name) }
            }
            return ("yielded", raw.bytes)
        case 10:
            let name = values.text()
            raw.message(7) { read in
                read.integer(1, number)
                read.string(2, name)
            }
            return ("read", raw.bytes)
        default: return ("of no kind", raw.bytes)
        }
    }

    private mutating func result() -> [UInt8] {
        var raw = RawMessage()
        switch values.below(10) {
        case 0: raw.message(1)
        case 1: raw.data(2, error())
        case 2: raw.message(3)
        case 3: raw.message(11)
        case 4: break
        default: raw.integer(12, signed: values.signed(or: 1_000_000_000))
        }
        raw.integer(4, signed: values.signed(or: now))
        raw.integer(5, signed: values.signed(or: now))
        if values.isIn(30) { raw.data(6, addition.payload(&values)) }
        if values.isIn(30) { raw.data(7, values.bytes()) }
        if values.isIn(30) { raw.integer(8, values.number()) }
        return raw.bytes
    }

    private mutating func error() -> [UInt8] {
        var raw = RawMessage()
        switch values.below(5) {
        case 0: raw.string(values.pick([1, 4, 10, 11, 12]), values.text())
        case 1:
            let (type, text, payload) = (values.text(), values.text(), values.bytes())
            raw.message(2) { thrown in
                thrown.string(1, type)
                thrown.string(2, text)
                thrown.data(3, payload)
            }
        case 2: raw.integer(3, signed: values.signed())
        case 3: raw.message(values.pick([5, 6, 7]))
        default:
            let (bytes, limit) = (values.number(), values.number())
            raw.message(values.pick([8, 9])) { tooLarge in
                tooLarge.integer(1, bytes)
                tooLarge.integer(2, limit)
            }
        }
        return raw.bytes
    }

    private mutating func log() -> HostileMessage {
        let held = self.held
        return message("log", isBeat: false) { values, raw in
            raw.message(11) { log in
                log.data(1, Self.attempt(held, &values))
                log.integer(2, values.number(or: 1))
                log.integer(3, values.number())
                log.data(4, values.bytes())
            }
        }
    }

    private mutating func progress() -> HostileMessage {
        let held = self.held
        return message("progress", isBeat: false) { values, raw in
            raw.message(35) { progress in
                progress.data(1, Self.attempt(held, &values))
                progress.fixed(2, values.real().bitPattern)
                progress.string(3, values.text())
            }
        }
    }

    /// Only a coordinator sends it, to itself.
    private mutating func tick() -> HostileMessage {
        message("tick", isBeat: values.flag()) { values, raw in
            raw.message(32) { tick in
                tick.integer(1, values.number())
                tick.integer(2, values.number())
            }
        }
    }

    private mutating func fetch() -> HostileMessage {
        request &+= 1
        let (held, request) = (self.held, self.request)
        return message("fetch", isBeat: false) { values, raw in
            raw.message(33) { fetch in
                for _ in 0..<values.below(4) {
                    fetch.data(1, Self.outputRequest(held, request, &values))
                }
            }
        }
    }

    /// A message that only a coordinator says.
    private mutating func coordinatorsOwn() -> HostileMessage {
        message("of a coordinator", isBeat: values.flag()) { values, raw in
            let field: UInt64 = values.pick([7, 8, 12, 14, 15, 34])
            if field == 15 { raw.integer(field, values.number()) } else { raw.message(field) }
        }
    }

    private mutating func manyElements() -> HostileMessage {
        let count = values.pick([10_000, 262_143, 262_145, 1_000_000])
        return message("many elements", isBeat: true) { values, raw in
            let one: [UInt8] = values.flag() ? [0x22, 0] : [0x22, 8, 8, 1, 16, 9, 24, 0, 32, 0]
            raw.data(10, [8, 1] + HostileValues.repeated(one, count))
        }
    }

    // MARK: - Parts

    /// An envelope of this worker around a body.
    private mutating func message(
        _ kind: String,
        isBeat: Bool,
        _ body: (inout HostileValues, inout RawMessage) -> Void
    ) -> HostileMessage {
        sequence &+= 1
        var raw = RawMessage()
        raw.integer(1, values.isRare(100) ? values.number() : 1)
        if values.isRare(20) { raw.integer(2, values.number()) }
        raw.fixed(3, values.isIn(values.wrongPercent / 3) ? values.number() : reign)
        raw.integer(4, values.isIn(values.wrongPercent / 3) ? values.number(or: epoch) : epoch)
        raw.integer(5, values.number(or: sequence))
        let isOther = values.isIn(values.wrongPercent / 3)
        var sender = RawMessage()
        sender.string(1, isOther ? values.text() : name)
        sender.fixed(2, isOther ? values.number() : incarnation)
        sender.integer(3, isOther ? values.number(or: connection) : connection)
        if !values.isRare(200) { raw.data(6, sender.bytes) }
        body(&values, &raw)
        if values.isRare(100) { raw.message(16) { $0.string(1, "key") } }
        return HostileMessage(kind: kind, isBeat: isBeat, body: raw.bytes)
    }

    /// One that it holds mostly; else one that others may hold, or nobody.
    private static func attempt(_ held: [HeldAttempt], _ values: inout HostileValues) -> [UInt8] {
        guard !held.isEmpty, !values.isIn(15) else {
            var raw = RawMessage()
            for field: UInt64 in 1...4 { raw.integer(field, values.number()) }
            return raw.bytes
        }
        return attempt(values.pick(held), &values)
    }

    private static func attempt(_ one: HeldAttempt, _ values: inout HostileValues) -> [UInt8] {
        var raw = RawMessage()
        raw.integer(1, values.number(or: UInt64(one.attempt.epoch.rawValue)))
        raw.integer(2, values.number(or: one.attempt.number))
        raw.integer(3, values.number(or: UInt64(one.operation.graph.rawValue)))
        raw.integer(4, values.number(or: UInt64(one.operation.index)))
        return raw.bytes
    }

    private static func outputRequest(
        _ held: [HeldAttempt],
        _ request: UInt64,
        _ values: inout HostileValues
    ) -> [UInt8] {
        var raw = RawMessage()
        raw.integer(1, values.number(or: request))
        raw.data(2, attempt(held, &values))
        for field: UInt64 in 3...6 { raw.integer(field, values.number()) }
        return raw.bytes
    }
}
