import OperonCore
import OperonModel

/// An hour of triggers that fire once a minute: each firing is submitted at once, and its run ends
/// at once.
struct TriggerHour {
    private var table = TriggerTable()
    private var moment = Moment(
        monotonic: Timestamp(nanoseconds: 1),
        wall: WallTime(nanosecondsSince1970: 1_750_000_000_000_000_000)
    )
    private let count: Int
    private var graphs: UInt32 = 0
    private var records = 0

    init(triggers count: Int) { self.count = count }

    /// The line to print.
    mutating func measure() throws -> String {
        let before = try ResidentMemory.current()
        for number in 0..<count { add(number) }
        let end = moment.wall + .seconds(3_600)
        var firings = 0
        let time = try ContinuousClock().measure {
            while let next = table.nextDate(), next <= end {
                moment.monotonic = moment.monotonic + (next - moment.wall)
                moment.wall = next
                var open = drive(.timeReached)
                firings += open.count
                while let submission = open.popLast() {
                    let graph = GraphID(rawValue: graphs)
                    graphs += 1
                    open += drive(.submitted(submission.firing, graph))
                    open += drive(.runEnded(graph, name: "g", round: 0, .succeeded))
                }
            }
            guard firings == 60 * count else {
                throw BenchmarkError(description: "\(firings) of \(60 * count) ticks fired")
            }
        }
        let after = try ResidentMemory.current()
        return """
            {"shape":"triggers","triggers":\(count),"firings":\(firings),"records":\(records),\
            "seconds":\(rounded(time.seconds, 4)),\
            "microsecondsPerFiring":\(rounded(time.seconds * 1e6 / Double(firings), 2)),\
            "bytesPerTrigger":\(rounded(Double(after - before) / Double(count), 1)),\
            "peakBytes":\(try ResidentMemory.peak())}
            """
    }

    private mutating func add(_ number: Int) {
        let id = TriggerID(epoch: Epoch(rawValue: 1), number: UInt32(number + 1))
        // Spread over the minute, as triggers are that people add.
        let start = moment.wall + .milliseconds(1 + Int64(number) * 60_000 / Int64(count))
        let description = TriggerDescription(
            name: "trigger-\(number)",
            source: .every(IntervalSource(interval: .seconds(60), startAt: start)),
            graph: TriggerGraph(file: "g.yaml", contentType: "application/yaml", text: "")
        )
        let definition = TriggerTable.Definition(
            id,
            description,
            zone: .utc,
            addedAt: moment.wall
        )
        let row = StoredTrigger(id: id, name: description.name, addedAt: moment.wall, body: [])
        _ = drive(.added(definition, row))
    }

    private mutating func drive(_ event: TriggerTable.Event) -> [TriggerTable.Submission] {
        var effects = TriggerTable.Effects()
        table.handle(event, at: moment, into: &effects)
        records += effects.records.count
        return effects.submissions
    }
}
