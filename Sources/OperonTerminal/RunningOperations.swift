import OperonModel

/// The operations that run, for a block of lines below the counts: the longest first.
struct RunningOperations {
    private var since: [String: Timestamp] = [:]

    /// What ends sooner would only flicker.
    private static let shownAfter = Duration.seconds(1)
    /// The most operations that are named.
    private static let linesMax = 8

    mutating func started(_ name: String, at now: Timestamp) { since[name] = now }

    mutating func ended(_ name: String) { since[name] = nil }

    /// Replaces all: how long each has run.
    mutating func counted(_ durations: [(name: String, duration: Duration)], at now: Timestamp) {
        since = [:]
        for (name, duration) in durations { since[name] = now - duration }
    }

    /// Lines that are at most `width` columns wide.
    func lines(_ style: TerminalStyle, at now: Timestamp, width: Int) -> [String] {
        var longest: [(name: String, since: Timestamp)] = []
        for (name, start) in since where now - start >= Self.shownAfter {
            let key = (start, name)
            let place = longest.firstIndex { key < ($0.since, $0.name) } ?? longest.count
            guard place < Self.linesMax else { continue }
            longest.insert((name, start), at: place)
            if longest.count > Self.linesMax { longest.removeLast() }
        }
        return longest.map { operation in
            let time = TimeFormat.clock(now - operation.since)
            let name = style.spelled(TerminalText.line(operation.name))
            let room = width - 3 - time.count
            // Too narrow for both: the name says more.
            guard room >= 4 else { return TerminalText.prefix(of: name, width: width) }
            let shown = TerminalText.elided(name, to: room, mark: style.ellipsis)
            return "  " + shown + " " + style.tinted(time, .faint)
        }
    }
}
