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
            let what = reason(operation).heading
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
                ? "\(name): runs, \(reason(operation).clause)" : "\(name): stays"
        }
        return (lines + view.removed.map { "\(TerminalText.line($0)): removed" })
            .map { style.spelled($0) }
    }

    /// Why an operation runs: as the heading of all that run for the same reason, and after “runs”.
    private func reason(_ operation: ContinuedOperationView) -> (heading: String, clause: String) {
        if let dependency = operation.dependency {
            return ("after others that run", "because “\(TerminalText.line(dependency))” runs")
        }
        return switch operation.reason {
        case "added": ("new", "because it is new")
        case "asked": ("asked for", "as asked for")
        case "changed": ("changed", "because it has changed")
        case "unfinished": ("not finished", "because it has not finished")
        case "additions":
            ("what it added did not succeed", "because what it added did not succeed")
        case "failed": ("failed", "because it failed")
        case "cancelled": ("cancelled", "because it was cancelled")
        case "skipped": ("skipped", "because it was skipped")
        case let other: (TerminalText.line(other ?? ""), TerminalText.line(other ?? ""))
        }
    }
}
