import OperonModel

/// How a command reports what it did.
package enum OutputFormat: String, Hashable, Sendable, CaseIterable {
    /// Sentences for people, on standard error.
    case text
    /// The versioned JSON form, on standard output.
    case json
    /// No report: the exit code says enough.
    case quiet
}

extension RunReport {
    /// How many details of failures are shown; the logs have everything.
    package struct TextLimits: Hashable, Sendable {
        /// The most operations whose log is shown.
        package var failures = 5
        /// The most further operations that are named.
        package var failureNames = 15
        /// How many of the last lines of each log are shown.
        package var logLines = 20
        /// The most lines about why operations did not run.
        package var reasons = 10
        /// The most repeated operations with a line of their own.
        package var repeated = 10

        /// Where all logs are; `nil`: nowhere.
        package var logs: String?
        /// Whether operations without an outcome do not run any more: their results are lost.
        package var nothingRuns = false

        /// - Parameters:
        ///   - rows: Those of the terminal; `nil`: there is none.
        ///   - logs: Where all logs are, such as “in DIR”; `nil`: nowhere.
        package init(rows: Int? = nil, logs: String? = nil) {
            self.logs = logs
            guard let rows else { return }
            // Room for the counts, the time and the prompt below them. The logs come before.
            failureNames = max(failureNames, rows - failures - 5)
        }
    }

    /// The summary for a person: the failed operations and the last lines of their logs, why other
    /// operations did not run, the counts, and the duration next to the shortest possible duration.
    package func summary(style: TerminalStyle, limits: TextLimits = TextLimits()) -> [String] {
        var lines = failureLines(style: style, limits: limits)
        lines += skippedLines(style: style, limits: limits)
        lines += cancelledLines(style: style, limits: limits)
        if let line = unfinishedLine(style: style, limits: limits) { lines.append(line) }
        lines += repeatedLines(style: style, limits: limits)
        lines.append(countLine(style: style))
        // A run that went on where all had ended took no time that means anything.
        if makespan > .zero { lines.append(timeLine(style: style)) }
        return lines
    }

    private func failureLines(style: TerminalStyle, limits: TextLimits) -> [String] {
        let failed = operations.filter { $0.outcome == .failed }
        var lines: [String] = []
        for operation in failed.prefix(limits.failures) {
            lines.append(failureLine(operation, style))
            let tail = TerminalText.tail(operation.log, limit: limits.logLines)
            if let note = operation.linesBefore(omitted: tail.omitted) {
                lines.append("    " + style.tinted(style.spelled(note), .faint))
            }
            lines += tail.lines.map { "    " + style.spelled(TerminalText.bounded($0)) }
        }
        for operation in failed.dropFirst(limits.failures).prefix(limits.failureNames) {
            lines.append(failureLine(operation, style))
        }
        let more = failed.count - limits.failures - limits.failureNames
        if more > 0 {
            lines.append(style.spelled("… and \(more) more failed: --output json names all"))
        }
        let unshown = failed.dropFirst(limits.failures)
            .count { !$0.log.isEmpty || $0.logBytesBefore > 0 }
        if unshown > 0 {
            let logs = unshown == 1 ? "1 more log is" : "\(unshown) more logs are"
            let place = limits.logs ?? "not shown: --logs DIR keeps all logs of a run"
            lines.append(style.spelled("… \(logs) \(TerminalText.line(place))"))
        }
        return lines
    }

    private func failureLine(_ operation: OperationReport, _ style: TerminalStyle) -> String {
        var line = style.tinted("failed", .bad) + " " + shown(operation.name, style)
        if let error = operation.error { line += ": " + shown(error.description, style) }
        let attempts = operation.attempts.count
        return attempts > 1 ? line + " (attempt \(attempts))" : line
    }

    /// One line per root: a thousand operations that are skipped because of one failure share a
    /// line.
    private func skippedLines(style: TerminalStyle, limits: TextLimits) -> [String] {
        var groups = ReasonGroups<SkipRoot>()
        for operation in operations where operation.outcome == .skipped {
            let root = operation.cause.map { SkipRoot(name: $0.root, outcome: $0.rootOutcome) }
            groups.add(root ?? SkipRoot(name: "", outcome: .skipped))
        }
        return groups.lines(limit: limits.reasons, style: style) { root, count in
            let skipped = style.tinted("\(count) skipped", .attention)
            guard !root.name.isEmpty else { return skipped }
            let name = shown("“\(root.name)”", style)
            return "\(skipped) because \(name) \(root.outcome.verb)"
        }
    }

