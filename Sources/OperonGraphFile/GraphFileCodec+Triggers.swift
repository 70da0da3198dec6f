package import OperonModel
import OperonPorts

extension GraphFileCodec: TriggerCodec {
    /// The content type that `encode` writes for a trigger.
    package static let triggerContentType = "application/json"

    package func encode(_ trigger: TriggerDescription) -> [UInt8] {
        TriggerText(trigger).bytes
    }

    package func decodeTrigger(
        _ bytes: [UInt8],
        contentType: String
    ) throws -> TriggerDescription {
        guard let format = GraphFileFormat(contentType: contentType), format != .jsonLines else {
            throw GraphFileError(problems: [
                GraphFileError.Problem(
                    .unsupported,
                    at: .none,
                    contentType,
                    "\(contentType.quoted) is no trigger: it is application/json or "
                        + "application/yaml"
                )
            ])
        }
        return try TriggerFile.read(bytes, file: "trigger", format: format)
    }

    package func checkData(_ json: [UInt8]) throws {
        // In an event, data are one level deep, and another one in a list of several. Alone, they
        // are one value.
        let nested = Array("[[".utf8) + json + Array("]]".utf8)
        do throws(Stop) {
            for text in [json, nested] {
                let (_, findings) = try JSONReader.value(text, limits: Limits())
                if let finding = findings.first { throw .problem(finding) }
            }
        } catch {
            throw GraphFileError.unfound(error, file: "data")
        }
    }

    package func graph(
        _ graph: TriggerGraph,
        parameters: String,
        event: String
    ) throws -> GraphDescription {
        let limits = Limits()
        let written: Node
        let expanded: Node
        do throws(Stop) {
            let (event, _) = try JSONReader.value(Array(event.utf8), limits: limits)
            written = try JSONReader.value(Array(parameters.utf8), limits: limits).0
            expanded = try EventValues(event: event).expanded(written)
        } catch {
            let error = GraphFileError.unfound(error, file: Self.values)
            throw TriggerValuesError("\(Self.unplaced(error))")
        }
        do throws(GraphFileError) {
            return try Self.read(graph, written, expanded)
        } catch {
            let error = Self.unplaced(error)
            if error.problems.contains(where: { $0.code == .unsafeValue }) {
                throw UnsafeEventError("\(error)")
            }
            guard error.problems.allSatisfy({ $0.file == Self.values }) else { throw error }
            throw TriggerValuesError("\(error)")
        }
    }

    package func unknownParameters(_ parameters: String, of graph: TriggerGraph) -> [String] {
        // What cannot be read is told by whoever reads it.
        guard let (values, _) = try? JSONReader.value(Array(parameters.utf8), limits: Limits())
        else { return [] }
        let unknown = Self.valueProblems(values, graph).filter { $0.code == .unknownKey }
        return Self.unplaced(GraphFileError(problems: unknown)).problems.map(\.description)
    }

    /// Reads the graph of a trigger.
    ///
    /// - Parameters:
    ///   - written: The values of its parameters as the trigger has them.
    ///   - values: The same values with the parts of an event in them.
    private static func read(
        _ graph: TriggerGraph,
        _ written: Node,
        _ values: Node
    ) throws(GraphFileError) -> GraphDescription {
        let limits = Limits()
        let bytes = Array(graph.text.utf8)
        var options = GraphFileOptions(limits: limits, directory: graph.directory)
        options.readsFiles = false
        options.isOfTrigger = true
        options.expandedBytesMax = min(limits.graphFileBytes, (1 << 20) + 16 * bytes.count)
        options.parameters = zip(written.entries ?? [], values.entries ?? []).map {
            ParameterAssignment(
                $1,
                source: Self.values,
                directory: graph.directory,
                origin: EventValues.isForeign($0.value) ? .outside(.event) : .submitter
            )
        }
        return try GraphFile.read(
            bytes: bytes,
            file: graph.file == Self.values ? "./" + graph.file : graph.file,
            format: GraphFileFormat(contentType: graph.contentType),
            options: options
        ).graph
    }

    /// What is wrong with the values of a trigger, at their places in its file, as far as it is
    /// known before an event: all of it if they have no parts of one, otherwise the names that the
    /// graph does not know. What is wrong with the graph itself is not among it.
    static func problems(with values: Node, of graph: TriggerGraph) -> [GraphFileError.Problem] {
        let hasEvent = EventValues.hasReference(values)
        return valueProblems(values, graph).filter { !hasEvent || $0.code == .unknownKey }
            .map { problem in
                var problem = problem
                problem.file = ""
                problem.message = "“set”: \(problem.message)"
                return problem
            }
    }

    /// What is wrong with values as a trigger has them. Parts of an event stay as they are written.
    private static func valueProblems(
        _ values: Node,
        _ graph: TriggerGraph
    ) -> [GraphFileError.Problem] {
        let nothing = EventValues(event: Node(.null, at: .none))
        do throws(GraphFileError) {
            _ = try read(graph, values, (try? nothing.expanded(values)) ?? values)
            return []
        } catch {
            return error.problems.filter { $0.file == Self.values }
        }
    }

