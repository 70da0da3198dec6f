package import OperonModel

/// Reads and writes trigger files: YAML or JSON, one trigger each.
package enum TriggerFile {
    static let keys = [
        "name", "graph", "set", "on", "overlap", "missed", "coalesce", "merge", "until", "limit",
        "priority", "queue", "onRemove",
    ]

    /// Reads a file, and the graph files that it names.
    ///
    /// - Parameter zoneProblem: Says what is wrong with the name of a time zone; `nil`: nothing.
    ///   Without it, every name is taken.
    /// - Throws: everything that is wrong with the trigger, up to 20 problems, or with a graph.
    package static func read(
        path: String,
        limits: Limits = Limits(),
        zoneProblem: ((String) -> String?)? = nil
    ) throws(GraphFileError) -> TriggerDescription {
        let bytes: [UInt8]
        do throws(Stop) {
            let source = try ByteSource(path: path, bytesMax: Limits.triggerBytes)
            bytes = try source.readAll()
        } catch {
            throw GraphFileError.unfound(error, file: path)
        }
        let base = Path.directory(of: path)
        var reader = TriggerReader(limits: limits, base: base)
        reader.zoneProblem = zoneProblem
        return try read(bytes, file: path, format: nil, &reader)
    }

    /// Whether a file that is no graph is meant as a trigger: a map with “on” and no operations. A
    /// file that cannot be read a second time is none.
    package static func isMeant(by path: String, limits: Limits = Limits()) -> Bool {
        // Opening a pipe would wait for somebody who writes to it.
        guard ByteSource.isFile(path) else { return false }
        do throws(Stop) {
            let source = try ByteSource(path: path, bytesMax: Limits.triggerBytes)
            let bytes = try source.readAll()
            let known = GraphFileFormat(suffixOf: path) ?? GraphFileFormat(contentOf: bytes)
            let root =
                known == .yaml
                ? try YAMLReader.value(bytes, limits: limits).0
                : try JSONReader.value(bytes, limits: limits).0
            let keys = Set((root.entries ?? []).map(\.key))
            return keys.contains("on") && !keys.contains("operations")
        } catch {
            return false
        }
    }

    /// Reads the bytes of a file in which the graphs are texts.
    package static func read(
        _ bytes: [UInt8],
        file: String,
        format: GraphFileFormat?,
        limits: Limits = Limits()
    ) throws(GraphFileError) -> TriggerDescription {
        var reader = TriggerReader(limits: limits, base: nil)
        return try read(bytes, file: file, format: format, &reader)
    }

    private static func read(
        _ bytes: [UInt8],
        file: String,
        format: GraphFileFormat?,
        _ reader: inout TriggerReader
    ) throws(GraphFileError) -> TriggerDescription {
        let limits = reader.fields.limits
        var stop: Stop?
        var trigger: TriggerDescription?
        do throws(Stop) {
            guard bytes.count <= Limits.triggerBytes else {
                throw .problem(
                    GraphFileError.Problem(
                        .limitExceeded,
                        at: .none,
                        "",
                        "the trigger has \(bytes.count) bytes, and may have \(Limits.triggerBytes)"
                    )
                )
            }
            let known = format ?? GraphFileFormat(suffixOf: file)
            let (root, findings) =
                switch known ?? GraphFileFormat(contentOf: bytes) {
                case .yaml: try YAMLReader.value(bytes, limits: limits)
                case .json, .jsonLines: try JSONReader.value(bytes, limits: limits)
                }
            for finding in findings { try reader.fields.log.report(finding) }
            trigger = try reader.read(root)
        } catch {
            stop = error
        }
        if let error = reader.fields.log.error(after: stop, file: file) { throw error }
        guard let trigger else { throw GraphFileError.unfound(.reported, file: file) }
        return trigger
    }
}

/// Reads the keys of a trigger.
struct TriggerReader {
    var fields: FieldReader
    /// The directory to which paths of graphs are relative; `nil`: graphs are texts.
    let base: String?
    /// Says what is wrong with the name of a time zone.
    var zoneProblem: ((String) -> String?)?
    /// Who watches the source, as far as it was read.
    var watcher = TriggerWatcher.coordinator

    init(limits: Limits, base: String?) {
        fields = FieldReader(limits: limits)
        self.base = base
    }

