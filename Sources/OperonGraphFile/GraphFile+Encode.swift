package import OperonModel

extension GraphFile {
    /// Writes a graph as a JSON graph file. Keys have a fixed order, defaults are left out, and
    /// each operation is one line. The same graph gives the same bytes, and reading them gives the
    /// same graph.
    ///
    /// A JSON input is written as JSON; reading it back drops its white space.
    /// - Throws: the first thing that a graph file cannot represent; see `WritingCheck`.
    package static func encodeJSON(_ graph: GraphDescription) throws(GraphFileError) -> [UInt8] {
        do throws(Refusal) {
            try GraphFileCodec().check(graph)
        } catch {
            let problem = GraphFileError.Problem(.unsupported, at: .none, "", "\(error)")
            let file = graph.name.isEmpty ? "graph" : graph.name
            throw GraphFileError.unfound(.problem(problem), file: file)
        }
        var writer = GraphWriter()
        writer.write(graph)
        return writer.out
    }
}

/// Writes the text of a graph, key by key.
struct GraphWriter {
    private(set) var out: [UInt8] = []
    private var isFirst = true
    /// The external operations of a graph that is written as a whole. A dependency on one without
    /// a condition is read with a warning, so each says its condition.
    private var external: Set<String> = []

    init() {}

    /// Returns the text that was written since the last call.
    mutating func take() -> [UInt8] {
        defer { out.removeAll(keepingCapacity: true) }
        return out
    }

    /// The first line of a graph in JSON Lines: everything but its operations.
    mutating func writeHeader(_ graph: GraphDescription) {
        begin()
        if !graph.name.isEmpty { text("name", graph.name) }
        if graph.order != .criticalPath { text("order", graph.order.name) }
        if !graph.queues.isEmpty {
            raw("queues", "{")
            for (index, queue) in graph.queues.enumerated() {
                if index > 0 { out += ", ".utf8 }
                JSONString.append(queue.name, to: &out)
                out += ": ".utf8
                write(queue)
            }
            end()
            // Writing the settings of a queue has set it.
            isFirst = false
        }
        if !graph.keys.isEmpty {
            raw("keys", "{")
            for (index, key) in graph.keys.enumerated() {
                if index > 0 { out += ", ".utf8 }
                write(key)
            }
            end()
            isFirst = false
        }
        end()
        out.append(Byte.newline)
    }

    /// An operation as a line of JSON Lines.
    mutating func writeLine(_ operation: OperationDescription) {
        begin()
        text("name", operation.name)
        writeKeys(operation)
        end()
        out.append(Byte.newline)
    }

    mutating func write(_ graph: GraphDescription) {
        external = Set(graph.operations.lazy.filter(\.work.isExternal).map(\.name))
        out += "{\n".utf8
        if !graph.name.isEmpty {
            out += "\"name\": ".utf8
            JSONString.append(graph.name, to: &out)
            out += ",\n".utf8
        }
        if graph.order != .criticalPath {
            out += "\"order\": ".utf8
            JSONString.append(graph.order.name, to: &out)
            out += ",\n".utf8
        }
        if !graph.queues.isEmpty {
            out += "\"queues\": {".utf8
            for (index, queue) in graph.queues.enumerated() {
                out += (index == 0 ? "\n" : ",\n").utf8
                JSONString.append(queue.name, to: &out)
                out += ": ".utf8
                write(queue)
            }
            out += "\n},\n".utf8
        }
        if !graph.keys.isEmpty {
            out += "\"keys\": {".utf8
            for (index, key) in graph.keys.enumerated() {
                out += (index == 0 ? "\n" : ",\n").utf8
                write(key)
            }
            out += "\n},\n".utf8
        }
        out += "\"operations\": {".utf8
        for (index, operation) in graph.operations.enumerated() {
            out += (index == 0 ? "\n" : ",\n").utf8
            JSONString.append(operation.name, to: &out)
            out += ": ".utf8
            write(operation)
        }
        out += "\n}\n}\n".utf8
    }

    private mutating func write(_ queue: QueueSettings) {
        begin()
        if let count = queue.maxConcurrentOperationCount {
            raw("maxConcurrentOperationCount", String(count))
        }
        if queue.isSuspended { raw("isSuspended", "true") }
        if queue.priority != .normal { text("priority", queue.priority.name) }
        if let rate = queue.rate { write(rate) }
        end()
    }

    private mutating func write(_ key: KeySettings) {
        JSONString.append(key.name, to: &out)
        out += ": ".utf8
        begin()
        raw("limit", String(key.limit))
        if let rate = key.rate { write(rate) }
        end()
    }

    private mutating func write(_ rate: StartRate) {
        text("rate", rate.text)
        raw("burst", String(rate.burst))
    }

    private mutating func write(_ operation: OperationDescription) {
        begin()
        writeKeys(operation)
        end()
    }

    private mutating func writeKeys(_ operation: OperationDescription) {
        if !operation.summary.isEmpty { text("description", operation.summary) }
        write(operation.work)
        if !operation.dependencies.isEmpty { write(operation.dependencies) }
        if operation.cancelSiblings { raw("cancelSiblings", "true") }
        if operation.queue != QueueSettings.defaultName { text("queue", operation.queue) }
        if let priority = operation.priority { text("priority", priority.name) }
        if operation.qualityOfService != .default {
            text("qualityOfService", operation.qualityOfService.name)
        }
        if let timeout = operation.timeout { text("timeout", DurationText.text(timeout)) }
        if operation.retry != .never { write(operation.retry) }
        if let expected = operation.expectedDuration {
            text("expectedDuration", DurationText.text(expected))
        }
        if !operation.exclusive.isEmpty { raw("exclusive", list(operation.exclusive)) }
        if let inFlight = operation.inFlight {
            let group = JSONText.string(inFlight.group)
            raw("inFlight", "{\"group\": \(group), \"limit\": \(inFlight.limit)}")
        }
        if let delay = operation.delay { text("delay", DurationText.text(delay)) }
        if let moment = operation.notBefore { text("notBefore", DateText.text(moment)) }
        if let moment = operation.deadline { text("deadline", DateText.text(moment)) }
        if !operation.resources.isEmpty { write(operation.resources) }
        if !operation.workers.isEmpty { write(operation.workers) }
        if operation.enforcesResources { raw("enforce", "true") }
        if case .command(let command) = operation.work { write(command) }
    }

