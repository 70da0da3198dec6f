package import OperonModel

/// Says what an edited graph does: what stays, what runs and why.
package struct ContinuationText {
    private let view: ContinuationView
    private let style: TerminalStyle

    package init(_ view: ContinuationView, _ style: TerminalStyle) {
        self.view = view
        self.style = style
    }

    /// The most names in one line.
    private static let namesMax = 5

    /// A summary: the numbers, and the reasons with the first operations of each.
    ///
    /// - Parameter lead: What precedes the numbers.
    package func summary(_ lead: String = "") -> [String] {
        let runs = view.operations.count { $0.stays == nil }
        let stays = view.operations.count - runs
        var head = "\(lead)\(stays) \(stays == 1 ? "operation stays" : "operations stay")"
        head += ", \(runs) \(runs == 1 ? "runs" : "run")"
        if !view.removed.isEmpty { head += ", \(view.removed.count) removed" }
        var groups: [(what: String, names: [String])] = []
        for operation in view.operations where operation.stays == nil {
            let what = operation.dependency == nil ? why(operation) : "after others that run"
            if let place = groups.firstIndex(where: { $0.what == what }) {
                groups[place].names.append(operation.name)
            } else {
                groups.append((what, [operation.name]))
            }
        }
        if !view.removed.isEmpty { groups.append(("removed", view.removed)) }
        let lines = groups.map { group in
            let names = group.names.prefix(Self.namesMax).map { TerminalText.line($0) }
            let more = group.names.count - names.count
            let rest = more > 0 ? ", … and \(more) more" : ""
            return "  \(group.what): \(names.joined(separator: ", "))\(rest)"
        }
        return ([head + "."] + lines).map { style.spelled($0) }
    }

    /// One line for each operation, in the order of the graph.
    package var plan: [String] {
        let lines = view.operations.map { operation in
            let name = TerminalText.line(operation.name)
            return operation.stays == nil
                ? "\(name): runs, \(because(operation))" : "\(name): stays"
        }
        return (lines + view.removed.map { "\(TerminalText.line($0)): removed" })
            .map { style.spelled($0) }
    }

    private func because(_ operation: ContinuedOperationView) -> String {
        if let dependency = operation.dependency {
            return "because “\(TerminalText.line(dependency))” runs"
        }
        switch operation.reason {
        case "added": return "because it is new"
        case "asked": return "as asked for"
        case "changed": return "because it has changed"
        case "unfinished": return "because it has not finished"
        case "additions": return "because what it added did not succeed"
        case "failed": return "because it failed"
        case "cancelled", "skipped": return "because it was \(operation.reason ?? "")"
        case let reason: return TerminalText.line(reason ?? "")
        }
    }

    private func why(_ operation: ContinuedOperationView) -> String {
        if let dependency = operation.dependency {
            return "after “\(TerminalText.line(dependency))”"
        }
        switch operation.reason {
        case "added": return "new"
        case "asked": return "asked for"
        case "unfinished": return "not finished"
        case "additions": return "what it added did not succeed"
        case let reason: return TerminalText.line(reason ?? "")
        }
    }
}