    /// - Returns: `nil`: a problem was reported.
    mutating func read(_ root: Node) throws(Stop) -> TriggerDescription? {
        guard let entries = root.entries else {
            throw .problem(
                GraphFileError.Problem(
                    .wrongType,
                    at: root.position,
                    root.thing,
                    "a trigger is a map with “name”, “on” and “graph”, not \(root.kindName)"
                )
            )
        }
        var name: String?
        var source: FiringSource?
        var graph: TriggerGraph?
        var draft = TriggerDescription(
            name: "",
            source: .event,
            graph: TriggerGraph(file: "", contentType: "", text: "")
        )
        var found: [String: Position] = [:]
        var values: Node?
        for entry in entries where entry.key != GraphAssembler.schemaKey {
            found[entry.key] = entry.keyPosition
            switch entry.key {
            case "name": name = try fields.name(entry.value, "name")
            case "on": source = try self.source(entry)
            case "graph": graph = try self.graph(entry)
            case "onRemove": draft.onRemove = try self.graph(entry)
            case "set":
                draft.parameters = try parameters(entry) ?? "{}"
                values = entry.value
            default: try policy(entry, of: &draft)
            }
        }
        for key in ["name", "on", "graph"] where found[key] == nil {
            try fields.log.report(
                .missingKey,
                at: root.position,
                key,
                "the trigger has no “\(key)”"
            )
        }
        guard let name, let source, let graph else { return nil }
        draft.name = name
        draft.source = source
        draft.graph = graph
        draft.watcher = watcher
        try check(draft, found)
        // A store may have a trigger from before these checks: its firings are refused.
        if let values, base != nil {
            if source.isTimer { try EventValues.checkData(values, reporting: &fields) }
            if fields.log.problems.isEmpty {
                for problem in GraphFileCodec.problems(with: values, of: graph) {
                    try fields.log.report(problem)
                }
            }
        }
        return fields.log.problems.isEmpty ? draft : nil
    }

    private mutating func policy(
        _ entry: Node.Entry,
        of draft: inout TriggerDescription
    ) throws(Stop) {
        let node = entry.value
        let key = entry.key
        switch key {
        case "overlap":
            draft.policy.overlap =
                try fields.word(node, key, TriggerOverlap.allCases, \.rawValue) ?? .allow
        case "missed":
            draft.policy.missed =
                try fields.word(node, key, MissedTicks.allCases, \.rawValue) ?? .once
        case "merge":
            draft.policy.merge = try fields.word(node, key, EventMerge.allCases, \.rawValue)
        case "coalesce":
            draft.policy.coalesce = try fields.duration(node, key, isPositive: true)
        case "until": draft.policy.until = try fields.moment(node, key)
        case "limit":
            draft.policy.limit = try fields.count(node, key, from: 1, through: Int(Int32.max))
                .map { UInt64($0) }
        case "priority": draft.priority = try fields.priority(node, key)
        case "queue": draft.queue = try fields.name(node, key)
        default: try fields.unknownKey(entry, among: TriggerFile.keys)
        }
    }

    /// Checks what two keys say together.
    private mutating func check(
        _ draft: TriggerDescription,
        _ found: [String: Position]
    ) throws(Stop) {
        if let position = found["missed"], !draft.source.isTimer {
            try fields.log.report(
                .misplacedKey,
                at: position,
                "missed",
                "“missed” is for ticks, and “\(draft.source.kind)” has none"
            )
        }
        if let position = found["merge"], draft.source.isTimer {
            try fields.log.report(
                .misplacedKey,
                at: position,
                "merge",
                "“merge” is for data, and ticks have none"
            )
        }
        if let position = found["merge"], draft.source != .event, !draft.source.isTimer,
            draft.policy.merge == .add || draft.policy.merge == .or
        {
            try fields.log.report(
                .invalidValue,
                at: position,
                "merge",
                "“merge” is replace or collect here: “\(draft.source.kind)” gives no number"
            )
        }
        try checkMerge(draft, found)
    }

