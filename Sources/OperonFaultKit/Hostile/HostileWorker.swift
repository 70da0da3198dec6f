import OperonModel
import OperonWire

/// A worker that sends the coordinator everything that its login on the broker lets it send.
///
/// It is several workers, one after the other: each is welcomed, is given attempts of its queue,
/// and then says what `HostileWorkerSpeech` draws, while sound heartbeats keep its lease.
package enum HostileWorker {
    /// What one of them lives, and between two of its sound beats.
    private static let life = Duration.seconds(15)
    private static let beat = Duration.seconds(1)

    /// - Parameters:
    ///   - broker: with the login of a worker.
    ///   - names: of others, which it uses as well.
    /// - Throws: `CommandFailure` if the broker cannot be reached at all.
    package static func run(
        _ plan: HostilePlan,
        broker: String,
        prefix: String,
        queue: String,
        names: [String]
    ) throws -> HostileTally {
        var values = HostileValues(seed: plan.seed)
        values.knownNames = names
        var tally = HostileTally()
        var pace = HostilePace(plan)
        var failures = 0
        while !pace.isOver {
            let incarnation = values.number() ^ UInt64(values.below(.max))
            var speech = HostileWorkerSpeech(
                values: values,
                name: "hostile\(values.below(3))",
                incarnation: max(1, incarnation),
                queue: queue
            )
            do {
                let link = try RawBroker(url: broker)
                try live(&speech, on: link, prefix: prefix, &pace, &tally)
                failures = 0
            } catch let error as CommandFailure {
                // It was told that it may not; or it said what ends a connection.
                tally.answer("\(error)")
                failures += 1
                guard failures < 100 else { throw error }
            }
            values = speech.values
            values.knownNumbers = []
        }
        return tally
    }

    private static func live(
        _ speech: inout HostileWorkerSpeech,
        on link: RawBroker,
        prefix: String,
        _ pace: inout HostilePace,
        _ tally: inout HostileTally
    ) throws {
        let address = "\(Incarnation(rawValue: speech.incarnation)).\(speech.connection)"
        let own = "\(prefix)worker.\(address)"
        let broadcast = (exchange: prefix + "broadcast", key: "")
        let others = [(exchange: prefix + "dispatch", key: "coordinator"), broadcast]
        try link.consume(own, boundTo: [(exchange: prefix + "dispatch", key: own)] + others)
        let end = ContinuousClock.now + life
        var nextBeat = ContinuousClock.now
        while !pace.isOver, ContinuousClock.now < end {
            speech.now = pace.milliseconds * 1_000_000
            if ContinuousClock.now >= nextBeat {
                let message = speech.epoch == 0 ? speech.soundHello() : speech.soundBeat()
                try send(message, kind: "sound \(message.kind)", prefix, link, &speech, &tally)
                nextBeat = ContinuousClock.now + beat
            }
            // Before its welcome it says less, or nothing of it would count.
            let due = pace.due()
            for _ in 0..<(speech.epoch == 0 ? due / 10 : due) {
                pace.didOne()
                let message = speech.next()
                try send(message, kind: message.kind, prefix, link, &speech, &tally)
            }
            for body in try link.receive(milliseconds: 5) {
                for heard in speech.hear(body) { tally.answer(heard) }
            }
        }
    }

    private static func send(
        _ message: HostileMessage,
        kind: String,
        _ prefix: String,
        _ link: RawBroker,
        _ speech: inout HostileWorkerSpeech,
        _ tally: inout HostileTally
    ) throws {
        var properties = RawBroker.Properties()
        properties.contentType = Wire.contentType
        properties.deliveryMode = 1
        if speech.values.isIn(10) {
            properties.contentType = speech.values.pick([nil, "application/json", "", "\u{0}"])
            properties.contentEncoding = speech.values.pick([nil, "gzip", speech.values.text()])
            properties.deliveryMode = speech.values.pick([nil, 1, 2])
            properties.priority = speech.values.pick([nil, 0, 9, 255])
            properties.replyTo = speech.values.pick([nil, "", "coordinator"])
            properties.expiration = speech.values.pick([nil, "0", "1000"])
        }
        tally.send(kind, bytes: message.body.count)
        try link.publish(
            message.body,
            exchange: prefix + (message.isBeat ? "beats" : "events"),
            key: "coordinator",
            properties
        )
        if speech.values.isRare(5_000) {
            // Which its login does not let it: the broker ends the connection for it.
            tally.send("to other workers", bytes: message.body.count)
            try link.publish(message.body, exchange: prefix + "dispatch", key: "", properties)
        }
    }
}
