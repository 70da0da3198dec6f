import OperonAMQP
import OperonCore
import OperonGraphFile
import OperonHTTP
import OperonModel

extension FuzzTarget {
    /// What people write in one line: cron expressions, durations, amounts, rates, times, addresses
    /// and templates of commands. The first byte chooses.
    static let text = FuzzTarget("text", bytesMax: 1_024) { bytes in
        var input = InputReader(bytes)
        let kind = Int(input.byte())
        let rest = input.remainder()
        let text = String(decoding: rest, as: UTF8.self)
        let checks: [(String) throws -> Void] = [
            cron, duration, amount, size, date, rate, percent, base64, brokerAddress,
            listenAddress, traceParent, template, eventLine,
        ]
        try checks[kind % checks.count](text)
    }

    /// Time zones as files of the IANA database, and a cron expression in them.
    static let timeZone = FuzzTarget("time-zone", bytesMax: 2_048) { bytes in
        var input = InputReader(bytes)
        let expressions = ["*/7 2 * * *", "30 1 29 2 *", "0 0 L * *", "59 23 * * 7#5"]
        let expression = expressions[Int(input.byte()) % expressions.count]
        guard let zone = try? TimeZoneRules(tzif: input.remainder()) else { return }
        let schedule = CronSchedule(try CronExpression(expression), in: zone)
        for time in times {
            let offset = zone.offset(at: time)
            try require(abs(offset) <= 26 * 3_600, "an offset of \(offset) s")
            guard let next = schedule.next(after: time) else { continue }
            try require(next > time, "\(next) comes after \(time)")
        }
    }

    /// From a few centuries ago to a few ahead, and some in a year with changes of offset.
    private static let times: [Int64] = [
        -9_000_000_000, -1, 0, 1_700_000_000, 1_711_846_800, 1_729_990_800, 9_000_000_000,
    ]

    private static func cron(_ text: String) throws {
        guard let expression = try? CronExpression(text) else { return }
        let schedule = CronSchedule(expression, in: .utc)
        for time in times {
            guard let next = schedule.next(after: time) else { continue }
            try require(next > time && next % 60 == 0, "“\(text)”: \(next) comes after \(time)")
            // The matches before it are those that an earlier start finds.
            let same = schedule.next(after: next - 1)
            try require(
                same == next,
                "“\(text)”: \(next) is a match, and \(next - 1) finds another"
            )
        }
    }

    private static func duration(_ text: String) throws {
        guard let duration = Duration(graphFileText: text) else { return }
        let most = Limits.durationMax
        try require(
            duration <= most && duration >= .zero - most,
            "“\(text)” is a duration of \(duration)"
        )
    }

    private static func amount(_ text: String) throws {
        for name in [ResourceAmount.cpusName, ResourceAmount.memoryName, "licences"] {
            guard let amount = ResourceText.amount(text, of: name) else { continue }
            let written = ResourceText.text(amount, of: name)
            let again = ResourceText.amount(written, of: name)
            try require(again == amount, "“\(text)” of \(name) is written as \(written)")
        }
    }

    private static func size(_ text: String) throws {
        guard let count = ByteCountText.count(text) else { return }
        let written = ByteCountText.text(count)
        try require(ByteCountText.count(written) == count, "“\(text)” is written as \(written)")
    }

    private static func date(_ text: String) throws {
        guard let moment = DateText.moment(text) else { return }
        let written = DateText.text(moment)
        try require(DateText.moment(written) == moment, "“\(text)” is written as \(written)")
    }

    private static func rate(_ text: String) throws {
        guard let rate = StartRate(text, burst: text.utf8.count) else { return }
        guard (try? rate.check("rate")) != nil else { return }
        let again = StartRate(rate.text, burst: rate.burst)
        try require(again == rate, "“\(text)” is written as \(rate.text)")
    }

    private static func percent(_ text: String) throws {
        for plusIsSpace in [false, true] {
            guard let decoded = PercentText.decode(text[...], plusIsSpace: plusIsSpace) else {
                continue
            }
            let written = PercentText.encode(decoded)
            try require(
                PercentText.decode(written[...]) == decoded,
                "“\(text)” is written as \(written)"
            )
        }
    }

    private static func base64(_ text: String) throws {
        guard let bytes = Base64.decode(Array(text.utf8)[...]) else { return }
        var written: [UInt8] = []
        Base64.append(bytes[...], to: &written)
        try require(
            Base64.decode(written[...]) == bytes,
            "“\(text)” is written as \(String(decoding: written, as: UTF8.self))"
        )
    }

    private static func brokerAddress(_ text: String) throws {
        guard let address = try? BrokerAddress(url: text) else { return }
        try require(
            (0...65_535).contains(address.port) && !address.host.isEmpty,
            "“\(text)” is the address \(address)"
        )
    }

    private static func listenAddress(_ text: String) throws {
        guard let address = try? ListenAddress(text) else { return }
        let again = try? ListenAddress(address.description)
        try require(again == address, "“\(text)” is written as \(address)")
    }

    private static func traceParent(_ text: String) throws {
        guard let trace = TraceContext(text) else { return }
        try require(
            TraceContext(trace.traceParent) == trace,
            "“\(text)” is written as \(trace.traceParent)"
        )
    }

    private static func template(_ text: String) throws {
        guard let template = try? CommandTemplate(text, sourceCount: 2) else { return }
        let values = ["a b/it's.tar.gz", "-rf"]
        let once = template.command(values, number: 7)
        try require(once == template.command(values, number: 7), "“\(text)” has two commands")
    }

    private static func eventLine(_ text: String) throws {
        let line = Array(text.utf8)
        guard let view = EventJSON.view(line) else { return }
        try require(EventJSON.line(view) == line, "“\(text)” is written as another line")
    }
}
