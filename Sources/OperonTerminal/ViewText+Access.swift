package import OperonModel

// Tokens and the audit.
extension ViewText {
    /// `token list`.
    package func tokens(_ tokens: [TokenView]) -> [String] {
        guard !tokens.isEmpty else { return [] }
        var table = TextTable([
            TextTable.Column(title: "TOKEN"),
            TextTable.Column(title: "ROLE"),
            TextTable.Column(title: "STATUS"),
            TextTable.Column(title: "EXPIRES", importance: 4),
            TextTable.Column(title: "QUEUES", isFlexible: true, importance: 3),
            TextTable.Column(title: "CREATED", importance: 2),
            TextTable.Column(title: "BY", importance: 1),
        ])
        for token in tokens {
            table.add([
                TextTable.Cell(shown(token.name)),
                TextTable.Cell(token.role.rawValue),
                TextTable.Cell(
                    token.status.rawValue,
                    token.status == .valid ? nil : .attention
                ),
                TextTable.Cell(token.expiresAt.map { time($0) } ?? ""),
                TextTable.Cell(shown((token.queues ?? []).joined(separator: ", "))),
                TextTable.Cell(
                    token.source == .file ? "in a file" : token.createdAt.map { time($0) } ?? ""
                ),
                TextTable.Cell(shown(token.createdBy ?? "")),
            ])
        }
        return table.lines(style: style, width: width)
    }

    /// After `token create`, beside the token itself.
    package func created(_ token: TokenView) -> [String] {
        let end = token.expiresAt.map { ", until \(time($0))" } ?? ""
        return [
            said(
                "Created token \(quoted(token.name)) with the role \(token.role.rawValue)\(end). "
                    + "It is shown only now: keep it in a file that only its holder can read."
            )
        ]
    }

    /// After `token revoke`.
    package func revoked(_ token: TokenView) -> [String] {
        [said("Revoked token \(quoted(token.name)): it is refused from now on.")]
    }

    /// `audit`: each change with its result in one line.
    package func audit(_ entries: [AuditEntry]) -> [String] {
        guard !entries.isEmpty else { return [] }
        var results: [UInt64: AuditEntry] = [:]
        for entry in entries { if let of = entry.of { results[of] = entry } }
        var table = TextTable([
            TextTable.Column(title: "NUMBER", isRight: true),
            TextTable.Column(title: "TIME"),
            TextTable.Column(title: "BY", isFlexible: true),
            TextTable.Column(title: "FROM", importance: 1),
            TextTable.Column(title: "WHAT", isFlexible: true),
            TextTable.Column(title: "RESULT", isFlexible: true, importance: 2),
        ])
        let asked = Set(entries.filter { $0.kind == .asked }.map(\.number))
        for entry in entries {
            // It stands in the line of the change.
            if let of = entry.of, asked.contains(of) { continue }
            let from = [entry.from, entry.user.map { "user \($0)" }].compactMap { $0 }
            table.add([
                TextTable.Cell("\(entry.number)"),
                TextTable.Cell(time(entry.at)),
                TextTable.Cell(shown(entry.by ?? "")),
                TextTable.Cell(shown(from.joined(separator: ", "))),
                TextTable.Cell(shown(what(entry))),
                result(entry, results[entry.number]),
            ])
        }
        return table.lines(style: style, width: width)
    }

    private func what(_ entry: AuditEntry) -> String {
        switch entry.kind {
        case .started: "the coordinator started"
        case .reloaded: "the coordinator reloaded"
        case .refusals: "\(entry.count ?? 0) further refused requests"
        case .dropped: "entries up to \(entry.through ?? 0) were removed"
        case .torn: "\(entry.count ?? 0) bytes of an entry that was not whole were removed"
        case .done where entry.of != nil: "result of \(entry.of ?? 0)"
        case .asked, .done, .refused:
            [entry.method, entry.path].compactMap { $0 }.joined(separator: " ")
        }
    }

    private func result(_ entry: AuditEntry, _ done: AuditEntry?) -> TextTable.Cell {
        let last = done ?? entry
        guard entry.kind != .asked || done != nil else {
            return TextTable.Cell("not known", .attention)
        }
        let isGood = last.status.map { $0 < 400 } ?? true
        var words: [String] = []
        if let status = last.status {
            words.append(isGood ? "done" : entry.kind == .refused ? "refused" : "failed")
            if !isGood { words.append("(\(status))") }
        }
        words += [last.target, last.detail].compactMap { $0 }
        return TextTable.Cell(shown(words.joined(separator: " ")), isGood ? nil : .attention)
    }

    /// `audit --verify`.
    package func auditCheck(_ check: AuditCheckView) -> [String] {
        let head = "entries \(check.first) to \(check.last), hash \(shown(check.hash))"
        guard !check.problems.isEmpty else { return [said("The audit is whole: \(head)")] }
        return check.problems.map { shown($0) } + [said("The audit is broken: \(head)")]
    }
}
