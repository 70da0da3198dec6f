import OperonModel

/// Reads the values of keys and checks their type, range and limits. Problems go to the log, and
/// the value is then `nil`.
struct FieldReader {
    var log = ProblemLog()
    let limits: Limits

    init(limits: Limits) { self.limits = limits }

    /// Reports that the value of `key` has the wrong type.
    mutating func mismatch(_ node: Node, _ key: String, _ wanted: String) throws(Stop) {
        let code: GraphFileError.Code
        switch node.value {
        case .null, .sequence, .mapping: code = .wrongType
        case .bool, .number, .string: code = .invalidValue
        }
        try log.report(
            code,
            at: node.position,
            node.thing,
            "\(key.quoted) must be \(wanted), not \(node.kindName)"
        )
    }

    mutating func unknownKey(_ entry: Node.Entry, among known: [String]) throws(Stop) {
        try log.report(
            .unknownKey,
            at: entry.keyPosition,
            entry.key,
            "unknown key \(entry.key.quoted)" + Suggestion.hint(for: entry.key, among: known)
        )
    }

    // MARK: - Texts

    /// Any text without NUL, because NUL ends a text in system calls.
    mutating func text(_ node: Node, _ key: String) throws(Stop) -> String? {
        guard let text = node.text else {
            try mismatch(node, key, "a string")
            return nil
        }
        guard !text.utf8.contains(0) else {
            try log.report(
                .invalidValue,
                at: node.position,
                text,
                "\(key.quoted) has a NUL character"
            )
            return nil
        }
        return text
    }

    mutating func name(_ node: Node, _ key: String) throws(Stop) -> String? {
        guard let text = node.text else {
            try mismatch(node, key, "a name")
            return nil
        }
        return try name(text, at: node.position, key)
    }

    /// A name: from 1 byte up to the limit, without control characters, which could disturb a
    /// terminal.
    mutating func name(
        _ text: String,
        at position: Position,
        _ what: String
    ) throws(Stop) -> String? {
        guard !text.isEmpty else {
            try log.report(.invalidValue, at: position, "", "\(what.quoted) is an empty name")
            return nil
        }
        guard text.utf8.count <= limits.nameBytes else {
            try log.report(
                GraphFileError.Problem(
                    limit: .nameBytes,
                    value: text.utf8.count,
                    maximum: limits.nameBytes,
                    at: position,
                    text,
                    text.quoted
                )
            )
            return nil
        }
        guard !text.hasControl else {
            try log.report(
                .invalidValue,
                at: position,
                text,
                "the name \(text.quoted) has a control character"
            )
            return nil
        }
        return text
    }

    /// A list of names without repetitions, or one name. Null is the empty list.
    mutating func names(_ node: Node, _ key: String) throws(Stop) -> [String]? {
        if node.isNull { return [] }
        if node.text != nil { return try name(node, key).map { [$0] } }
        guard let elements = node.elements else {
            try mismatch(node, key, "a list of names")
            return nil
        }
        var names: [String] = []
        var seen = SeenKeys<Position>()
        for element in elements {
            guard let name = try name(element, key) else { return nil }
            if seen.insert(name, element.position) == nil { names.append(name) }
        }
        return names
    }

    /// A list of paths without repetitions, or one path. Null is the empty list.
    mutating func paths(_ node: Node, _ key: String) throws(Stop) -> [String]? {
        if node.isNull { return [] }
        if node.text != nil { return try path(node, key).map { [$0] } }
        guard let elements = node.elements else {
            try mismatch(node, key, "a path or a list of paths")
            return nil
        }
        guard elements.count <= limits.operationFiles else {
            try log.report(
                GraphFileError.Problem(
                    limit: .operationFiles,
                    value: elements.count,
                    maximum: limits.operationFiles,
                    at: node.position,
                    key,
                    key.quoted
                )
            )
            return nil
        }
        var paths: [String] = []
        var seen = SeenKeys<Position>()
        for element in elements {
            guard let path = try path(element, key) else { return nil }
            if seen.insert(path, element.position) == nil { paths.append(path) }
        }
        return paths
    }

