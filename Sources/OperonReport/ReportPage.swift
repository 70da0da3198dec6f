package import OperonModel
package import OperonTerminal

/// What a run did, as one HTML file that needs nothing else: no script, no font and no picture from
/// elsewhere. What comes from operations is text in it.
package struct ReportPage: Sendable {
    /// The most rows of the table. With more operations, those that need attention come first, then
    /// those that took longest.
    package static let rowsMax = 10_000
    /// The most failed operations whose log is shown.
    package static let failuresMax = 50
    /// The bytes after which the table ends, if names and reasons are long.
    package static let tableBytesMax = 1_200_000
    /// What a row takes besides its name and its reason.
    private static let rowBytes = 110
    /// The most columns of an error or a reason.
    private static let reasonMax = 1_000
    /// How many of the last lines of a log are shown.
    package static let logLinesMax = 60
    /// The bytes of all logs together.
    package static let logBytesMax = 400_000

    private let report: RunReport
    private let shape: GraphShape
    /// About the machine and the programs.
    private let facts: [(name: String, value: String)]
    private let criticalPath: [Int]
    /// Whether the graph has not ended.
    private let isRunning: Bool

    /// - Parameter graph: The operations of the report, with their dependencies.
    package init(
        _ report: RunReport,
        of graph: GraphDescription,
        facts: [(name: String, value: String)]
    ) {
        self.init(report, shape: GraphShape(graph), facts: facts)
    }

    /// - Parameters:
    ///   - shape: The dependencies of the operations of the report.
    ///   - isRunning: Whether the graph has not ended.
    package init(
        _ report: RunReport,
        shape: GraphShape,
        facts: [(name: String, value: String)],
        isRunning: Bool = false
    ) {
        self.report = report
        self.isRunning = isRunning
        self.facts = facts
        self.shape = shape
        criticalPath = shape.criticalPath(durations: report.operations.map(\.duration))
    }

    package func html() -> [UInt8] {
        var markup = Markup()
        markup.beginPage(title: "\(report.graph): \(outcome.word)")
        writeHead(into: &markup)
        writeFailures(into: &markup)
        writePicture(into: &markup)
        writeTimeline(into: &markup)
        writeTable(into: &markup)
        writeFacts(into: &markup)
        markup.endPage()
        return markup.bytes
    }

    // MARK: - The head

    private var outcome: (word: String, state: Picture.State) {
        let counts = report.counts
        if isRunning {
            return counts.failed > 0
                ? ("still running, with failures", .failed) : ("still running", .running)
        }
        if counts.failed > 0 { return ("failed", .failed) }
        if counts.unfinished > 0 { return ("ended before its operations", .cancelled) }
        if counts.cancelled > 0 { return ("cancelled", .cancelled) }
        return counts.skipped > 0 ? ("partly skipped", .skipped) : ("succeeded", .succeeded)
    }

    private func writeHead(into markup: inout Markup) {
        let (word, state) = outcome
        markup.raw("<h1>")
        markup.text(report.graph)
        markup.raw("</h1>\n<p class=\"")
        markup.text(state.rawValue)
        markup.raw("\"><strong>")
        markup.text(state.sign + word)
        markup.raw("</strong></p>\n<p class=\"soft\">started ")
        markup.text(TimeFormat.iso8601(report.startedAt))
        markup.raw("</p>\n<dl>")
        let counts = report.counts
        var figures = [
            ("took", TimeFormat.short(report.makespan)),
            ("shortest possible", TimeFormat.short(report.lowerBound)),
            ("critical path", TimeFormat.short(report.criticalPath)),
            ("work", TimeFormat.short(report.work)),
            ("slots", "\(report.slots)"),
            ("operations", "\(counts.total)"),
        ]
        for (count, name) in [
            (counts.succeeded, "succeeded"), (counts.upToDate, OperationReport.upToDate),
            (counts.failed, "failed"), (counts.cancelled, "cancelled"),
            (counts.skipped, "skipped"), (counts.unfinished, "unfinished"),
        ] where count > 0 {
            figures.append((name, "\(count)"))
        }
        for (name, value) in figures { Self.writeTerm(name, value, into: &markup) }
        markup.raw("</dl>\n")
    }

    private static func writeTerm(_ name: String, _ value: String, into markup: inout Markup) {
        markup.raw("<div><dt>")
        markup.text(name)
        markup.raw("</dt><dd>")
        markup.text(value)
        markup.raw("</dd></div>")
    }

    // MARK: - Failures

    private func writeFailures(into markup: inout Markup) {
        let failed = report.operations.filter { $0.outcome == .failed }
        guard !failed.isEmpty else { return }
        markup.raw("<h2>Failures</h2>\n")
        var bytes = 0
        for operation in failed.prefix(Self.failuresMax) {
            markup.raw("<h3 class=\"failed\">")
            markup.text("✗ " + operation.name)
            markup.raw("</h3>\n<p>")
            markup.text(Self.why(operation))
            if operation.attempts.count > 1 {
                markup.text(" (attempt \(operation.attempts.count))")
            }
            markup.raw("</p>\n")
            bytes += writeLog(of: operation, bytesMax: Self.logBytesMax - bytes, into: &markup)
        }
        if failed.count > Self.failuresMax {
            markup.raw("<p>")
            markup.text("… and \(failed.count - Self.failuresMax) more.")
            markup.raw("</p>\n")
        }
    }

    /// Returns how many bytes were written.
    private func writeLog(
        of operation: OperationReport,
        bytesMax: Int,
        into markup: inout Markup
    ) -> Int {
        let tail = TerminalText.tail(operation.log, limit: Self.logLinesMax)
        let log = tail.lines.map { TerminalText.bounded($0) }.joined(separator: "\n")
        guard !log.isEmpty else { return 0 }
        var written = Markup()
        written.raw("<pre>")
        if let note = operation.linesBefore(omitted: tail.omitted) { written.text(note + "\n") }
        written.text(log)
        written.raw("</pre>\n")
        // As it is written: some characters take five times as many bytes.
        guard written.bytes.count <= bytesMax else {
            markup.raw(
                "<p class=\"soft\">Its log is left out: all logs together would be too long.</p>\n"
            )
            return 0
        }
        markup.append(written)
        return written.bytes.count
    }

    // MARK: - Pictures

    private func writePicture(into markup: inout Markup) {
        let operations = report.operations.map { operation in
            Picture.Operation(
                name: operation.name,
                state: operation.state,
                duration: operation.duration
            )
        }
        let picture = Picture(
            operations,
            shape,
            groups: report.repeated,
            criticalPath: criticalPath,
            title: report.graph
        )
        markup.raw("<h2>Graph</h2>\n<p class=\"soft\">")
        markup.text("The critical path has thick lines.")
        if picture.boxes.count < operations.count {
            markup.text(
                " \(operations.count) operations are \(picture.boxes.count) boxes; point at one to"
                    + " see what it stands for."
            )
        }
        if picture.arrowsLeftOut > 0 {
            markup.text(" \(picture.arrowsLeftOut) more arrows are left out.")
        }
        markup.raw("</p>\n<div class=\"wide\">\n")
        markup.append(PictureDrawing(picture).svg(isAlone: false))
        markup.raw("</div>\n")
    }

    private func writeTimeline(into markup: inout Markup) {
        let critical = Set(criticalPath)
        // Workers say when; the clock of one may be wrong.
        let within: (Duration) -> Duration = { min(max($0, .zero), report.makespan) }
        let ready = shape.readyTimes(
            ends: report.operations.map { $0.end.map { within($0).seconds } ?? .infinity }
        )
        var bars: [Timeline.Bar] = []
        for (number, operation) in report.operations.enumerated() {
            var readyAt: Duration? = ready[number].isFinite ? .seconds(ready[number]) : nil
            for (place, attempt) in operation.attempts.enumerated() {
                guard let start = attempt.start else { continue }
                let isLast = place == operation.attempts.count - 1
                bars.append(
                    Timeline.Bar(
                        name: operation.name,
                        worker: attempt.worker,
                        ready: readyAt,
                        start: within(start),
                        end: within(attempt.end ?? report.makespan),
                        state: Picture.State(attempt.ended),
                        isCritical: isLast && critical.contains(number)
                    )
                )
                readyAt = readyAt.map { max($0, within(attempt.end ?? report.makespan)) }
            }
        }
        guard !bars.isEmpty else { return }
        let timeline = Timeline(bars, length: report.makespan)
        markup.raw("<h2>Timeline</h2>\n<p class=\"soft\">")
        markup.text("A row for each slot, a bar for each attempt. A line before a bar is a gap ")
        markup.text("in which the attempt was waiting for a slot, a limit, a key or a delay.")
        if timeline.rowsLeftOut > 0 {
            markup.text(" \(timeline.rowsLeftOut) more slots are left out.")
        }
        markup.raw("</p>\n<div class=\"wide\">\n")
        markup.append(TimelineDrawing(timeline).svg())
        markup.raw("</div>\n")
    }

    // MARK: - The table

    private func writeTable(into markup: inout Markup) {
        var numbers = Array(report.operations.indices)
        markup.raw("<h2>Operations</h2>\n")
        if numbers.count > Self.rowsMax || rowBytes > Self.tableBytesMax {
            let ranked = numbers.map { number in
                let operation = report.operations[number]
                return (
                    needsAttention: operation.outcome != .succeeded, took: operation.duration,
                    number
                )
            }
            let first = ranked.sorted { left, right in
                guard left.needsAttention == right.needsAttention else {
                    return left.needsAttention
                }
                return left.took > right.took
            }
            markup.raw("<p class=\"soft\">")
            markup.text(
                "First those that did not succeed, then those that took longest."
            )
            markup.raw("</p>\n")
            numbers = first.prefix(Self.rowsMax).map(\.2)
        }
        markup.raw("<table><thead><tr><th>operation<th>outcome<th class=n>attempts<th class=n>from")
        markup.raw("<th class=n>took<th>worker<th>why</thead>\n<tbody>\n")
        let start = markup.bytes.count
        var written = 0
        for number in numbers where markup.bytes.count - start < Self.tableBytesMax {
            writeRow(report.operations[number], into: &markup)
            written += 1
        }
        markup.raw("</tbody></table>\n")
        guard written < report.operations.count else { return }
        markup.raw("<p class=\"soft\">")
        markup.text("… and \(report.operations.count - written) more operations.")
        markup.raw("</p>\n")
    }

    /// About what all rows would take.
    private var rowBytes: Int {
        report.operations.reduce(0) { bytes, operation in
            bytes + Self.rowBytes + operation.name.utf8.count + Self.why(operation).utf8.count
        }
    }

    private func writeRow(_ operation: OperationReport, into markup: inout Markup) {
        let state = operation.state
        let outcome = operation.outcome == nil ? "unfinished" : state.rawValue
        markup.raw("<tr><td>")
        markup.text(operation.name)
        markup.raw("<td class=")
        markup.text(state.rawValue)
        markup.raw(">")
        markup.text(operation.isUpToDate ? OperationReport.upToDate : outcome)
        markup.raw("<td class=n>")
        markup.number(operation.attempts.count)
        markup.raw("<td class=n>")
        if let start = operation.start { markup.text(TimeFormat.short(start)) }
        markup.raw("<td class=n>")
        if operation.start != nil { markup.text(TimeFormat.short(operation.duration)) }
        markup.raw("<td>")
        markup.text(operation.worker ?? "")
        markup.raw("<td>")
        markup.text(Self.why(operation))
        markup.raw("\n")
    }

    private static func why(_ operation: OperationReport) -> String {
        if let error = operation.error {
            return TerminalText.elided(error.description, to: reasonMax)
        }
        if let cause = operation.cause {
            let why = "because of “\(cause.dependency)”"
            guard cause.root != cause.dependency else { return why }
            return why + ", which goes back to “\(cause.root)”"
        }
        return TerminalText.elided(operation.reason, to: reasonMax)
    }

    private func writeFacts(into markup: inout Markup) {
        guard !facts.isEmpty else { return }
        markup.raw("<h2>Where it ran</h2>\n<dl>")
        for (name, value) in facts { Self.writeTerm(name, value, into: &markup) }
        markup.raw("</dl>\n")
    }
}

extension OperationReport {
    var state: Picture.State {
        if let outcome { return Picture.State(outcome) }
        return attempts.last?.ended == .unfinished ? .running : .waiting
    }

    /// Of the attempt that counts, without the time in which it waited for other operations.
    package var duration: Duration {
        guard let start, let end else { return .zero }
        return max(.zero, end - start - waited)
    }
}

extension Picture.State {
    init(_ ending: AttemptReport.End) {
        self =
            switch ending {
            case .succeeded: .succeeded
            case .failed, .crashed: .failed
            case .cancelled, .lost, .returned: .cancelled
            case .unfinished: .running
            }
    }
}
