package import OperonModel

extension ViewText {
    // MARK: - Lists

    /// `operations`: one operation a row, in the order given.
    package func operations(_ operations: [OperationView]) -> [String] {
        self.operations(operations.map { OperationRow.operation($0) })
    }

    /// `operations`, with a row for each repeated operation.
    package func operations(_ rows: [OperationRow]) -> [String] {
        guard !rows.isEmpty else { return [] }
        // The states of many elements may take more than a line.
        let hasCounts = rows.contains { if case .repeated = $0 { true } else { false } }
        var table = TextTable([
            TextTable.Column(title: "OPERATION", isFlexible: true),
            TextTable.Column(title: "STATE", isFlexible: hasCounts, preferred: 40),
            TextTable.Column(title: "QUEUE", isFlexible: true, importance: 3),
            TextTable.Column(title: "PRIORITY", importance: 1),
            TextTable.Column(title: "ATTEMPTS", isRight: true, importance: 2),
            TextTable.Column(title: "WHY", isFlexible: true, importance: 4),
        ])
        for row in rows {
            switch row {
            case .operation(let operation):
                table.add([
                    TextTable.Cell(name(operation)),
                    state(of: operation),
                    TextTable.Cell(shown(operation.queue)),
                    TextTable.Cell(operation.priority.name),
                    TextTable.Cell(String(operation.attempts)),
                    TextTable.Cell(detail(operation)),
                ])
            case .repeated(let repeated):
                table.add([
                    TextTable.Cell(shown("\(repeated.graph)/\(repeated.title)")),
                    TextTable.Cell(plain.elementCounts(repeated)),
                    TextTable.Cell(shown(repeated.queue ?? "")),
                    TextTable.Cell(repeated.priority?.name ?? ""),
                    TextTable.Cell(String(repeated.attempts)),
                    TextTable.Cell(""),
                ])
            }
        }
        return table.lines(style: style, width: width)
    }

    /// The elements of a repeated operation by state.
    func elementCounts(_ row: RepeatedRow) -> String {
        guard row.counts.total > 0 else { return "no elements" }
        return counts(row.counts, upToDate: row.upToDate, noun: nil)
    }

    /// Without colors, for the cell of a table.
    private var plain: ViewText {
        ViewText(style: TerminalStyle(environment: [:], isTerminal: false), width: width)
    }

    /// `dead`: the operations that failed.
    package func dead(_ operations: [OperationView]) -> [String] {
        guard !operations.isEmpty else { return [] }
        var table = TextTable([
            TextTable.Column(title: "OPERATION", isFlexible: true),
            TextTable.Column(title: "ERROR", isFlexible: true),
            TextTable.Column(title: "ATTEMPTS", isRight: true, importance: 1),
            TextTable.Column(title: "FINISHED", importance: 2),
        ])
        for operation in operations {
            table.add([
                TextTable.Cell(name(operation)),
                TextTable.Cell(shown(operation.error?.message ?? ""), .bad),
                TextTable.Cell(String(operation.attempts)),
                TextTable.Cell(operation.finishedAt.map(time) ?? ""),
            ])
        }
        return table.lines(style: style, width: width)
    }

    /// `approvals`: what waits for people, each with what is asked below it.
    ///
    /// - Parameter question: Lines that a terminal can show.
    package func approvals(
        _ operations: [OperationDetail],
        question: (OperationDetail) -> [String]
    ) -> [String] {
        guard !operations.isEmpty else { return [] }
        let haveTimeouts = operations.contains { timeout(of: $0) != nil }
        var columns = [
            TextTable.Column(title: "OPERATION", isFlexible: true),
            TextTable.Column(title: "SINCE", importance: 1),
        ]
        if haveTimeouts { columns.append(TextTable.Column(title: "TIMES OUT", importance: 2)) }
        var table = TextTable(columns)
        for detail in operations {
            var cells = [
                TextTable.Cell(name(detail.operation)),
                TextTable.Cell(detail.attempts.last.map { time($0.grantedAt) } ?? ""),
            ]
            if haveTimeouts {
                cells.append(TextTable.Cell(timeout(of: detail).map { time($0) } ?? ""))
            }
            table.add(cells)
        }
        let lines = table.lines(style: style, width: width)
        return lines.prefix(1)
            + zip(lines.dropFirst(), operations).flatMap { line, detail in
                [line] + question(detail).map { "  " + style.spelled($0) }
            }
    }

