package import OperonModel

/// What a command applied to, for the sentence about its effect.
package enum CommandSubject: Hashable, Sendable {
    case operation(String)
    case graph(String)
    case queue(String)
}

extension ViewText {
    private func subject(_ subject: CommandSubject) -> String {
        switch subject {
        case .operation(let name): shown(name)
        case .graph(let name): "graph " + shown(name)
        case .queue(let name): "queue " + quoted(name)
        }
    }

    private func selector(_ subject: CommandSubject) -> String {
        switch subject {
        case .operation(let name), .graph(let name): shown(name)
        case .queue(let name): "--queue " + shown(name)
        }
    }

    /// After `cancel`: what ended, what still runs, and what continues without it.
    package func cancelled(
        _ view: CommandView,
        _ subject: CommandSubject,
        cascade: Bool
    ) -> [String] {
        guard view.affected > 0 else {
            return [said("Nothing of \(self.subject(subject)) was left to cancel.")]
        }
        var lines = ["Cancelled \(self.subject(subject))"]
        if case .operation = subject, view.affected == 1 {
            lines[0] += "."
        } else {
            lines[0] += ": \(operations(view))."
        }
        if view.running > 0 {
            let they = view.running == 1 ? "1 runs and is" : "\(view.running) run and are"
            lines[0] += " \(they) asked to stop."
        }
        if view.released > 0 {
            let dependents = plural(view.released, "dependent")
            lines.append(
                "\(dependents) will run all the same: cancelled counts as finished."
                    + (cascade ? "" : " To cancel those too: --cascade")
            )
        }
        if !view.isEffective { lines.append(pending("cancel", subject)) }
        return lines.map(said)
    }

    /// After `suspend`.
    package func suspended(
        _ view: CommandView,
        _ subject: CommandSubject,
        until: TimeText? = nil
    ) -> [String] {
        var line = "Suspended \(self.subject(subject)): nothing of it starts until"
        if let until { line += " \(time(until)) or" }
        line += " operon resume \(selector(subject))."
        if view.running > 0 {
            line +=
                view.running == 1 ? " 1 operation runs on." : " \(view.running) operations run on."
        }
        return ([line] + (view.isEffective ? [] : [pending("suspend", subject)])).map(said)
    }

    private func pending(_ command: String, _ subject: CommandSubject) -> String {
        "Some of it may still start: it is with a worker. To wait: "
            + "operon \(command) \(selector(subject)) --wait"
    }

    /// After `resume`.
    package func resumed(_ view: CommandView, _ subject: CommandSubject) -> [String] {
        let count = plural(view.affected, "operation")
        return [said("Resumed \(self.subject(subject)): \(count) may start again.")]
    }

    /// After `retry`; `graph` is the name or number that the command named.
    package func retried(_ view: CommandView, graph: String) -> [String] {
        guard view.affected > 0 else {
            return [said("Nothing of graph \(shown(graph)) is to be run again.")]
        }
        let count = plural(view.affected, "operation")
        var line = "Graph \(shown(graph)): \(count) will run again"
        if !view.named.isEmpty {
            let more = view.affected - view.named.count
            line += " (\(list(view.named, more: max(0, more))))"
        }
        return [said(line + ". Watch it: operon watch \(shown(graph))")]
    }

    private func operations(_ view: CommandView) -> String {
        var text = plural(view.affected, "operation")
        if !view.named.isEmpty {
            let more = max(0, view.affected - view.named.count)
            text += " (\(list(view.named, more: more)))"
        }
        return text
    }
}