    private func cancelledLines(style: TerminalStyle, limits: TextLimits) -> [String] {
        var groups = ReasonGroups<String>()
        for operation in operations where operation.outcome == .cancelled {
            groups.add(operation.reason)
        }
        // Without a reason the line would add nothing to the counts.
        return groups.lines(limit: limits.reasons, style: style) { reason, count in
            guard !reason.isEmpty else { return nil }
            return style.tinted("\(count) cancelled", .attention) + ": " + shown(reason, style)
        }
    }

    /// What still ran when the run ended.
    private func unfinishedLine(style: TerminalStyle, limits: TextLimits) -> String? {
        let running = operations.filter { operation in
            operation.outcome == nil && operation.attempts.last?.ended == .unfinished
        }
        guard !running.isEmpty else { return nil }
        let names = running.prefix(limits.failures).map { TerminalText.line($0.name) }
        let more = running.count - names.count
        let rest = more > 0 ? ", … and \(more) more" : ""
        let were = running.count == 1 ? "1 was" : "\(running.count) were"
        let what =
            limits.nothingRuns
            ? "\(running.count) ran without a stored result" : "\(were) still running"
        return style.tinted(what, .attention) + ": "
            + style.spelled(names.joined(separator: ", ") + rest)
    }

    /// Those of which not everything succeeded.
    private func repeatedLines(style: TerminalStyle, limits: TextLimits) -> [String] {
        let lines = repeated.lazy.compactMap { group -> String? in
            let counts = self.counts(of: group.indices)
            guard counts.succeeded < counts.total else { return nil }
            return countLine(counts, of: group.title, style: style)
        }
        return Array(lines.prefix(limits.repeated))
    }

    private func countLine(style: TerminalStyle) -> String {
        countLine(counts, of: graph, style: style)
    }

    private func countLine(
        _ counts: OutcomeCounts,
        of name: String,
        style: TerminalStyle
    ) -> String {
        var parts: [String] = []
        func add(_ count: Int, _ word: String, _ tint: Tint) {
            if count > 0 { parts.append(style.tinted("\(count) \(word)", tint)) }
        }
        let count = "\(counts.upToDate) \(OperationReport.upToDate)"
        let current = counts.upToDate > 0 ? " (\(count))" : ""
        add(counts.succeeded, "succeeded" + current, .good)
        add(counts.failed, "failed", .bad)
        add(counts.cancelled, "cancelled", .attention)
        add(counts.skipped, "skipped", .attention)
        add(counts.unfinished, "unfinished", .attention)
        let operations = plural(counts.total, "operation")
        let what = parts.isEmpty ? operations : "\(operations): " + parts.joined(separator: ", ")
        return style.tinted(shown(name, style), .strong) + ": " + what
    }

    /// The shortest possible duration follows from the graph and the slots.
    private func timeLine(style: TerminalStyle) -> String {
        let line = "took " + TimeFormat.words(makespan)
        guard lowerBound > .zero else { return line }
        let slots = plural(slots, "slot")
        return line + "; the shortest possible on \(slots) is \(TimeFormat.words(lowerBound))"
    }

    private func shown(_ text: String, _ style: TerminalStyle) -> String {
        style.spelled(TerminalText.bounded(TerminalText.line(text)))
    }

    private func plural(_ count: Int, _ noun: String) -> String {
        count == 1 ? "1 \(noun)" : "\(count) \(noun)s"
    }
}

/// The start of a chain of skipped operations.
private struct SkipRoot: Hashable {
    let name: String
    let outcome: OutcomeKind
}

extension OutcomeKind {
    /// The outcome as a verb, after the name of an operation.
    fileprivate var verb: String {
        switch self {
        case .succeeded: "succeeded"
        case .failed: "failed"
        case .cancelled: "was cancelled"
        case .skipped: "was skipped"
        }
    }
}

/// Counts by reason, in the order in which the reasons first occurred.
private struct ReasonGroups<Reason: Hashable> {
    private var index: [Reason: Int] = [:]
    private var groups: [(reason: Reason, count: Int)] = []

    mutating func add(_ reason: Reason) {
        if let found = index[reason] {
            groups[found].count += 1
        } else {
            index[reason] = groups.count
            groups.append((reason, 1))
        }
    }

    /// One line per reason, the most frequent first, at most `limit` of them.
    func lines(
        limit: Int,
        style: TerminalStyle,
        line: (Reason, Int) -> String?
    ) -> [String] {
        let ordered = groups.enumerated().sorted { left, right in
            (-left.element.count, left.offset) < (-right.element.count, right.offset)
        }
        var lines = ordered.prefix(limit).compactMap { line($0.element.reason, $0.element.count) }
        let rest = ordered.dropFirst(limit)
        if !rest.isEmpty {
            let operations = rest.reduce(0) { $0 + $1.element.count }
            let note = "… and \(operations) more, for \(rest.count) other reasons"
            lines.append(style.spelled(note))
        }
        return lines
    }
}