    /// The attempt that a completion with `--attempt` names; `nil`: none waits for one.
    private func waitingAttempt(of detail: OperationDetail) -> String? {
        guard detail.operation.kind == Work.externalKind, let attempt = detail.attempts.last,
            attempt.ending == nil
        else { return nil }
        return attempt.id
    }

    /// When its attempt times out; `nil`: it has no timeout.
    private func timeout(of detail: OperationDetail) -> TimeText? {
        guard let seconds = detail.timeout, let attempt = detail.attempts.last else { return nil }
        return TimeText(attempt.grantedAt.time + .seconds(seconds))
    }

    /// Why it ended as it did; empty if there is nothing to add.
    func detail(_ operation: OperationView) -> String {
        switch operation.outcome {
        case .failed: return shown(operation.error?.message ?? "")
        case .cancelled: return shown(operation.reason ?? "")
        case .skipped: return operation.skippedFor.map { "because of " + name($0) } ?? ""
        case .succeeded: return ""
        case nil: return operation.isCancelRequested ? "asked to stop" : ""
        }
    }

    /// `3/merge failed: exit code 2`.
    func sentence(_ operation: OperationView) -> String {
        let detail = self.detail(operation)
        let state = tinted(operation)
        let end = detail.isEmpty ? "" : (operation.outcome == .skipped ? " " : ": ") + detail
        return style.tinted(name(operation), .strong) + " " + verb(operation) + state + end
    }

    /// After `logs` of an operation without a log.
    package func printedNothing(_ operation: OperationView) -> [String] {
        guard operation.state == .finished else {
            return [said("\(name(operation)) has printed nothing so far.")]
        }
        let detail = self.detail(operation)
        let end = verb(operation) + tinted(operation)
        let why = detail.isEmpty ? "" : (operation.outcome == .skipped ? " " : ": ") + detail
        let sentence = "\(name(operation)) printed nothing; it \(end)\(why)"
        return [said(sentence.hasSuffix(".") ? sentence : sentence + ".")]
    }

    private func verb(_ operation: OperationView) -> String {
        switch operation.outcome {
        case .succeeded, .failed: ""
        case .cancelled, .skipped: "was "
        case nil: "is "
        }
    }

    // MARK: - One operation

    /// `show`: all that is known of one operation.
    package func operation(_ detail: OperationDetail) -> [String] {
        let operation = detail.operation
        var lines = [sentence(operation)]
        if let summary = detail.summary, !summary.isEmpty {
            lines += TerminalText.tail(summary, limit: 10).lines.map { "  " + style.spelled($0) }
        }
        lines += block([
            ("graph", "\(operation.graph) \(quoted(detail.graphName))"),
            ("kind", shown(operation.kind)),
            ("queue", shown(operation.queue)),
            ("priority", operation.priority.name),
            ("command", detail.command.map { command($0.arguments) }),
            ("directory", detail.command?.directory.map { shown($0) }),
            ("environment", detail.command.map { shown($0.environment.joined(separator: ", ")) }),
            ("timeout", detail.timeout.map { TimeFormat.short(.seconds($0)) }),
            ("retry", detail.retry.map { retry($0) }),
            ("input", detail.input.map { shown($0) }),
            ("attempt id", waitingAttempt(of: detail)),
            ("round", operation.round == 0 ? nil : String(operation.round + 1)),
            ("finished", operation.finishedAt.map(time)),
        ])
        if !detail.dependencies.isEmpty {
            lines.append("depends on")
            lines += dependencies(detail.dependencies)
        }
        if !detail.dependents.isEmpty {
            let names = list(detail.dependents, more: detail.moreDependents)
            lines.append("needed by")
            lines.append("  " + said(names))
        }
        if !detail.attempts.isEmpty {
            lines.append("attempts")
            lines += attempts(detail.attempts)
        }
        lines += reasons(detail.reasons)
        return lines
    }

    /// The most lines of a script that are shown.
    private static let scriptLinesMax = 40

    /// The command as a line of a shell; a script has several.
    private func command(_ arguments: [String]) -> String {
        var lines = CommandText.line(arguments)
            .split(separator: "\n", omittingEmptySubsequences: false)
        while lines.count > 1, lines.last?.isEmpty == true { lines.removeLast() }
        let more = lines.count - Self.scriptLinesMax
        var shown = lines.prefix(Self.scriptLinesMax).map { self.shown(String($0)) }
        if more > 0 {
            let count = plural(more, "more line")
            shown.append(said("… \(count); --output json has them"))
        }
        return shown.joined(separator: "\n")
    }

