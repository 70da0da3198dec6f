package import OperonModel

// Triggers.
extension ViewText {
    /// `trigger list`.
    package func triggers(_ triggers: [TriggerView]) -> [String] {
        guard !triggers.isEmpty else { return [] }
        var table = TextTable([
            TextTable.Column(title: "TRIGGER", isFlexible: true),
            TextTable.Column(title: "ON", isFlexible: true),
            TextTable.Column(title: "STATUS"),
            TextTable.Column(title: "NEXT", importance: 3),
            TextTable.Column(title: "FIRINGS", isRight: true, importance: 2),
            TextTable.Column(title: "LAST", importance: 1),
        ])
        for trigger in triggers {
            table.add([
                TextTable.Cell(shown(trigger.name)),
                TextTable.Cell(shown(trigger.on)),
                TextTable.Cell(
                    shown(trigger.status),
                    trigger.status == "active" ? nil : .attention
                ),
                TextTable.Cell(trigger.nextAt.map { time($0) } ?? ""),
                TextTable.Cell("\(trigger.firings)"),
                TextTable.Cell(trigger.last.map { state(of: $0) } ?? ""),
            ])
        }
        return table.lines(style: style, width: width)
    }

    /// `ended succeeded 12`: what became of a firing.
    private func state(of firing: FiringView) -> String {
        var words = [firing.status]
        if let outcome = firing.outcome { words = [outcome.name] }
        if let graph = firing.graph { words.append("graph \(graph)") }
        if let other = firing.mergedInto { words.append("into \(other)") }
        return shown(words.joined(separator: ", "))
    }

    /// `trigger show`.
    package func trigger(_ trigger: TriggerView) -> [String] {
        var lines = ["trigger " + style.tinted(quoted(trigger.name), .strong)]
        var rows = [
            ("on", shown(trigger.on)), ("graph", shown(trigger.graph)),
            ("status", shown(trigger.status)),
        ]
        if let watch = trigger.watch {
            let by = trigger.watchedBy.map { " by worker \($0)" } ?? ""
            rows.append(("watch", shown(watch + by)))
        }
        if trigger.suspension != nil {
            rows.append(("suspended", suspension(trigger.suspension)))
        }
        if let next = trigger.nextAt { rows.append(("next", time(next))) }
        var count = "\(trigger.firings)"
        if let limit = trigger.limit { count += " of \(limit)" }
        if trigger.open > 0 { count += ", \(trigger.open) not ended" }
        rows.append(("firings", count))
        if let last = trigger.last {
            rows.append(("last", "\(last.number), \(time(last.occurredAt)): \(state(of: last))"))
        }
        rows.append(("overlap", shown(trigger.overlap)))
        if let missed = trigger.missed { rows.append(("missed", shown(missed))) }
        if let merge = trigger.merge { rows.append(("merge", shown(merge))) }
        if let window = trigger.coalesce {
            rows.append(("coalesce", TimeFormat.short(.nanoseconds(Int64(window * 1e9)))))
        }
        if let until = trigger.until { rows.append(("until", time(until))) }
        rows.append(
            ("added", time(trigger.addedAt) + (trigger.addedBy.map { " by " + shown($0) } ?? ""))
        )
        if let problem = trigger.problem { rows.append(("problem", shown(problem))) }
        lines += block(rows)
        return lines
    }

    /// `trigger history`.
    package func firings(_ firings: [FiringView]) -> [String] {
        guard !firings.isEmpty else { return [] }
        var table = TextTable([
            TextTable.Column(title: "FIRING", isRight: true),
            TextTable.Column(title: "AT"),
            TextTable.Column(title: "STATUS", isFlexible: true),
            TextTable.Column(title: "COUNT", isRight: true, importance: 1),
            TextTable.Column(title: "IDENTITY", isFlexible: true, importance: 2),
            TextTable.Column(title: "REASON", isFlexible: true, importance: 3),
        ])
        for firing in firings {
            table.add([
                TextTable.Cell("\(firing.number)"),
                TextTable.Cell(time(firing.occurredAt)),
                TextTable.Cell(state(of: firing)),
                TextTable.Cell("\(firing.count)"),
                TextTable.Cell(shown(firing.identity)),
                TextTable.Cell(shown(firing.reason ?? "")),
            ])
        }
        return table.lines(style: style, width: width)
    }

    /// `trigger next`.
    package func ticks(_ ticks: [TickView]) -> [String] {
        guard !ticks.isEmpty else { return [] }
        var table = TextTable([
            TextTable.Column(title: "LOCAL"), TextTable.Column(title: "UTC"),
        ])
        for tick in ticks {
            table.add([TextTable.Cell(shown(tick.local)), TextTable.Cell(time(tick.at))])
        }
        return table.lines(style: style, width: width)
    }

    /// `explain trigger/NAME`.
    package func explanation(_ explanation: TriggerExplanation) -> [String] {
        let trigger = explanation.trigger
        var lines = [
            "trigger " + style.tinted(quoted(trigger.name), .strong) + " is "
                + shown(trigger.status)
        ]
        guard !explanation.reasons.isEmpty else {
            return lines + ["  " + said("It has fired, and its graph is being submitted.")]
        }
        for reason in explanation.reasons {
            let until = reason.until.map { said(" (until \(time($0)))") } ?? ""
            lines.append("  " + shown(reason.text) + until)
        }
        return lines
    }

    // MARK: - Commands

    /// After `trigger add`.
    package func added(_ trigger: TriggerView) -> [String] {
        let name = "Added trigger \(quoted(trigger.name))"
        guard let next = trigger.nextAt else {
            let isTimed = trigger.source == "cron" || trigger.source == "every"
            guard isTimed, trigger.suspension == nil else { return [said(name + ".")] }
            return [said("\(name). It has no further time, so it does not fire.")]
        }
        return [said("\(name). It fires next at \(time(next)).")]
    }

    /// After `trigger fire`.
    package func fired(_ firing: FiringView) -> [String] {
        let name = quoted(firing.trigger)
        if firing.isRepeated == true {
            return [said("This key has fired trigger \(name) before: firing \(firing.number).")]
        }
        switch firing.status {
        case "skipped":
            return [said("Skipped: a run of trigger \(name) has not ended.")]
        case "waiting":
            return [said("Firing \(firing.number) of trigger \(name) waits.")]
        case "merged":
            let number = firing.mergedInto ?? 0
            return [said("Merged into firing \(number) of trigger \(name), which waits.")]
        default: return [said("Fired trigger \(name).")]
        }
    }

    /// After `trigger suspend`.
    package func suspended(_ trigger: TriggerView) -> [String] {
        let until = trigger.suspension?.until.map { " until \(time($0))" } ?? ""
        let command = "operon trigger resume \(argument(trigger.name))"
        return [said("Suspended trigger \(quoted(trigger.name))\(until). To resume it: ") + command]
    }

    /// After `trigger resume`.
    package func resumed(_ trigger: TriggerView) -> [String] {
        [said("Resumed trigger \(quoted(trigger.name)).")]
    }

    /// After `trigger remove`.
    package func removed(_ trigger: TriggerView) -> [String] {
        guard trigger.open > 0 else { return [said("Removed trigger \(quoted(trigger.name)).")] }
        return [
            said("Removed trigger \(quoted(trigger.name)). Graphs that it submitted keep running.")
        ]
    }
}