    private mutating func path(_ node: Node, _ key: String) throws(Stop) -> String? {
        guard node.text != nil else {
            try mismatch(node, key, "a path or a list of paths")
            return nil
        }
        guard let path = try text(node, key) else { return nil }
        guard !path.isEmpty else {
            try log.report(.invalidValue, at: node.position, "", "\(key.quoted) has an empty path")
            return nil
        }
        guard path.utf8.count <= limits.pathBytes else {
            try log.report(
                GraphFileError.Problem(
                    limit: .pathBytes,
                    value: path.utf8.count,
                    maximum: limits.pathBytes,
                    at: node.position,
                    path,
                    "a path of \(key.quoted)"
                )
            )
            return nil
        }
        return path
    }

    // MARK: - Numbers and times

    mutating func count(
        _ node: Node,
        _ key: String,
        from minimum: Int = 0,
        through maximum: Int
    ) throws(Stop) -> Int? {
        guard case .number(let text) = node.value, let value = Int(text),
            (minimum...maximum).contains(value)
        else {
            try mismatch(node, key, "a whole number from \(minimum) to \(maximum)")
            return nil
        }
        return value
    }

    /// Reads `rate` and `burst`; `nil`: there is no rate, or a problem was reported.
    mutating func rate(_ settings: [Node.Entry]) throws(Stop) -> StartRate? {
        let burst = settings.first { $0.key == "burst" }
        guard let entry = settings.first(where: { $0.key == "rate" }), !entry.value.isNull else {
            if let burst {
                try log.report(
                    .missingKey,
                    at: burst.keyPosition,
                    burst.key,
                    "“burst” needs a “rate”"
                )
            }
            return nil
        }
        var count: Int?
        if let burst {
            count = try self.count(burst.value, "burst", from: 1, through: StartRate.countMax)
            guard count != nil else { return nil }
        }
        guard let rate = entry.value.text.flatMap({ StartRate($0, burst: count) }) else {
            try mismatch(entry.value, "rate", StartRate.hint)
            return nil
        }
        do throws(Refusal) {
            try rate.check("rate")
        } catch {
            try log.report(.invalidValue, at: entry.value.position, rate.text, error.description)
            return nil
        }
        return rate
    }

    mutating func number(
        _ node: Node,
        _ key: String,
        in range: ClosedRange<Double>,
        _ wanted: String
    ) throws(Stop) -> Double? {
        guard case .number(let text) = node.value, let value = Double(text),
            value.isFinite, range.contains(value)
        else {
            try mismatch(node, key, wanted)
            return nil
        }
        return value
    }

    mutating func bool(_ node: Node, _ key: String) throws(Stop) -> Bool? {
        guard let value = node.bool else {
            try mismatch(node, key, "true or false")
            return nil
        }
        return value
    }

    /// From 0, or from 1 ns if `isPositive`, to 100 years.
    mutating func duration(
        _ node: Node,
        _ key: String,
        isPositive: Bool = false
    ) throws(Stop) -> Duration? {
        guard node.bool == nil, let text = node.text,
            let duration = DurationText.duration(text)
        else {
            try mismatch(node, key, DurationText.hint)
            return nil
        }
        guard duration >= .zero else {
            try mismatch(node, key, "a duration of 0 or more")
            return nil
        }
        guard duration > .zero || !isPositive else {
            try mismatch(node, key, "a duration longer than 0")
            return nil
        }
        return duration
    }

    /// From 1 byte to 8 EiB.
    mutating func byteCount(_ node: Node, _ key: String) throws(Stop) -> Int? {
        guard node.bool == nil, let text = node.text, let count = ByteCountText.count(text) else {
            try mismatch(node, key, ByteCountText.hint)
            return nil
        }
        return count
    }

    mutating func moment(_ node: Node, _ key: String) throws(Stop) -> WallTime? {
        guard case .string(let text) = node.value, let moment = DateText.moment(text) else {
            try mismatch(node, key, DateText.hint)
            return nil
        }
        return moment
    }

    // MARK: - Words

    /// One of a few words.
    mutating func word<Value>(
        _ node: Node,
        _ key: String,
        _ values: [Value],
        _ name: (Value) -> String
    ) throws(Stop) -> Value? {
        if let text = node.text, let value = values.first(where: { name($0) == text }) {
            return value
        }
        let known = values.map(name)
        let hint = node.text.map { Suggestion.hint(for: $0, among: known) } ?? ""
        let first = known.dropLast().joined(separator: ", ")
        let wanted = (first.isEmpty ? "" : first + " or ") + (known.last ?? "")
        try log.report(
            node.text == nil ? .wrongType : .invalidValue,
            at: node.position,
            node.thing,
            "\(key.quoted) must be \(wanted), not \(node.kindName)" + hint
        )
        return nil
    }