    private mutating func write(_ resources: ResourceAmounts) {
        let amounts = resources.all.map { one in
            let amount = ResourceText.text(one.amount, of: one.name)
            let isText = one.name == ResourceAmount.memoryName
            return JSONText.string(one.name) + ": " + (isText ? JSONText.string(amount) : amount)
        }
        raw("resources", "{" + amounts.joined(separator: ", ") + "}")
    }

    private mutating func write(_ requirements: [WorkerRequirement]) {
        let items = requirements.map { requirement in
            let condition =
                switch requirement.condition {
                case .oneOf(let values): list(values)
                case .noneOf(let values): "{\"notIn\": " + list(values) + "}"
                case .exists(let exists): "{\"exists\": \(exists)}"
                }
            return JSONText.string(requirement.label) + ": " + condition
        }
        raw("workers", "{" + items.joined(separator: ", ") + "}")
    }

    private mutating func write(_ work: Work) {
        switch work {
        case .nothing: text("operation", Work.nothingKind)
        case .wait(let duration): text("wait", DurationText.text(duration))
        case .command(let command):
            let arguments = command.arguments
            let line = arguments.last ?? ""
            if arguments == CommandDescription.shell(line), !line.isBlank {
                text("run", line)
            } else {
                raw("command", list(arguments))
            }
        case .registered(let kind, let input):
            text("operation", kind)
            write(input)
            if let version = input.version, version != 1 { raw("version", String(version)) }
        case .external(let input):
            raw("external", "true")
            write(input)
        }
    }

    private mutating func write(_ input: Payload) {
        guard !input.isEmpty else { return }
        raw("input", "")
        // A line end in JSON is white space, but would end a line of JSON Lines.
        out += input.bytes.map { $0 == Byte.newline || $0 == 0x0D ? 0x20 : $0 }
    }

    /// Writes the settings of a process besides its arguments. The directory is always written,
    /// because its default differs from file to file.
    private mutating func write(_ command: CommandDescription) {
        if !command.environment.isEmpty || !command.secrets.isEmpty {
            let values = command.environment.map { ($0.key, JSONText.string($0.value)) }
            let secrets = command.secrets.map { variable in
                (variable.key, "{\"secret\": " + JSONText.string(variable.value) + "}")
            }
            let pairs = (values + secrets).sorted { $0.0 < $1.0 }
                .map { JSONText.string($0.0) + ": " + $0.1 }
            raw("environment", "{" + pairs.joined(separator: ", ") + "}")
        }
        if command.inheritEnvironment != CommandDescription.defaultInheritEnvironment {
            raw("inheritEnvironment", list(command.inheritEnvironment))
        }
        raw("directory", command.directory.map(JSONText.string) ?? "null")
        if command.grace != CommandDescription.defaultGrace {
            text("grace", DurationText.text(command.grace))
        }
        if let memory = command.memory { text("memory", ByteCountText.text(memory)) }
        if let cpuTime = command.cpuTime { text("cpuTime", DurationText.text(cpuTime)) }
        if !command.produces.isEmpty { raw("produces", list(command.produces)) }
        if !command.consumes.isEmpty { raw("consumes", list(command.consumes)) }
        if command.skipsIfUpToDate { text("skip", "upToDate") }
    }

    private mutating func write(_ dependencies: [DependencyDescription]) {
        let items = dependencies.map { [external] dependency in
            let elements = dependency.takesElements ? RepeatedNames.eachSuffix : ""
            let name = JSONText.string(dependency.name + elements)
            guard dependency.condition != .unlessFailed || external.contains(dependency.name)
            else { return name }
            return "{" + name + ": " + JSONText.string(dependency.condition.name) + "}"
        }
        raw("dependencies", "[" + items.joined(separator: ", ") + "]")
    }

    private mutating func write(_ retry: RetryPolicy) {
        let keys = [
            "\"limit\": \(retry.limit)",
            "\"delay\": " + JSONText.string(DurationText.text(retry.delay)),
            "\"factor\": \(retry.factor)",
            "\"maxDelay\": " + JSONText.string(DurationText.text(retry.maxDelay)),
            "\"jitter\": \(retry.jitter)",
        ]
        raw("retry", "{" + keys.joined(separator: ", ") + "}")
    }

    // MARK: - Keys

    private mutating func begin() {
        out.append(Byte.openBrace)
        isFirst = true
    }

    private mutating func end() { out.append(Byte.closeBrace) }

    private mutating func text(_ key: String, _ value: String) { raw(key, JSONText.string(value)) }

    private mutating func raw(_ key: String, _ value: String) {
        if !isFirst { out += ", ".utf8 }
        isFirst = false
        out += ("\"" + key + "\": " + value).utf8
    }

    private func list(_ texts: [String]) -> String {
        "[" + texts.map(JSONText.string).joined(separator: ", ") + "]"
    }
}
