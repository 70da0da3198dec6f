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
        let lines = groups.map { "  \($0.what): \(Self.listed($0.names))" }
        return ([head + "."] + lines + dropped()).map { style.spelled($0) }
    }

    /// What operations that run added before, of which nothing stays.
    private func dropped() -> [String] {
        let adding = view.operations.filter { $0.additions != nil }
        guard !adding.isEmpty else { return [] }
        let count = adding.reduce(0) { $0 + ($1.additions ?? 0) }
        let names = Self.listed(adding.map(\.name))
        return ["  added by \(names) last time, and run again: \(Self.operations(count))"]
    }

    /// The first of these names.
    private static func listed(_ names: [String]) -> String {
        let first = names.prefix(namesMax).map { TerminalText.line($0) }
        let more = names.count - first.count
        return first.joined(separator: ", ") + (more > 0 ? ", … and \(more) more" : "")
    }

    private static func operations(_ count: Int) -> String {
        "\(count) \(count == 1 ? "operation" : "operations")"
    }

    /// One line for each operation, in the order of the graph.
    ///
    /// - Parameter folds: Whether elements of a repeated operation share a line if they stay, or
    ///   run for the same reason.
    package func plan(folds: Bool = true) -> [String] {
        struct Shared: Hashable {
            let repeated: Substring
            let what: String
        }
        let lines = view.operations.map { operation in
            guard operation.stays == nil else { return "stays" }
            let runs = "runs, \(reason(operation).clause)"
            guard let additions = operation.additions else { return runs }
            return runs + "; the operations that it adds run, too (\(additions) last time)"
        }
        var counts: [Shared: Int] = [:]
        func shared(_ index: Int) -> Shared? {
            Self.repeated(view.operations[index].name).map {
                Shared(repeated: $0, what: lines[index])
            }
        }
        if folds {
            for index in lines.indices {
                if let key = shared(index) { counts[key, default: 0] += 1 }
            }
        }
        var plan: [String] = []
        for (index, what) in lines.enumerated() {
            guard folds, let key = shared(index), let count = counts[key], count != 1 else {
                plan.append("\(TerminalText.line(view.operations[index].name)): \(what)")
                continue
            }
            // The first of them stands for all.
            guard count > 1 else { continue }
            counts[key] = 0
            let first = view.operations[index]
            var does = first.stays == nil ? "run, \(reason(first).clauses)" : "stay"
            if let additions = first.additions {
                does += "; the operations that they add run, too (\(additions) each last time)"
            }
            let name = TerminalText.line(key.repeated + RepeatedNames.eachSuffix)
            plan.append("\(name): \(count) elements \(does)")
        }
        return (plan + removed(folds: folds)).map { style.spelled($0) }
    }

    private func removed(folds: Bool) -> [String] {
        var groups: [(first: String, repeated: Substring?, count: Int)] = []
        for name in view.removed {
            let repeated = folds ? Self.repeated(name) : nil
            if let last = groups.indices.last, repeated != nil, groups[last].repeated == repeated {
                groups[last].count += 1
            } else {
                groups.append((name, repeated, 1))
            }
        }
        return groups.map { first, repeated, count in
            guard count > 1, let repeated else { return "\(TerminalText.line(first)): removed" }
            let name = TerminalText.line(repeated + RepeatedNames.eachSuffix)
            return "\(name): \(count) elements removed"
        }
    }

    /// The repeated operation of which a name is an element: `render` of `render[night]`.
    private static func repeated(_ name: String) -> Substring? {
        guard name.hasSuffix("]"), let start = name.firstIndex(of: "["), start > name.startIndex
        else { return nil }
        return name[..<start]
    }

    /// Why an operation runs: as the heading of all that run for the same reason, and after “runs”
    /// and “run”.
    private struct Reason {
        let heading: String
        let clause: String
        let clauses: String

        init(_ heading: String, _ clause: String, _ clauses: String? = nil) {
            (self.heading, self.clause, self.clauses) = (heading, clause, clauses ?? clause)
        }
    }

    private func reason(_ operation: ContinuedOperationView) -> Reason {
        if let dependency = operation.dependency {
            let clause = "because “\(TerminalText.line(dependency))” runs"
            return Reason("after others that run", clause)
        }
        switch operation.reason {
        case "added": return Reason("new", "because it is new", "because they are new")
        case "asked": return Reason("asked for", "as asked for")
        case "changed":
            return Reason("changed", "because it has changed", "because they have changed")
        case "unfinished":
            return Reason(
                "not finished",
                "because it has not finished",
                "because they have not finished"
            )
        case "additions":
            return Reason(
                "what it added did not succeed",
                "because what it added did not succeed",
                "because what they added did not succeed"
            )
        case "failed": return Reason("failed", "because it failed", "because they failed")
        case "cancelled":
            return Reason("cancelled", "because it was cancelled", "because they were cancelled")
        case "skipped":
            return Reason("skipped", "because it was skipped", "because they were skipped")
        case let other:
            let text = TerminalText.line(other ?? "")
            return Reason(text, text)
        }
    }
}
