package import OperonModel

/// Formats one group of a `ProgressModel` as one line of at most a given width.
///
/// Parts that do not fit are left out, least important first. The name, the number of finished
/// operations, and the fact that something failed stay longest.
package struct ProgressLine: Hashable, Sendable {
    private let style: TerminalStyle

    package init(style: TerminalStyle) {
        self.style = style
    }

    /// The longest bar, in columns: a longer one would tell no more.
    private static let barMax = 30
    /// The shortest bar that is still readable, in columns.
    private static let barMin = 8
    /// The smallest width of the name while other parts can still be left out, in columns.
    private static let nameMin = 8

    /// One line without a line end, at most `width` columns wide (at least 1).
    package func text(for group: ProgressGroup, at now: Timestamp, width: Int) -> String {
        let name = style.spelled(TerminalText.line(group.name))
        var parts = self.parts(of: group, at: now)
        let shortName = min(TerminalText.width(name), ProgressLine.nameMin)

        while let worst = parts.min(by: { $0.importance < $1.importance }),
            parts.count > 1, shortName + columns(of: parts) > width
        {
            parts.removeAll { $0.importance == worst.importance }
        }

        let room = width - columns(of: parts)
        guard room > 1 else {
            // Too narrow for a name: the counts alone.
            return TerminalText.prefix(of: parts.map(\.text).joined(separator: " "), width: width)
        }
        let shownName = TerminalText.elided(name, to: room, mark: style.ellipsis)
        let barRoom = room - TerminalText.width(shownName) - 1
        var line = style.tinted(shownName, .strong)
        if barRoom >= ProgressLine.barMin {
            line += " " + bar(group, width: min(barRoom, ProgressLine.barMax))
        }
        for part in parts { line += " " + style.tinted(part.text, part.tint) }
        return line
    }

    /// One part of the line.
    private struct Part {
        let text: String
        let tint: Tint
        /// The part with the smallest value is left out first; values are unique within a line.
        let importance: Int
    }

    private func columns(of parts: [Part]) -> Int {
        parts.reduce(0) { $0 + 1 + TerminalText.width($1.text) }
    }

    /// The parts in the order of the line.
    private func parts(of group: ProgressGroup, at now: Timestamp) -> [Part] {
        var parts = [
            Part(text: "\(group.finished)/\(group.total)", tint: .strong, importance: 100)
        ]
        func add(_ phase: ProgressPhase, _ tint: Tint, _ importance: Int) {
            let count = group[phase]
            guard count > 0 else { return }
            parts.append(Part(text: "\(count) \(phase.name)", tint: tint, importance: importance))
        }
        add(.executing, .good, 60)
        add(.ready, .faint, 20)
        add(.failed, .bad, 90)
        add(.cancelled, .attention, 50)
        add(.skipped, .attention, 40)
        let elapsed = TimeFormat.clock(group.elapsed(at: now))
        parts.append(Part(text: elapsed, tint: .faint, importance: 30))
        if let left = group.timeLeft(at: now) {
            parts.append(
                Part(text: "ETA " + TimeFormat.clock(left), tint: .faint, importance: 70)
            )
        }
        return parts
    }

    private func bar(_ group: ProgressGroup, width: Int) -> String {
        let inner = width - 2
        // Rounded down, so that a full bar means finished.
        let filled = Int(group.fraction * Double(inner))
        let done = String(repeating: style.hasUnicode ? "█" : "#", count: filled)
        let left = String(repeating: style.hasUnicode ? "░" : "-", count: inner - filled)
        let tint: Tint = group[.failed] > 0 ? .bad : .good
        return "[" + style.tinted(done, tint) + style.tinted(left, .faint) + "]"
    }
}

/// The attempt that follows one that failed.
package struct NextAttempt: Hashable, Sendable, CustomStringConvertible {
    private let number: Int
    private let attempts: Int
    private let pause: Duration?
    private let why: String

    /// - Parameters:
    ///   - number: The number of the attempt, from 1.
    ///   - attempts: How many the operation may have.
    ///   - pause: How long it waits; `nil`: not known.
    ///   - why: How the attempt before it failed.
    package init(number: Int, of attempts: Int, pause: Duration?, why: String) {
        self.number = number
        self.attempts = attempts
        self.pause = pause
        self.why = why
    }

    /// For example `attempt 2 of 3 in 4.0s: exit code 3`.
    package var description: String {
        let when = pause.map { $0 > .zero ? " in " + TimeFormat.short($0) : " now" } ?? ""
        return "attempt \(number) of \(max(attempts, number))\(when): \(why)"
    }
}

/// One line per change of state, for an output that cannot be overprinted.
package struct StateChangeLine: Hashable, Sendable {
    private let style: TerminalStyle

    package init(style: TerminalStyle) {
        self.style = style
    }

    /// For example `[3/40] succeeded count-a (1.2s)`; without a group, it begins with the phase.
    /// `detail` is the reason of the outcome; that of a success is shown as in
    /// `[3/40] succeeded (up to date) count-a`.
    package func text(
        for group: ProgressGroup? = nil,
        operation: String,
        phase: ProgressPhase,
        duration: Duration?,
        detail: String = ""
    ) -> String {
        let tint: Tint =
            switch phase {
            case .pending, .ready: .faint
            case .executing: .strong
            case .succeeded: .good
            case .failed: .bad
            case .cancelled, .skipped: .attention
            }
        var line = counts(of: group)
        let reason = style.spelled(TerminalText.bounded(TerminalText.line(detail)))
        let isAside = phase == .succeeded && !reason.isEmpty
        line += style.tinted(isAside ? "\(phase.name) (\(reason))" : phase.name, tint) + " "
        line += style.spelled(TerminalText.line(operation))
        if let duration { line += " (" + TimeFormat.short(duration) + ")" }
        if !isAside, !reason.isEmpty { line += ": " + reason }
        return line
    }

    private func counts(of group: ProgressGroup?) -> String {
        group.map { "[\($0.finished)/\($0.total)] " } ?? ""
    }

    /// For example `[3/40] retry fetch: attempt 2 of 3 in 4.0s: exit code 3`.
    package func retry(
        of operation: String,
        _ next: NextAttempt,
        in group: ProgressGroup?
    ) -> String {
        let whole = TerminalText.line(operation + ": " + next.description)
        let text = style.spelled(TerminalText.bounded(whole))
        return counts(of: group) + style.tinted("retry", .attention) + " " + text
    }

    /// For the elements of a repeated operation:
    /// `[30/503] render[*]: 30 of 500 finished, 2 failed`.
    package func text(for group: ProgressGroup, elements: ProgressGroup) -> String {
        var line = "[\(group.finished)/\(group.total)] "
        line += style.spelled(TerminalText.line(elements.name))
        line += ": \(elements.finished) of \(elements.total) finished"
        func add(_ phase: ProgressPhase, _ tint: Tint) {
            let count = elements[phase]
            guard count > 0 else { return }
            line += ", " + style.tinted("\(count) \(phase.name)", tint)
        }
        add(.failed, .bad)
        add(.cancelled, .attention)
        add(.skipped, .attention)
        add(.executing, .strong)
        return line
    }
}