    mutating func priority(_ node: Node, _ key: String) throws(Stop) -> QueuePriority? {
        try word(node, key, QueuePriority.allCases, \.name)
    }

    mutating func order(_ node: Node, _ key: String) throws(Stop) -> OperationOrder? {
        if node.isNull { return .criticalPath }
        return try word(node, key, OperationOrder.allCases, \.name)
    }

    mutating func condition(_ node: Node, of name: String) throws(Stop) -> DependencyCondition? {
        if node.isNull { return .unlessFailed }
        return try word(node, name, DependencyCondition.allCases, \.name)
    }

    // MARK: - Retry

    static let retryKeys = ["limit", "delay", "factor", "maxDelay", "jitter"]

    /// A bare number is the limit of the policy.
    /// A number, whose group is not known here and stays empty, or a map.
    mutating func inFlight(_ node: Node, _ key: String) throws(Stop) -> InFlightLimit? {
        let maximum = Limits.concurrencyMax
        guard let entries = node.entries else {
            guard case .number = node.value else {
                try mismatch(node, key, "a number of operations, or a map with “group” and “limit”")
                return nil
            }
            return try count(node, key, from: 1, through: maximum).map {
                InFlightLimit(group: "", limit: $0)
            }
        }
        var group: String?
        var limit: Int?
        let problemsBefore = log.problems.count
        for entry in entries {
            switch entry.key {
            case "group": group = try name(entry.value, "group")
            case "limit": limit = try count(entry.value, "limit", from: 1, through: maximum)
            default: try unknownKey(entry, among: ["group", "limit"])
            }
        }
        guard log.problems.count == problemsBefore else { return nil }
        guard let group, let limit else {
            let missing = group == nil ? "group" : "limit"
            let message = "\(key.quoted) needs \(missing.quoted)"
            try log.report(.missingKey, at: node.position, key, message)
            return nil
        }
        return InFlightLimit(group: group, limit: limit)
    }

    mutating func retry(_ node: Node, _ key: String) throws(Stop) -> RetryPolicy? {
        if node.isNull { return .never }
        let limitMax = Int(UInt16.max)
        guard let entries = node.entries else {
            guard case .number = node.value else {
                try mismatch(node, key, "a number of further attempts, or a map with “limit”")
                return nil
            }
            return try count(node, key, through: limitMax).map { RetryPolicy(limit: UInt16($0)) }
        }
        var policy = RetryPolicy(limit: 0)
        var limit: Int?
        var longest: Duration?
        let problemsBefore = log.problems.count
        for entry in entries {
            let node = entry.value
            switch entry.key {
            case "limit": limit = try count(node, "limit", through: limitMax)
            case "delay": policy.delay = try duration(node, "delay") ?? policy.delay
            case "maxDelay": longest = try duration(node, "maxDelay")
            case "factor":
                policy.factor =
                    try number(
                        node,
                        "factor",
                        in: 1...Double.greatestFiniteMagnitude,
                        "a number of at least 1"
                    ) ?? policy.factor
            case "jitter":
                policy.jitter =
                    try number(node, "jitter", in: 0...1, "a number from 0 to 1") ?? policy.jitter
            default: try unknownKey(entry, among: Self.retryKeys)
            }
        }
        guard log.problems.count == problemsBefore else { return nil }
        guard let limit else {
            try log.report(
                .missingKey,
                at: node.position,
                key,
                "\(key.quoted) needs “limit”, the number of further attempts"
            )
            return nil
        }
        policy.limit = UInt16(limit)
        if let longest, longest < policy.delay {
            try log.report(
                .invalidValue,
                at: node.position,
                key,
                "“maxDelay” is shorter than “delay”, \(DurationText.text(policy.delay))"
            )
            return nil
        }
        // A first pause of five minutes is intended, even if the file does not set the longest
        // pause.
        policy.maxDelay = longest ?? max(policy.maxDelay, policy.delay)
        return policy
    }
}
