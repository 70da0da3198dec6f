import OperonModel

/// Reads `forEach` and `matrix`.
struct RepetitionReader {
    static let keys = ["forEach", "matrix"]
    private static let sourceKeys = ["lines", "files"]
    static let outputKey = "output"
    static let variablesKey = "variables"
    private static let matrixKeys = ["include", "exclude", "zip"]
    /// The variables of a matrix. The name of an element has four bytes or more for each, and names
    /// have 256 bytes.
    static let variablesMax = 64

    private static func wantedValues(of key: String) -> String {
        let isForEach = key == OperationKey.forEach.name
        let sources = isForEach ? "“lines”, “files” or “output”" : "“lines” or “files”"
        return "a list, a range such as 1..500, or a map with \(sources)"
    }

    /// The directory to which files are relative; `nil`: none may be read.
    let base: String?
    /// The parameters of the file: no variable may have the name of one.
    let parameters: GraphParameters

    /// Reads the value of `forEach`; `nil`: a problem was reported.
    func forEach(
        _ entry: Node.Entry,
        reporting fields: inout FieldReader
    ) throws(Stop) -> Repetition? {
        let name = Repetition.itemVariable
        guard !parameters.has(name) else {
            try fields.log.report(
                .invalidValue,
                at: entry.keyPosition,
                entry.key,
                "“forEach” sets the variable “item”, which is the name of a parameter; rename the"
                    + " parameter, or use “matrix”, which names its variables"
            )
            return nil
        }
        guard let values = try values(entry.value, "forEach", reporting: &fields) else {
            return nil
        }
        return Repetition(forEach: values)
    }

    // MARK: - Matrix

    /// Reads the value of `matrix`; `nil`: a problem was reported.
    func matrix(
        _ entry: Node.Entry,
        reporting fields: inout FieldReader
    ) throws(Stop) -> Repetition? {
        guard let entries = entry.value.entries else {
            try fields.mismatch(entry.value, "matrix", "a map from variables to their values")
            return nil
        }
        let variableCount = entries.count { !Self.matrixKeys.contains($0.key) }
        guard variableCount <= Self.variablesMax else {
            try fields.log.report(
                .invalidValue,
                at: entry.keyPosition,
                entry.key,
                "\(variableCount) variables are more than a matrix may have, \(Self.variablesMax)"
            )
            return nil
        }
        let problems = fields.log.problems.count
        var lists: [(variable: String, values: RepetitionValues)] = []
        var isZipped = false
        for entry in entries {
            if Self.matrixKeys.contains(entry.key) {
                if entry.key == "zip" {
                    isZipped = try fields.bool(entry.value, "zip") ?? false
                }
            } else if let reason = GraphParameters.reasonAgainst(entry.key, of: "a variable")
                ?? (parameters.has(entry.key)
                    ? "\(entry.key.quoted) is the name of a parameter already" : nil)
            {
                try fields.log.report(.invalidValue, at: entry.keyPosition, entry.key, reason)
            } else if let values = try values(entry.value, entry.key, reporting: &fields) {
                lists.append((entry.key, values))
            }
        }
        if fields.log.problems.count == problems, lists.isEmpty {
            try fields.log.report(
                .invalidValue,
                at: entry.value.position,
                "matrix",
                "“matrix” has no variable; write at least one, such as “width: [320, 640]”"
            )
        }
        if isZipped, let first = lists.first {
            for list in lists.dropFirst() where list.values.count != first.values.count {
                try fields.log.report(
                    .invalidValue,
                    at: entry.keyPosition,
                    list.variable,
                    "“zip” takes the values side by side, but \(first.variable.quoted) has"
                        + " \(first.values.count) and \(list.variable.quoted) has"
                        + " \(list.values.count)"
                )
            }
        }
        guard fields.log.problems.count == problems else { return nil }
        var repetition = Repetition(lists, isZipped: isZipped)
        for entry in entries where entry.key == "include" || entry.key == "exclude" {
            try readCombinations(entry, into: &repetition, reporting: &fields)
        }
        return fields.log.problems.count == problems ? repetition : nil
    }

