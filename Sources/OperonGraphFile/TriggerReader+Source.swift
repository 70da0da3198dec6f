import OperonModel

// What `on` may have.
extension TriggerReader {
    mutating func source(_ entry: Node.Entry) throws(Stop) -> FiringSource? {
        if entry.value.text == "event" { return .event }
        guard let entries = entry.value.entries else {
            try fields.mismatch(entry.value, "on", "a map with one source, such as “every: 5m”")
            return nil
        }
        for entry in entries where !Self.knownKeys.contains(entry.key) {
            try fields.unknownKey(entry, among: Self.knownKeys)
            return nil
        }
        let sources = entries.filter { FiringSource.kinds.contains($0.key) }
        guard let first = sources.first, sources.count == 1 else {
            let kinds = FiringSource.kinds.joined(separator: ", ")
            try fields.log.report(
                sources.isEmpty ? .missingKey : .misplacedKey,
                at: sources.count > 1 ? sources[1].keyPosition : entry.keyPosition,
                sources.count > 1 ? sources[1].key : "on",
                "“on” needs exactly one of \(kinds)"
            )
            return nil
        }
        // `cron: "…"` and `every: 5m` may have their settings beside them.
        let others = entries.filter { $0.key != first.key && $0.key != Self.workersKey }
        if let workers = entries.first(where: { $0.key == Self.workersKey }) {
            guard try readWatcher(workers, of: first) else { return nil }
        }
        switch first.key {
        case "every": return try every(first, others)
        case "cron": return try cron(first, others)
        case "webhook": return try webhook(first, others)
        case "graph": return try ended(first, others)
        case let kind where WatchedSource.kinds.contains(kind): return try watched(first, others)
        default: return try event(first, others)
        }
    }

    private static let workersKey = "workers"
    private static let settings = ["timezone", "startAt", "leeway", "outcomes", workersKey]
    private static let knownKeys = FiringSource.kinds + settings

    /// The settings of a source: in a map of its own, or beside it.
    mutating func settings(
        of entry: Node.Entry,
        _ others: [Node.Entry],
        main: String,
        _ known: [String]
    ) throws(Stop) -> [String: Node.Entry]? {
        var found: [String: Node.Entry] = [:]
        var all = others
        if let own = entry.value.entries {
            all = own + others
        } else {
            found[main] = entry
        }
        for setting in all {
            guard known.contains(setting.key) else {
                try fields.unknownKey(setting, among: known)
                return nil
            }
            if let first = found.updateValue(setting, forKey: setting.key) {
                try fields.log.report(
                    .duplicateKey(
                        setting.key,
                        at: setting.keyPosition,
                        first: first.keyPosition
                    )
                )
                return nil
            }
        }
        guard found[main] != nil else {
            try fields.log.report(
                .missingKey,
                at: entry.keyPosition,
                entry.key,
                "\(entry.key.quoted) needs “\(main)”"
            )
            return nil
        }
        return found
    }

    private mutating func event(
        _ entry: Node.Entry,
        _ others: [Node.Entry]
    ) throws(Stop) -> FiringSource? {
        if let other = others.first ?? entry.value.entries?.first {
            try fields.unknownKey(other, among: [])
            return nil
        }
        guard entry.value.isNull || entry.value.entries != nil else {
            try fields.mismatch(entry.value, "event", "an empty map")
            return nil
        }
        return .event
    }

    private mutating func every(
        _ entry: Node.Entry,
        _ others: [Node.Entry]
    ) throws(Stop) -> FiringSource? {
        let known = ["interval", "startAt", "leeway"]
        guard let found = try settings(of: entry, others, main: "interval", known),
            let node = found["interval"]?.value,
            let interval = try fields.duration(node, "interval", isPositive: true)
        else { return nil }
        guard interval >= Limits.triggerIntervalMin else {
            try fields.mismatch(node, "interval", "a duration of 1s or more")
            return nil
        }
        var source = IntervalSource(interval: interval)
        if let start = found["startAt"] {
            source.startAt = try fields.moment(start.value, "startAt")
        }
        if let leeway = found["leeway"] {
            source.leeway = try fields.duration(leeway.value, "leeway") ?? .zero
            guard source.leeway < interval else {
                try fields.mismatch(leeway.value, "leeway", "less than the interval")
                return nil
            }
        }
        return .every(source)
    }

