package import OperonModel

/// Formats the views of a coordinator for people: lines without line ends, in which no untrusted
/// text can act on a terminal.
package struct ViewText: Hashable, Sendable {
    package let style: TerminalStyle
    /// The columns of the terminal; `nil`: there is no terminal, and nothing is shortened.
    let width: Int?

    package init(style: TerminalStyle, width: Int?) {
        self.style = style
        self.width = width
    }

    // MARK: - Words

    /// Untrusted text, made safe to print.
    func shown(_ text: String) -> String {
        style.spelled(TerminalText.bounded(TerminalText.line(text)))
    }

    /// The same in quotation marks.
    func quoted(_ text: String) -> String { shown("“\(text)”") }

    /// A name as a shell takes it.
    func argument(_ name: String) -> String { shown(CommandText.quoted(name)) }

    /// Operon's own text; untrusted parts in it have gone through `shown`.
    func said(_ text: String) -> String { style.spelled(text) }

    func plural(_ count: Int, _ one: String, _ many: String? = nil) -> String {
        count == 1 ? "1 \(one)" : "\(count) \(many ?? one + "s")"
    }

    /// `3/merge`, in the form that commands accept.
    package func name(_ operation: OperationName) -> String {
        shown("\(operation.graph)/\(operation.name)")
    }

    func name(_ operation: OperationView) -> String {
        shown("\(operation.graph)/\(operation.name)")
    }

    /// `graph 3 “wordcount”`.
    package func name(_ graph: GraphView) -> String {
        "graph \(graph.id) \(quoted(graph.name))"
    }

    /// To the second, in UTC: `2026-11-22 02:30:01Z`.
    func time(_ time: TimeText) -> String {
        let text = time.description
        let second = text.prefix(19).map { $0 == "T" ? " " : $0 }
        return String(second) + "Z"
    }

    /// A few names, and the number of the others.
    func list(_ names: [OperationName], more: Int, limit: Int = 10) -> String {
        let rest = more + max(0, names.count - limit)
        let text = names.prefix(limit).map { name($0) }.joined(separator: ", ")
        return rest > 0 ? text + " and \(rest) more" : text
    }

    /// `by ann: upgrade, until …`; `yes` if nothing is known.
    func suspension(_ suspension: SuspensionView?) -> String {
        guard let suspension else { return "yes" }
        var parts: [String] = []
        if let by = suspension.by { parts.append("by " + shown(by)) }
        if let reason = suspension.reason, !reason.isEmpty { parts.append(shown(reason)) }
        let why = parts.isEmpty ? [] : [parts.joined(separator: ": ")]
        let end = suspension.until.map { ["until \(time($0))"] } ?? []
        let text = (why + end).joined(separator: ", ")
        return text.isEmpty ? "yes" : text
    }

    // MARK: - States

    /// The state of an operation in a list; its outcome once it has one.
    func state(_ state: OperationState, _ outcome: OutcomeKind?) -> TextTable.Cell {
        guard state == .finished, let outcome else {
            switch state {
            case .pending, .ready, .dispatched: return TextTable.Cell(state.name)
            case .executing: return TextTable.Cell(state.name, .strong)
            case .finished: return TextTable.Cell(state.name)
            }
        }
        return TextTable.Cell(outcome.name, tint(outcome))
    }

    /// After the outcome of an operation whose files were up to date.
    static let upToDate = " (\(OperationReport.upToDate))"

    func state(of operation: OperationView) -> TextTable.Cell {
        var cell = state(operation.state, operation.outcome)
        if operation.isUpToDate == true { cell.text += ViewText.upToDate }
        return cell
    }

    func tinted(_ operation: OperationView) -> String {
        let cell = state(of: operation)
        return cell.tint.map { style.tinted(cell.text, $0) } ?? cell.text
    }

    func tint(_ outcome: OutcomeKind) -> Tint {
        switch outcome {
        case .succeeded: .good
        case .failed: .bad
        case .cancelled, .skipped: .attention
        }
    }

    func tint(_ status: GraphStatus) -> Tint {
        switch status {
        case .running: .strong
        case .suspended, .cancelling, .cancelled: .attention
        case .idle, .finished: .faint
        case .failed: .bad
        }
    }

    /// `40 operations: 12 pending, 20 succeeded, 1 failed`; `noun` is `nil` if the context names
    /// it.
    ///
    /// - Parameter upToDate: How many of those that succeeded were up to date.
    func counts(
        _ counts: StateCounts,
        upToDate: Int? = nil,
        noun: String? = "operation"
    ) -> String {
        let words: [(Int, String, Tint?)] = [
            (counts.pending, "pending", nil), (counts.ready, "ready", nil),
            (counts.dispatched, "dispatched", nil), (counts.executing, "executing", .strong),
            (counts.succeeded, "succeeded", .good), (counts.failed, "failed", .bad),
            (counts.cancelled, "cancelled", .attention), (counts.skipped, "skipped", .attention),
        ]
        let parts = words.filter { $0.0 > 0 }.map { count, word, tint in
            let text = "\(count) \(word)"
            let part = tint.map { style.tinted(text, $0) } ?? text
            guard word == "succeeded", let upToDate, upToDate > 0 else { return part }
            return "\(part) (\(upToDate) \(OperationReport.upToDate))"
        }
        let operations = noun.map { plural(counts.total, $0) } ?? String(counts.total)
        return parts.isEmpty ? operations : "\(operations): " + parts.joined(separator: ", ")
    }

    // MARK: - Blocks

    /// `name   value` lines with aligned values; entries without a value are left out.
    func block(_ facts: [(name: String, value: String?)], indent: Int = 2) -> [String] {
        let known = facts.filter { $0.value?.isEmpty == false }
        let width = known.reduce(0) { max($0, $1.name.utf8.count) }
        let margin = String(repeating: " ", count: indent)
        return known.flatMap { name, value in
            let space = String(repeating: " ", count: width - name.utf8.count + 2)
            let lines = (value ?? "").split(separator: "\n", omittingEmptySubsequences: false)
            let indent = margin + String(repeating: " ", count: width + 2)
            return lines.enumerated().map { number, line in
                if number == 0 { return margin + style.tinted(name, .faint) + space + line }
                return line.isEmpty ? "" : indent + line
            }
        }
    }
}