    /// What errors call the place of the values.
    private static let values = "set"

    /// The values are those of a trigger, which was read before: they have no place in a file.
    private static func unplaced(_ error: GraphFileError) -> GraphFileError {
        GraphFileError(
            problems: error.problems.map { problem in
                var problem = problem
                if problem.file == values { (problem.line, problem.column) = (0, 0) }
                return problem
            }
        )
    }
}

/// A trigger as JSON: every key in one order, and those that have their default left out.
struct TriggerText {
    private(set) var bytes: [UInt8] = []
    private var isFirst = true

    init(_ trigger: TriggerDescription) {
        open()
        text("name", trigger.name)
        key("on")
        source(trigger.source, trigger.watcher)
        isFirst = false
        key("graph")
        graph(trigger.graph)
        isFirst = false
        if trigger.parameters != "{}" { raw("set", trigger.parameters) }
        let policy = trigger.policy
        let usual = TriggerPolicy()
        if policy.overlap != usual.overlap { text("overlap", policy.overlap.rawValue) }
        if policy.missed != usual.missed { text("missed", policy.missed.rawValue) }
        if let merge = policy.merge { text("merge", merge.rawValue) }
        if let window = policy.coalesce { text("coalesce", DurationText.text(window)) }
        if let until = policy.until { text("until", DateText.text(until)) }
        if let limit = policy.limit { raw("limit", String(limit)) }
        if let priority = trigger.priority { text("priority", priority.name) }
        if let queue = trigger.queue { text("queue", queue) }
        if let last = trigger.onRemove {
            key("onRemove")
            graph(last)
        }
        close()
    }

    private mutating func source(_ source: FiringSource, _ watcher: TriggerWatcher) {
        open()
        key(source.kind)
        open()
        switch source {
        case .every(let every):
            text("interval", DurationText.text(every.interval))
            if let start = every.startAt { text("startAt", DateText.text(start)) }
            if every.leeway > .zero { text("leeway", DurationText.text(every.leeway)) }
        case .cron(let cron):
            text("expression", cron.expression.text)
            text("timezone", cron.timezone)
            if cron.leeway > .zero { text("leeway", DurationText.text(cron.leeway)) }
        case .event: break
        case .watched(let source): watched(source)
        case .graph(let graph):
            text("name", graph.name)
            guard !graph.outcomes.isEmpty else { break }
            raw("outcomes", Self.list(graph.outcomes.map(\.name)))
        case .webhook(let webhook):
            text("signature", webhook.signature.rawValue)
            switch webhook.secret {
            case .file(let path): text("secretFile", path)
            case .environment(let name): text("secretEnvironment", name)
            }
            if webhook.signature == .stripe {
                text("tolerance", DurationText.text(webhook.tolerance))
            }
            raw("bodyBytes", String(webhook.bodyBytes))
            raw("perMinute", String(webhook.perMinute))
        }
        close()
        if case .workers(let requirements) = watcher {
            key("workers")
            open()
            for one in requirements { raw(one.label, Self.condition(one.condition)) }
            close()
        }
        close()
    }

    private static func condition(_ condition: WorkerRequirement.Condition) -> String {
        switch condition {
        case .oneOf(let values): list(values)
        case .noneOf(let values): "{\"notIn\":\(list(values))}"
        case .exists(let exists): "{\"exists\":\(exists)}"
        }
    }

    private mutating func watched(_ source: WatchedSource) {
        switch source {
        case .file(let file):
            text("path", file.path)
            if let pattern = file.pattern { text("pattern", pattern) }
            raw("on", Self.list(file.changeNames))
        case .pipe(let path): text("path", path)
        case .program(let arguments): raw("command", Self.list(arguments))
        case .signal(let name): text("name", name)
        case .process(.number(let number)): raw("pid", String(number))
        case .process(.identity(let identity)): text("identity", identity)
        case .process(.file(let path)): text("pidFile", path)
        case .message(let queue): text("queue", queue)
        }
    }

    private static func list(_ texts: [String]) -> String {
        let quoted = texts.map { String(decoding: JSONString.quoted($0), as: UTF8.self) }
        return "[" + quoted.joined(separator: ",") + "]"
    }

    private mutating func graph(_ graph: TriggerGraph) {
        open()
        text("file", graph.file)
        text("contentType", graph.contentType)
        if let directory = graph.directory { text("directory", directory) }
        text("text", graph.text)
        close()
    }

    private mutating func open() {
        bytes.append(Byte.openBrace)
        isFirst = true
    }

    private mutating func close() {
        bytes.append(Byte.closeBrace)
        isFirst = false
    }

    private mutating func key(_ key: String) {
        if !isFirst { bytes.append(Byte.comma) }
        isFirst = false
        JSONString.append(key, to: &bytes)
        bytes.append(Byte.colon)
    }

    private mutating func text(_ name: String, _ value: String) {
        key(name)
        JSONString.append(value, to: &bytes)
    }

    private mutating func raw(_ name: String, _ json: String) {
        key(name)
        bytes += json.utf8
    }
}
