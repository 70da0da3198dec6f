package import OperonModel

extension ViewText {
    // MARK: - Lists

    /// `list`: one graph a row, in the order given.
    package func graphs(_ graphs: [GraphView]) -> [String] {
        guard !graphs.isEmpty else { return [] }
        var table = TextTable([
            TextTable.Column(title: "ID", isRight: true),
            TextTable.Column(title: "NAME", isFlexible: true),
            TextTable.Column(title: "STATUS"),
            TextTable.Column(title: "APPROVALS", isRight: true, importance: 6),
            TextTable.Column(title: "DONE", isRight: true),
            TextTable.Column(title: "FAILED", isRight: true, importance: 5),
            TextTable.Column(title: "SUBMITTED", importance: 3),
            TextTable.Column(title: "BY", isFlexible: true, importance: 2),
        ])
        for graph in graphs {
            let counts = graph.counts
            table.add([
                TextTable.Cell(String(graph.id)),
                TextTable.Cell(shown(graph.name)),
                TextTable.Cell(status(graph), tint(graph.status)),
                TextTable.Cell(graph.awaitingCompletion.map { "\($0)" } ?? "", .attention),
                TextTable.Cell("\(counts.finished)/\(counts.total)"),
                TextTable.Cell(counts.failed == 0 ? "" : String(counts.failed), .bad),
                TextTable.Cell(time(graph.submittedAt)),
                TextTable.Cell(shown(graph.submittedBy ?? "")),
            ])
        }
        return table.lines(style: style, width: width)
    }

    /// The status, and whether the graph is open, where the status does not imply it.
    private func status(_ graph: GraphView) -> String {
        var status = graph.status.rawValue
        if graph.isOpen, graph.status != .idle { status += ", open" }
        return status
    }

    // MARK: - One graph

    /// `status GRAPH`, with a line for each repeated operation.
    package func graph(_ graph: GraphView, repeated: [RepeatedRow] = []) -> [String] {
        var head = style.tinted(name(graph), .strong) + ": "
        head += style.tinted(graph.status.rawValue, tint(graph.status))
        var submitted = time(graph.submittedAt)
        if let by = graph.submittedBy, !by.isEmpty { submitted += " by " + shown(by) }
        let suspended = graph.suspension.map { suspension($0) }
        let approvals = graph.awaitingCompletion.map { "\($0); to list them: operon approvals" }
        let open =
            graph.isOpen ? "yes; to add operations: operon submit FILE --graph \(graph.id)" : nil
        return [head]
            + block([
                ("operations", counts(graph.counts, upToDate: graph.upToDate, noun: nil)),
                ("approvals", approvals),
                ("submitted", submitted),
                ("finished", graph.finishedAt.map(time)),
                ("suspended", suspended),
                ("cancelled", graph.cancelReason.map { shown($0) }),
                ("open", open),
            ])
            + repeatedLines(repeated)
    }

    /// The most repeated operations that `status` lists.
    private static let repeatedMax = 20

    private func repeatedLines(_ rows: [RepeatedRow]) -> [String] {
        guard !rows.isEmpty else { return [] }
        let lines = rows.prefix(Self.repeatedMax).map { row in
            (name: shown(row.title), value: Optional(elementCounts(row)))
        }
        let more = rows.count - lines.count
        return ["repeated operations"] + block(lines)
            + (more > 0
                ? ["  " + said("… and \(more) more: operon operations \(rows[0].graph)")] : [])
    }

    /// After `submit`: what was accepted, and what to do next.
    package func submitted(
        _ graph: GraphView,
        isAddition: Bool,
        isFollowed: Bool
    ) -> [String] {
        let total = plural(graph.counts.total, "operation")
        let what =
            isAddition
            ? "Added to \(name(graph)), which now has \(total)."
            : "Submitted \(name(graph)): \(total)."
        var lines = [said(what + (isFollowed ? "" : " To watch: operon watch \(graph.id)"))]
        if graph.isOpen {
            lines.append(
                "The graph is open. To add operations: operon submit FILE --graph \(graph.id). "
                    + "To close it: operon graph close \(graph.id)"
            )
        }
        return lines
    }

    /// After `submit`: what no worker could run.
    package func warnings(_ graph: GraphView) -> [String] {
        (graph.warnings ?? []).map {
            style.tinted("warning:", .attention) + " " + shown($0.text)
        }
    }

    /// The end of a graph, for a command that waited for it.
    package func ended(_ graph: GraphView) -> [String] {
        let counts = counts(graph.counts, upToDate: graph.upToDate)
        return [style.tinted(name(graph), .strong) + " finished. " + counts]
    }

    /// The operations that failed, at the end of `watch`, and where to read more.
    package func failures(_ failed: [OperationView], of count: Int) -> [String] {
        var lines = failed.map { operation in
            var line = style.tinted("failed", .bad) + " " + name(operation)
            if let error = operation.error { line += ": " + shown(error.message) }
            if operation.attempts > 1 { line += " (attempt \(operation.attempts))" }
            return line
        }
        if let first = failed.first {
            if count > failed.count {
                let command = "operon operations \(first.graph) --outcome failed"
                lines.append(said("… and \(count - failed.count) more failed: \(command)"))
            }
            // What somebody else did has no log.
            if let logged = failed.first(where: { $0.kind != Work.externalKind }) {
                let whose = count > 1 ? "the log of \(name(logged))" : "its log"
                let command = "operon logs \(argument("\(logged.graph)/\(logged.name)"))"
                lines.append(said("To see \(whose): ") + command)
            }
            lines.append("To retry the failed operations: operon retry \(first.graph) --failed")
        }
        return lines
    }

    /// A wait that timed out.
    package func stillRunning(_ graph: GraphView) -> String {
        let counts = graph.counts
        let finished = "\(counts.finished) of \(plural(counts.total, "operation"))"
        var sentence = "Timed out: \(name(graph)) has finished \(finished). "
        if let asked = asked(graph) { sentence += asked + " " }
        return said(sentence + "To keep waiting: operon wait \(graph.id)")
    }

    /// The graph waits for people; `nil`: it does not.
    package func waitsForPeople(_ graph: GraphView) -> String? {
        asked(graph).map { said("\(name(graph)): \($0)") }
    }

    private func asked(_ graph: GraphView) -> String? {
        guard let count = graph.awaitingCompletion, count > 0 else { return nil }
        let verb = count == 1 ? "waits" : "wait"
        return "\(plural(count, "operation")) \(verb) for somebody: operon approvals."
    }

    /// The user stopped watching.
    package func detached(_ graph: GraphView) -> String {
        let sentence = "Detached: \(name(graph)) keeps running."
        return said("\(sentence) To watch it again: operon watch \(graph.id)")
    }

    /// What a wait that is given up says.
    package func waitLeft(_ graph: GraphView) -> String {
        let sentence = "Stopped waiting: \(name(graph)) keeps running."
        return said("\(sentence) To wait for it again: operon wait \(graph.id)")
    }

    // MARK: - Closing

    package func closed(_ graph: GraphView) -> [String] {
        [said("Closed \(name(graph)): submit can no longer add operations to it.")]
    }
}
