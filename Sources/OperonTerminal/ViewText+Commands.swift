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
        case .operation(let name), .graph(let name): argument(name)
        case .queue(let name): "--queue " + argument(name)
        }
    }

    /// After `cancel`: what ended, what still runs, and what continues without it.
    package func cancelled(
        _ view: CommandView,
        _ subject: CommandSubject,
        cascade: Bool
    ) -> [String] {
        guard view.affected > 0 else {
            return [said("Nothing left to cancel in \(self.subject(subject)).")]
        }
        var lines = ["Cancelled \(self.subject(subject))"]
        if case .operation = subject, view.affected == 1 {
            lines[0] += "."
        } else {
            lines[0] += ": \(operations(view))."
        }
        if view.running > 0 {
            let some =
                view.running == 1
                ? "1 of them is running and was" : "\(view.running) of them are running and were"
            let they = view.affected == 1 ? "It is running and was" : some
            lines[0] += " \(they) asked to stop."
        }
        if view.released > 0 {
            let isOne = view.released == 1
            let cancelled = view.affected == 1 ? "it" : "them"
            var line = "\(plural(view.released, "operation")) \(isOne ? "depends" : "depend")"
            line += " on \(cancelled) and \(isOne ? "was" : "were") not cancelled."
            if case .operation = subject, !cascade {
                line += " To cancel \(isOne ? "it" : "them") too: "
                line += "operon cancel \(selector(subject)) --cascade"
            }
            lines.append(line)
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
        var line = "Suspended \(self.subject(subject))"
        if let until { line += " until \(time(until))" }
        line += "."
        if view.running > 0 {
            line += " " + plural(view.running, "operation")
            line += view.running == 1 ? " is still running." : " are still running."
        }
        line += " To resume: operon resume \(selector(subject))"
        return ([line] + (view.isEffective ? [] : [pending("suspend", subject)])).map(said)
    }

    private func pending(_ command: String, _ subject: CommandSubject) -> String {
        "Operations that a worker has already may still start. To wait until none can: "
            + "operon \(command) \(selector(subject)) --wait"
    }

    /// After `resume`.
    package func resumed(_ view: CommandView, _ subject: CommandSubject) -> [String] {
        let resumed = "Resumed \(self.subject(subject))"
        if case .operation = subject { return [said(resumed + ".")] }
        let count = plural(view.affected, "unfinished operation")
        return [said("\(resumed), which has \(count).")]
    }

    /// After `retry`.
    ///
    /// - Parameters:
    ///   - graph: the name or number that the command named.
    ///   - cancelled: how many cancelled operations the graph has, which were not asked for.
    ///   - isSuspended: whether the graph is, so that none of them starts.
    package func retried(
        _ view: CommandView,
        graph: String,
        cancelled: Int = 0,
        isSuspended: Bool = false,
        isFollowed: Bool = false
    ) -> [String] {
        guard view.affected > 0 else {
            guard cancelled > 0 else {
                return [said("Graph \(shown(graph)) has nothing to retry.")]
            }
            let count = plural(cancelled, "cancelled operation")
            let command = "operon retry \(argument(graph)) --cancelled"
            return [
                said("In graph \(shown(graph)) nothing failed. To run \(count) again: \(command)")
            ]
        }
        let count = plural(view.affected, "operation")
        var line = "\(count) of graph \(shown(graph)) will run again"
        if !view.named.isEmpty {
            let more = view.affected - view.named.count
            line += " (\(list(view.named, more: max(0, more))))"
        }
        line += "."
        if !isFollowed { line += " To watch: operon watch \(shown(graph))" }
        let suspended = "The graph is suspended. To resume: operon resume \(argument(graph))"
        return ([line] + (isSuspended ? [suspended] : [])).map(said)
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