    private func retry(_ retry: RetryDetail) -> String {
        let more = plural(retry.limit, "more attempt")
        guard retry.delay > 0 else { return "up to \(more)" }
        return "up to \(more), the first after \(TimeFormat.short(.seconds(retry.delay)))"
    }

    private func dependencies(_ dependencies: [DependencyView]) -> [String] {
        var table = TextTable([
            TextTable.Column(title: "", isFlexible: true), TextTable.Column(title: ""),
            TextTable.Column(title: "", importance: 1),
        ])
        for dependency in dependencies {
            let condition = dependency.condition
            table.add([
                TextTable.Cell(name(dependency.operation)),
                state(dependency.state, dependency.outcome),
                TextTable.Cell(condition == .unlessFailed ? "" : "if \(condition.name)"),
            ])
        }
        return indented(table)
    }

    private func attempts(_ attempts: [AttemptView]) -> [String] {
        var table = TextTable([
            TextTable.Column(title: "", isRight: true),
            TextTable.Column(title: "", isFlexible: true, importance: 2),
            TextTable.Column(title: "", importance: 1),
            TextTable.Column(title: "", importance: 3),
            TextTable.Column(title: "", isFlexible: true),
        ])
        for attempt in attempts {
            var ending = attempt.ending ?? (attempt.startedAt == nil ? "dispatched" : "executing")
            if attempt.isUpToDate == true { ending += ViewText.upToDate }
            if let error = attempt.error { ending += ": " + error.message }
            table.add([
                TextTable.Cell(String(attempt.number)),
                TextTable.Cell(shown(attempt.worker)),
                TextTable.Cell(time(attempt.startedAt ?? attempt.grantedAt)),
                TextTable.Cell(duration(of: attempt)),
                TextTable.Cell(shown(ending), attempt.ending == "failed" ? .bad : nil),
            ])
        }
        return indented(table)
    }

    private func duration(of attempt: AttemptView) -> String {
        guard let start = attempt.startedAt, let end = attempt.endedAt, start != end else {
            // No process was started.
            return ""
        }
        return TimeFormat.short(end.time - start.time)
    }

    /// Rows without titles, indented by two columns.
    private func indented(_ table: TextTable) -> [String] {
        let lines = table.lines(style: style, width: width.map { max(1, $0 - 2) })
        return lines.dropFirst().map { "  " + $0 }
    }

    // MARK: - Why

    /// `explain`.
    package func explanation(_ explanation: Explanation) -> [String] {
        let operation = explanation.operation
        var lines = [sentence(operation)]
        lines += reasons(explanation.reasons)
        lines += chain(explanation)
        guard explanation.reasons.isEmpty else { return lines }
        switch operation.state {
        case .executing: lines.append("  It is running and waits for nothing.")
        case .finished where operation.outcome == .failed || operation.outcome == .cancelled:
            let command = "operon retry \(operation.graph) \(argument(operation.name))"
            lines.append("  To run it again: \(command)")
        case .finished where operation.outcome == .skipped:
            if let line = afterSkipping(explanation) { lines.append("  " + line) }
        case .pending, .ready, .dispatched, .finished: break
        }
        return lines
    }

    /// How to run a skipped operation; or when it would have run, if the root did not fail.
    private func afterSkipping(_ explanation: Explanation) -> String? {
        guard let root = explanation.chain.last else { return nil }
        guard root.outcome != .succeeded else {
            // A success skips nothing but operations that wait for a failure.
            guard explanation.leftOut == nil else { return nil }
            let handler = explanation.chain.dropLast().last ?? explanation.operation
            return "\(name(handler)) runs only if \(name(root)) fails."
        }
        let isOnly = explanation.chain.count == 1
        let others = isOnly ? name(explanation.operation) : "what was skipped because of it"
        let command = "operon retry \(root.graph) \(argument(root.name))"
        return "To run \(name(root)) and \(others) again: \(command)"
    }

    /// The chain from the next cause to the root, and why the root is not running.
    private func chain(_ explanation: Explanation) -> [String] {
        var lines = explanation.chain.map { "  " + said("because ") + sentence($0) }
        if let leftOut = explanation.leftOut, let root = lines.popLast() {
            lines += ["  " + said("and so on, for \(leftOut) more"), root]
        }
        return lines + list(explanation.rootReasons ?? []).map { "  " + $0 }
    }

    /// All reasons, each with the operations it refers to.
    private func reasons(_ reasons: [ReasonView]) -> [String] {
        reasons.isEmpty ? [] : ["why it waits"] + list(reasons)
    }