    /// Reads `include` or `exclude`: a list of maps from variables to one value each.
    private func readCombinations(
        _ entry: Node.Entry,
        into repetition: inout Repetition,
        reporting fields: inout FieldReader
    ) throws(Stop) {
        guard let combinations = entry.value.elements else {
            return try fields.mismatch(
                entry.value,
                entry.key,
                "a list of maps from variables to values"
            )
        }
        let known = repetition.variables.indices.map { repetition.texts(of: $0) }
        for combination in combinations {
            guard let settings = combination.entries, !settings.isEmpty else {
                try fields.mismatch(
                    combination,
                    entry.key,
                    "a list of maps from variables to values"
                )
                continue
            }
            let values = try combinationValues(settings, of: repetition, reporting: &fields)
            guard let values else { continue }
            if entry.key == "exclude" {
                try exclude(values, among: known, from: &repetition, reporting: &fields)
            } else if let missing = repetition.variables.indices.first(where: {
                values[$0] == nil
            }) {
                let name = repetition.variables[missing]
                try fields.log.report(
                    .missingKey,
                    at: combination.position,
                    name,
                    "each map of “include” sets all variables; this one has no \(name.quoted)"
                )
            } else {
                repetition.include(repetition.variables.indices.compactMap { values[$0] })
            }
        }
    }

    /// The values by the index of their variable; `nil`: a problem was reported.
    private func combinationValues(
        _ settings: [Node.Entry],
        of repetition: Repetition,
        reporting fields: inout FieldReader
    ) throws(Stop) -> [Int: Node]? {
        var values: [Int: Node] = [:]
        for setting in settings {
            guard let variable = repetition.variables.firstIndex(of: setting.key) else {
                try fields.unknownKey(setting, among: repetition.variables)
                return nil
            }
            guard try isValue(setting.value, of: setting.key, reporting: &fields) else {
                return nil
            }
            values[variable] = setting.value
        }
        return values
    }

    private func exclude(
        _ values: [Int: Node],
        among known: [RepetitionTexts],
        from repetition: inout Repetition,
        reporting fields: inout FieldReader
    ) throws(Stop) {
        for (variable, value) in values.sorted(by: { $0.key < $1.key })
        where !known[variable].contains(value.text ?? "") {
            let name = repetition.variables[variable]
            return try fields.log.report(
                .invalidValue,
                at: value.position,
                value.thing,
                "“exclude” would leave out nothing: \(value.kindName) is not among the values of"
                    + " \(name.quoted)"
            )
        }
        repetition.exclude(values.mapValues { $0.text ?? "" })
    }

    // MARK: - Values

    /// Reads a list, a range or a source of values; `nil`: a problem was reported.
    private func values(
        _ node: Node,
        _ key: String,
        reporting fields: inout FieldReader
    ) throws(Stop) -> RepetitionValues? {
        switch node.value {
        case .sequence(let elements):
            for element in elements {
                guard try isValue(element, of: key, reporting: &fields) else { return nil }
            }
            return .list(elements)
        case .mapping(let entries):
            return try source(entries, of: key, node, reporting: &fields)
        case .string(let text):
            do throws(RepetitionValues.RangeProblem) {
                return try RepetitionValues.range(text, at: node.position)
            } catch {
                guard let message = Self.message(for: error, text) else { break }
                try fields.log.report(.invalidValue, at: node.position, text, message)
                return nil
            }
        case .null, .bool, .number: break
        }
        try fields.mismatch(node, key, Self.wantedValues(of: key))
        return nil
    }

    static func message(
        for problem: RepetitionValues.RangeProblem,
        _ text: String
    ) -> String? {
        switch problem {
        case .form: nil
        case .zeroStep: "the step of the range \(text.quoted) is 0"
        case .empty(let suggestion):
            "the step of the range \(text.quoted) leads away from its end; did you mean"
                + " \(suggestion.quoted)?"
        case .tooLong: "the range \(text.quoted) has too many values"
        }
    }