    private mutating func cron(
        _ entry: Node.Entry,
        _ others: [Node.Entry]
    ) throws(Stop) -> FiringSource? {
        let known = ["expression", "timezone", "leeway"]
        guard let found = try settings(of: entry, others, main: "expression", known),
            let node = found["expression"]?.value, let text = try fields.text(node, entry.key)
        else { return nil }
        let expression: CronExpression
        do throws(CronExpression.Problem) {
            expression = try CronExpression(text)
        } catch {
            try fields.log.report(
                .invalidValue,
                at: node.position,
                text,
                "cron \(text.quoted): \(error)"
            )
            return nil
        }
        var source = CronSource(expression)
        if let zone = found["timezone"] {
            guard let name = try fields.name(zone.value, "timezone") else { return nil }
            if let problem = zoneProblem?(name) {
                try fields.log.report(.invalidValue, at: zone.value.position, name, problem)
            }
            source.timezone = name
        }
        if let leeway = found["leeway"] {
            source.leeway = try fields.duration(leeway.value, "leeway") ?? .zero
            guard source.leeway <= CronSource.leewayMax else {
                try fields.mismatch(leeway.value, "leeway", "at most 1h")
                return nil
            }
        }
        return .cron(source)
    }

    private mutating func ended(
        _ entry: Node.Entry,
        _ others: [Node.Entry]
    ) throws(Stop) -> FiringSource? {
        let known = ["name", "outcomes"]
        guard let found = try settings(of: entry, others, main: "name", known),
            let node = found["name"]?.value, let name = try fields.name(node, "name")
        else { return nil }
        var source = GraphSource(name: name)
        if let outcomes = found["outcomes"] {
            let nodes = outcomes.value.elements ?? [outcomes.value]
            for node in nodes {
                guard
                    let outcome = try fields.word(node, "outcomes", OutcomeKind.allCases, \.name)
                else { return nil }
                if !source.outcomes.contains(outcome) { source.outcomes.append(outcome) }
            }
        }
        return .graph(source)
    }

    private mutating func webhook(
        _ entry: Node.Entry,
        _ others: [Node.Entry]
    ) throws(Stop) -> FiringSource? {
        let known = [
            "signature", "secretFile", "secretEnvironment", "tolerance", "bodyBytes", "perMinute",
        ]
        guard let found = try settings(of: entry, others, main: "signature", known),
            let word = found["signature"]?.value,
            let signature = try fields.word(
                word,
                "signature",
                WebhookSource.Signature.allCases,
                \.rawValue
            ), let secret = try secret(entry, found)
        else { return nil }
        var source = WebhookSource(signature: signature, secret: secret)
        if let tolerance = found["tolerance"] {
            guard signature == .stripe else {
                try fields.log.report(
                    .misplacedKey,
                    at: tolerance.keyPosition,
                    "tolerance",
                    "“tolerance” is for the time in a Stripe signature"
                )
                return nil
            }
            source.tolerance =
                try fields.duration(tolerance.value, "tolerance", isPositive: true)
                ?? source.tolerance
        }
        if let bytes = found["bodyBytes"] {
            source.bodyBytes =
                try fields.count(
                    bytes.value,
                    "bodyBytes",
                    from: 1,
                    through: Limits.triggerDataBytes
                ) ?? source.bodyBytes
        }
        if let rate = found["perMinute"] {
            source.perMinute =
                try fields.count(
                    rate.value,
                    "perMinute",
                    from: 1,
                    through: WebhookSource.perMinuteMax
                ) ?? source.perMinute
        }
        return .webhook(source)
    }

    private mutating func secret(
        _ entry: Node.Entry,
        _ found: [String: Node.Entry]
    ) throws(Stop) -> WebhookSource.Secret? {
        switch (found["secretFile"], found["secretEnvironment"]) {
        case (let file?, nil):
            guard let path = try fields.text(file.value, "secretFile") else { return nil }
            guard path.hasPrefix("/") else {
                try fields.mismatch(
                    file.value,
                    "secretFile",
                    "an absolute path on the coordinator's machine"
                )
                return nil
            }
            return .file(path)
        case (nil, let variable?):
            guard let name = try fields.text(variable.value, "secretEnvironment") else {
                return nil
            }
            guard WebhookSource.mayHoldSecret(name) else {
                try fields.mismatch(
                    variable.value,
                    "secretEnvironment",
                    "a variable whose name begins with \(WebhookSource.secretPrefix)"
                )
                return nil
            }
            return .environment(name)
        case _:
            try fields.log.report(
                .missingKey,
                at: entry.keyPosition,
                "webhook",
                "“webhook” needs one of “secretFile” and “secretEnvironment”"
            )
            return nil
        }
    }
}