    private func list(_ reasons: [ReasonView]) -> [String] {
        reasons.flatMap { reason in
            var line = (style.hasUnicode ? "  • " : "  - ") + shown(reason.text)
            if let until = reason.until, !reason.text.contains(until.description) {
                line += " (until \(time(until)))"
            }
            var lines = [line]
            let isNamed = reason.operations.allSatisfy { reason.text.contains($0.name) }
            if !isNamed {
                lines.append("    " + said(list(reason.operations, more: reason.more)))
            }
            return lines
        }
    }

    // MARK: - What it left

    /// The heading above the log of one of several attempts.
    package func attemptHead(_ log: LogView) -> String {
        style.tinted(said("attempt \(log.number):"), .faint)
    }

    /// In place of the log of an attempt whose worker is gone.
    package func lostLog(_ attempt: AttemptView) -> String {
        let worker = attempt.worker.isEmpty ? nil : attempt.worker
        return lost("attempt \(attempt.number)", by: worker)
    }

    /// The same, among the logs of a graph.
    package func lostLog(_ attempt: UInt32, of operation: String, by worker: String?) -> String {
        lost("\(operation) (attempt \(attempt))", by: worker)
    }

    private func lost(_ attempt: String, by worker: String?) -> String {
        let worker = worker.map { "its worker “\($0)”" } ?? "its worker"
        let text = "\(attempt): \(worker) was lost, and with it what it had printed"
        return style.tinted(said(text), .faint)
    }

    /// How many further attempts of a graph have no log.
    package func moreLost(_ count: Int) -> String {
        let text = count == 1 ? "1 more attempt was lost" : "\(count) more attempts were lost"
        return style.tinted(said(text + " in the same way"), .faint)
    }

    /// Why the log of an attempt is empty.
    package func printedNothing(_ attempt: AttemptView, of operation: OperationView) -> String {
        let name = name(operation)
        guard let ending = attempt.ending else {
            return said("Attempt \(attempt.number) of \(name) has printed nothing so far.")
        }
        if ["returned", "lost"].contains(ending) {
            let text = "was \(ending), and what it had printed is not kept."
            return said("Attempt \(attempt.number) of \(name) \(text)")
        }
        let verb = ending == "cancelled" ? "it was" : "it"
        return said("Attempt \(attempt.number) of \(name) printed nothing; \(verb) \(ending).")
    }

    /// Marks the place where a part of a log is missing.
    package func missedLog(_ bytes: UInt64) -> String {
        style.tinted(said("operon: \(bytes) bytes are missing here"), .faint)
    }

    /// A log, or an output, line by line.
    package func log(_ text: String) -> [String] {
        TerminalText.tail(text, limit: .max).lines.map { style.spelled($0) }
    }

    /// Why there is no output; without colours, for an error message.
    package func noOutput(_ operation: OperationView) -> String {
        guard operation.state == .finished else {
            let name = self.name(operation)
            return said(
                "\(name) has not finished, so it has no output. To see why: operon explain \(name)"
            )
        }
        return said("\(name(operation)) has no output.")
    }

    /// The number of operations that are not listed.
    package func more(_ count: Int) -> String { said("… and \(count) more") }

    /// After `dependency add`; `on` is the dependency as the command named it.
    package func depends(_ detail: OperationDetail, on: String) -> [String] {
        said(of: detail.operation, "now depends on \(shown(on))")
    }

    /// After `dependency remove`.
    package func dependsNoMore(_ detail: OperationDetail, on: String) -> [String] {
        said(of: detail.operation, "no longer depends on \(shown(on))")
    }

    private func said(of operation: OperationView, _ fact: String) -> [String] {
        let detail = self.detail(operation)
        let state = verb(operation) + tinted(operation)
        let end = detail.isEmpty ? "." : " " + detail + "."
        let why = " To see why: operon explain \(name(operation))"
        let next = operation.state == .pending ? why : ""
        return [said("\(name(operation)) \(fact). It \(state)\(end)\(next)")]
    }

    /// After `complete`.
    package func completed(_ operation: OperationView) -> [String] {
        guard operation.outcome == nil else { return [sentence(operation) + "."] }
        // The operation failed and is retried.
        let name = self.name(operation)
        return [said("\(name) failed and will be tried again. To see when: operon explain \(name)")]
    }

    /// After `priority`.
    package func prioritised(_ operation: OperationView) -> [String] {
        ["\(name(operation)) now has priority \(operation.priority.name)."]
    }
}