    private func isValue(
        _ node: Node,
        of key: String,
        reporting fields: inout FieldReader
    ) throws(Stop) -> Bool {
        guard let text = node.text else {
            try fields.log.report(
                .wrongType,
                at: node.position,
                node.thing,
                "each value of \(key.quoted) must be a string, a number, true or false, not"
                    + " \(node.kindName)"
            )
            return false
        }
        guard !text.hasControl else {
            try fields.log.report(
                .invalidValue,
                at: node.position,
                text,
                "the value \(text.quoted) of \(key.quoted) has a control character, and names of"
                    + " operations have none"
            )
            return false
        }
        // No element could have a name with such a value. It also bounds what a comparison costs.
        guard text.utf8.count <= fields.limits.nameBytes else {
            try fields.log.report(
                GraphFileError.Problem(
                    limit: .nameBytes,
                    value: text.utf8.count,
                    maximum: fields.limits.nameBytes,
                    at: node.position,
                    text,
                    "a value of \(key.quoted), which is a part of a name"
                )
            )
            return false
        }
        return true
    }

    // MARK: - Lines and files

    /// Reads `lines: FILE` or `files: PATTERN`.
    private func source(
        _ entries: [Node.Entry],
        of key: String,
        _ node: Node,
        reporting fields: inout FieldReader
    ) throws(Stop) -> RepetitionValues? {
        for entry in entries where !Self.sourceKeys.contains(entry.key) {
            if entry.key == Self.outputKey {
                try fields.log.report(
                    .misplacedKey,
                    at: entry.keyPosition,
                    entry.key,
                    "“output” belongs to “forEach”; the values of a “matrix” are known when the"
                        + " file is read"
                )
            } else {
                let own = key == OperationKey.forEach.name ? [Self.outputKey] : []
                try fields.unknownKey(entry, among: Self.sourceKeys + own)
            }
            return nil
        }
        guard let entry = entries.first, entries.count == 1 else {
            try fields.log.report(
                .invalidValue,
                at: node.position,
                key,
                "\(key.quoted) needs one of “lines” and “files”"
            )
            return nil
        }
        guard let base else {
            try fields.log.report(
                .unsupported,
                at: entry.keyPosition,
                entry.key,
                "\(entry.key.quoted) is read when a file is submitted, and not here: write a list,"
                    + " or the output of an operation that lists them (forEach: { output: NAME })"
            )
            return nil
        }
        let source = ElementSource(
            base: base,
            valuesMax: fields.limits.operationsPerGraph,
            position: entry.value.position
        )
        guard let texts = try texts(entry, in: source, reporting: &fields) else { return nil }
        let nodes = texts.map { Node(.string($0), at: entry.value.position) }
        for node in nodes {
            guard try isValue(node, of: entry.key, reporting: &fields) else { return nil }
        }
        return .list(nodes)
    }

    /// The texts of a source; `nil`: a problem was reported.
    private func texts(
        _ entry: Node.Entry,
        in source: ElementSource,
        reporting fields: inout FieldReader
    ) throws(Stop) -> [String]? {
        guard let names = try patterns(entry.value, entry.key, reporting: &fields) else {
            return nil
        }
        do throws(GraphFileError.Problem) {
            let isLines = entry.key == "lines"
            let texts =
                isLines ? try source.lines(of: names[0]) : try source.files(matching: names)
            if texts.isEmpty, !names.isEmpty {
                let patterns = names.map { $0.quoted }.joined(separator: ", ")
                let why = isLines ? "the file has no lines" : "no file matches"
                fields.log.warn(
                    at: entry.value.position,
                    names[0],
                    "\(entry.key.quoted) \(patterns): \(why), so this repeats nothing"
                )
            }
            return texts
        } catch {
            try fields.log.report(error)
            return nil
        }
    }

    /// The path of `lines`, or the patterns of `files`; `nil`: a problem was reported.
    private func patterns(
        _ node: Node,
        _ key: String,
        reporting fields: inout FieldReader
    ) throws(Stop) -> [String]? {
        guard key == "files", let elements = node.elements else {
            return try fields.text(node, key).map { [$0] }
        }
        var patterns: [String] = []
        for element in elements {
            guard let pattern = try fields.text(element, "files") else { return nil }
            patterns.append(pattern)
        }
        return patterns
    }
}