    /// Nothing that a watched source reports is merged unless that is asked for.
    private mutating func checkMerge(
        _ draft: TriggerDescription,
        _ found: [String: Position]
    ) throws(Stop) {
        guard let position = found["coalesce"], draft.source.watched != nil,
            draft.policy.merge == nil
        else { return }
        try fields.log.report(
            .missingKey,
            at: position,
            "coalesce",
            "“coalesce” needs “merge” here: collect for a list of all, replace for the last one"
        )
    }

    // MARK: - Graphs and parameters

    /// A path, or a map with the text.
    private mutating func graph(_ entry: Node.Entry) throws(Stop) -> TriggerGraph? {
        if let path = entry.value.text {
            guard let base else {
                try fields.mismatch(
                    entry.value,
                    entry.key,
                    "a map with “text” and “contentType” here, where no file is beside it"
                )
                return nil
            }
            return try graph(at: path, in: base, entry)
        }
        guard let entries = entry.value.entries else {
            try fields.mismatch(entry.value, entry.key, "the path of a graph file")
            return nil
        }
        var texts: [String: String] = [:]
        let known = ["text", "contentType", "file", "directory"]
        for part in entries {
            guard known.contains(part.key) else {
                try fields.unknownKey(part, among: known)
                continue
            }
            texts[part.key] = try fields.text(part.value, part.key)
        }
        guard let text = texts["text"] else {
            try fields.log.report(
                .missingKey,
                at: entry.keyPosition,
                entry.key,
                "\(entry.key.quoted) needs “text”, the text of a graph file"
            )
            return nil
        }
        let type = texts["contentType"] ?? "application/yaml"
        guard GraphFileFormat(contentType: type) != nil else {
            try fields.log.report(
                .invalidValue,
                at: entry.keyPosition,
                type,
                "“contentType” must be application/yaml, application/json or application/jsonl"
            )
            return nil
        }
        if let directory = texts["directory"], !directory.hasPrefix("/") {
            try fields.log.report(
                .invalidValue,
                at: entry.keyPosition,
                directory,
                "“directory” must be an absolute path, not \(directory.quoted)"
            )
            return nil
        }
        return TriggerGraph(
            file: texts["file"].flatMap { $0.isEmpty ? nil : $0 } ?? "graph",
            contentType: type,
            text: text,
            directory: texts["directory"]
        )
    }

    private mutating func graph(
        at path: String,
        in base: String,
        _ entry: Node.Entry
    ) throws(Stop) -> TriggerGraph? {
        let full = Path.joined(base, path)
        let bytes: [UInt8]
        do throws(Stop) {
            let source = try ByteSource(path: full, bytesMax: Limits.triggerBytes)
            bytes = try source.readAll()
        } catch {
            guard case .problem(let problem) = error else { throw error }
            try fields.log.report(
                problem.code,
                at: entry.value.position,
                path,
                "\(entry.key.quoted) \(path.quoted): \(problem.message)"
            )
            return nil
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            try fields.log.report(
                .syntax,
                at: entry.value.position,
                path,
                "\(path.quoted) is not UTF-8"
            )
            return nil
        }
        let format = GraphFileFormat(suffixOf: full) ?? GraphFileFormat(contentOf: bytes)
        return TriggerGraph(
            file: path,
            contentType: format.contentType,
            text: text,
            directory: Path.directory(of: full)
        )
    }

    private mutating func parameters(_ entry: Node.Entry) throws(Stop) -> String? {
        guard entry.value.entries != nil else {
            if entry.value.isNull { return "{}" }
            try fields.mismatch(entry.value, entry.key, "a map from names to values")
            return nil
        }
        try EventValues.check(entry.value, reporting: &fields)
        var out: [UInt8] = []
        let bytesMax = Limits.triggerDataBytes
        if let wrong = JSONText.append(entry.value, to: &out, bytesMax: bytesMax) {
            try fields.mismatch(wrong, entry.key, "values that JSON knows")
            return nil
        }
        guard out.count <= bytesMax else {
            try fields.log.report(
                .limitExceeded,
                at: entry.keyPosition,
                entry.key,
                "“set” has \(out.count) bytes or more, and may have \(bytesMax)"
            )
            return nil
        }
        return String(decoding: out, as: UTF8.self)
    }
}

extension GraphFileFormat {
    var contentType: String {
        switch self {
        case .yaml: "application/yaml"
        case .json: "application/json"
        case .jsonLines: "application/jsonl"
        }
    }
}
