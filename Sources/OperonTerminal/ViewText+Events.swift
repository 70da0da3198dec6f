package import OperonModel

extension ViewText {
    /// `events`: one line for each event.
    package func event(_ event: EventView) -> String {
        var line = style.tinted(time(event.at), .faint) + " \(event.sequence) "
        line += tinted(event)
        let about = self.about(event)
        if !about.isEmpty { line += " " + about }
        var ends: [String] = []
        if let ending = event.ending, ending != event.outcome?.name { ends.append(shown(ending)) }
        if let error = event.error { ends.append(shown(error.message)) }
        if let reason = event.reason, !reason.isEmpty { ends.append(shown(reason)) }
        if !ends.isEmpty { line += ": " + ends.joined(separator: ": ") }
        return line
    }

    private func tinted(_ event: EventView) -> String {
        guard let outcome = event.outcome else { return shown(event.kind.rawValue) }
        let word = event.isUpToDate == true ? outcome.name + ViewText.upToDate : outcome.name
        return style.tinted(word, tint(outcome))
    }

    /// What the event concerns, where it happened, and who caused it.
    private func about(_ event: EventView) -> String {
        var parts: [String] = []
        if let operation = event.operation {
            parts.append(name(operation))
            if let count = event.count, count > 1 {
                parts.append("and the \(count - 1) after it")
            }
        } else if let graph = event.graph {
            parts.append("graph \(graph)" + (event.graphName.map { " " + quoted($0) } ?? ""))
        }
        if let queue = event.queue, event.operation == nil {
            parts.append("queue " + quoted(queue))
        }
        if let key = event.key { parts.append("key " + quoted(key)) }
        if let trigger = event.trigger {
            let firing = event.firing.map { "firing \($0) of " } ?? ""
            parts.append(firing + "trigger " + quoted(trigger))
        }
        if let worker = event.worker {
            parts.append((event.operation == nil ? "" : "on ") + shown(worker))
        }
        if let by = event.by, !by.isEmpty { parts.append("by " + shown(by)) }
        return parts.joined(separator: " ")
    }

    /// Events that are missing: they are no longer kept, or their numbers do not match those seen
    /// before.
    package func gap(_ first: UInt64, _ last: UInt64) -> String {
        style.tinted(said("… events \(first) to \(last) are missing here"), .faint)
    }
}
