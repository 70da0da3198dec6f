import OperonModel

/// The contents of a map with operation keys, an operation or the defaults, and which keys it has.
struct OperationFields {
    var description: OperationDescription
    /// The position of each dependency.
    var dependencyPositions: [Position] = []
    var keys: OperationKeys = []
    /// The settings of the process, if the operation runs one.
    var process: CommandDescription
    var input: Node?
    /// The version of the operation's input.
    var version = 1
    /// `run`, `command`, `operation`, `wait` or `external`, and its value.
    var work: (key: OperationKey, entry: Node.Entry)?

    init(directory: String?) {
        description = OperationDescription(name: "", work: .nothing)
        process = CommandDescription(arguments: [], directory: directory)
    }
}

/// Reads operations and the defaults for them.
struct OperationReader {
    var fields: FieldReader
    /// The directory to which relative directories are relative, and where processes start by
    /// default.
    let base: String?
    /// The dependencies whose condition is the default, and that say so.
    private(set) var statedDefaults: Set<Position> = []

    private var limits: Limits { fields.limits }

    init(limits: Limits, base: String?) {
        self.fields = FieldReader(limits: limits)
        self.base = base
    }

    /// Reads `defaults`: an operation without a name and without work.
    mutating func defaults(_ node: Node) throws(Stop) -> OperationFields? {
        guard let entries = node.entries else {
            if !node.isNull { try fields.mismatch(node, "defaults", "a map") }
            return nil
        }
        var result = OperationFields(directory: base)
        let known = OperationKey.allCases.filter { !OperationKey.individual.contains($0) }
        for entry in entries {
            guard let key = OperationKey.byName[entry.key] else {
                try fields.unknownKey(entry, among: known.map(\.name))
                continue
            }
            guard !OperationKey.individual.contains(key) else {
                try fields.log.report(
                    .misplacedKey,
                    at: entry.keyPosition,
                    entry.key,
                    "\(entry.key.quoted) belongs to one operation, not to the defaults"
                )
                continue
            }
            try read(key, entry, into: &result)
        }
        return result
    }

    /// Reads an operation whose name has been read already.
    mutating func operation(
        named name: String,
        nameIsKey: Bool,
        _ node: Node
    ) throws(Stop) -> OperationFields? {
        guard let entries = node.entries else {
            try fields.mismatch(node, name, "a map with what the operation does")
            return nil
        }
        var result = try partial(entries, nameIsKey: nameIsKey)
        result.description.name = name
        guard let work = try work(of: result, entries, at: node.position) else { return nil }
        result.description.work = work
        return result
    }

    /// Reads some of the entries of an operation.
    mutating func partial(
        _ entries: [Node.Entry],
        nameIsKey: Bool
    ) throws(Stop) -> OperationFields {
        var result = OperationFields(directory: base)
        for entry in entries {
            guard let key = OperationKey.byName[entry.key], key != .name || !nameIsKey else {
                try fields.unknownKey(entry, among: OperationKey.names.filter { $0 != "name" })
                continue
            }
            result.keys.insert(key)
            guard key != .name else { continue }
            try read(key, entry, into: &result)
        }
        return result
    }

    // MARK: - Keys

    private mutating func read(
        _ key: OperationKey,
        _ entry: Node.Entry,
        into result: inout OperationFields
    ) throws(Stop) {
        result.keys.insert(key)
        let node = entry.value
        switch key {
        case .name: break
        // The assembler has taken out what repeats an operation.
        case .forEach, .matrix:
            try fields.log.report(
                .misplacedKey,
                at: entry.keyPosition,
                entry.key,
                "\(entry.key.quoted) must be written as it is, not as a value of a parameter"
            )
        case .description:
            result.description.summary = try summary(node) ?? ""
        case .run, .command, .operation, .wait, .external:
            if let other = result.work {
                try fields.log.report(
                    .misplacedKey,
                    at: entry.keyPosition,
                    entry.key,
                    "\(entry.key.quoted) and \(other.key.name.quoted) cannot be combined"
                )
            } else {
                result.work = (key, entry)
            }
        case .input: result.input = node
        case .version:
            let maximum = Int(Int32.max)
            result.version = try fields.count(node, key.name, from: 1, through: maximum) ?? 1
        case .dependencies: try dependencies(node, into: &result)
        case .inFlight: result.description.inFlight = try fields.inFlight(node, key.name)
        case .cancelSiblings:
            result.description.cancelSiblings = try fields.bool(node, key.name) ?? false
        case .queue:
            if let name = try fields.name(node, key.name) { result.description.queue = name }
        case .resources:
            result.description.resources = try fields.resources(node, key.name) ?? []
        case .workers:
            result.description.workers = try fields.requirements(node, key.name) ?? []
        case .enforce:
            let isEnforced = node.isNull ? false : try fields.bool(node, key.name)
            result.description.enforcesResources = isEnforced ?? false
        case .environment, .inheritEnvironment, .directory, .grace, .memory, .cpuTime, .produces,
            .consumes, .skip:
            try readProcess(key, node, into: &result.process)
        case .priority, .qualityOfService, .timeout, .retry, .expectedDuration, .exclusive,
            .delay, .notBefore, .deadline:
            try readPolicy(key, node, into: &result.description)
        }
    }

    private mutating func readProcess(
        _ key: OperationKey,
        _ node: Node,
        into process: inout CommandDescription
    ) throws(Stop) {
        if key == .environment {
            var read = CommandDescription(arguments: [])
            if try fields.environment(node, key.name, into: &read) {
                (process.environment, process.secrets) = (read.environment, read.secrets)
            }
            try checkSize(Self.environmentBytes(of: process), "this environment", at: node.position)
        } else if key == .inheritEnvironment {
            process.inheritEnvironment = try fields.names(node, key.name) ?? []
        } else if key == .grace {
            process.grace = try fields.duration(node, key.name) ?? process.grace
        } else if key == .memory {
            process.memory = node.isNull ? nil : try fields.byteCount(node, key.name)
        } else if key == .cpuTime {
            process.cpuTime =
                node.isNull ? nil : try fields.duration(node, key.name, isPositive: true)
        } else if key == .produces {
            process.produces = try fields.paths(node, key.name) ?? []
        } else if key == .consumes {
            process.consumes = try fields.paths(node, key.name) ?? []
        } else if key == .skip {
            let word = node.isNull ? nil : try fields.word(node, key.name, ["upToDate"], { $0 })
            process.skipsIfUpToDate = word != nil
        } else if node.isNull {
            process.directory = nil
        } else if let text = try fields.text(node, key.name) {
            guard !text.isEmpty else { return try fields.mismatch(node, key.name, "a path") }
            process.directory = Path.joined(base, text)
        }
    }

    /// A null value undoes the default.
    private mutating func readPolicy(
        _ key: OperationKey,
        _ node: Node,
        into operation: inout OperationDescription
    ) throws(Stop) {
        if key == .retry {
            operation.retry = try fields.retry(node, key.name) ?? .never
        } else if key == .exclusive {
            operation.exclusive = try fields.names(node, key.name) ?? []
        } else if key == .qualityOfService {
            let value = try fields.word(node, key.name, QualityOfService.allCases, \.name)
            operation.qualityOfService = value ?? .default
        } else if node.isNull {
            return
        } else if key == .priority {
            operation.priority = try fields.priority(node, key.name)
        } else if key == .timeout {
            operation.timeout = try fields.duration(node, key.name, isPositive: true)
        } else if key == .expectedDuration {
            operation.expectedDuration = try fields.duration(node, key.name)
        } else if key == .delay {
            operation.delay = try fields.duration(node, key.name)
        } else if key == .notBefore {
            operation.notBefore = try fields.moment(node, key.name)
        } else if key == .deadline {
            operation.deadline = try fields.moment(node, key.name)
        }
    }

    private mutating func summary(_ node: Node) throws(Stop) -> String? {
        guard let text = try fields.text(node, "description") else { return nil }
        try checkSize(text.utf8.count, "this description", at: node.position)
        return text
    }

    // MARK: - Dependencies

    private mutating func dependencies(
        _ node: Node,
        into result: inout OperationFields
    ) throws(Stop) {
        guard !node.isNull else { return }
        var seen = SeenKeys<DependencyCondition>()
        if let entries = node.entries {
            for entry in entries { try dependency(entry, &seen, into: &result) }
            return
        }
        guard let elements = node.elements else {
            return try fields.mismatch(
                node,
                "dependencies",
                "a list of names, or a map from names to conditions"
            )
        }
        for element in elements {
            if let entries = element.entries {
                guard let entry = entries.first, entries.count == 1 else {
                    try fields.mismatch(
                        element,
                        "dependencies",
                        "a list of names, or of one name: condition each"
                    )
                    continue
                }
                try dependency(entry, &seen, into: &result)
            } else if let text = element.text {
                let plain = Node.Entry(
                    key: text,
                    keyPosition: element.position,
                    value: Node(.null, at: element.position)
                )
                try dependency(plain, &seen, into: &result)
            } else {
                try fields.mismatch(element, "dependencies", "a list of names")
            }
        }
    }

    private mutating func dependency(
        _ entry: Node.Entry,
        _ seen: inout SeenKeys<DependencyCondition>,
        into result: inout OperationFields
    ) throws(Stop) {
        let position = entry.keyPosition
        guard let name = try fields.name(entry.key, at: position, "dependencies"),
            let condition = try fields.condition(entry.value, of: entry.key)
        else { return }
        if let earlier = seen.insert(name, condition) {
            // A repeated edge counts once; two conditions on one edge contradict each other.
            guard earlier != condition else { return }
            return try fields.log.report(
                .duplicateKey,
                at: position,
                name,
                "the dependency \(name.quoted) is listed twice with different conditions"
            )
        }
        if condition == .unlessFailed, !entry.value.isNull { statedDefaults.insert(position) }
        result.description.dependencies.append(DependencyDescription(name, condition))
        result.dependencyPositions.append(position)
    }

    // MARK: - Work

    private mutating func work(
        of result: OperationFields,
        _ entries: [Node.Entry],
        at position: Position
    ) throws(Stop) -> Work? {
        let name = result.description.name
        guard let (key, entry) = result.work else {
            try fields.log.report(
                .missingKey,
                at: position,
                name,
                "operation \(name.quoted) has nothing to do: it needs run, command, operation,"
                    + " wait or external"
            )
            return nil
        }
        let isProcess = key == .run || key == .command
        let alien: OperationKeys = isProcess ? [] : OperationKey.process
        try misplaced(result.keys.intersection(alien), entries, name, "“run” and “command”")
        if key != .operation, key != .external {
            let place = "“operation” and “external”"
            try misplaced(result.keys.intersection([.input]), entries, name, place)
        }
        if key != .operation || entry.value.text.map(Work.reservedKinds.contains) == true {
            let place = "a registered kind"
            try misplaced(result.keys.intersection([.version]), entries, name, place)
        }
        if key == .external {
            let place = "what a worker runs"
            try misplaced(result.keys.intersection([.resources, .workers]), entries, name, place)
            return try external(entry.value, result.input)
        }
        if key == .wait { return try fields.duration(entry.value, key.name).map { .wait($0) } }
        if key == .operation {
            return try registered(entry.value, result.input, version: result.version)
        }
        try checkFiles(of: result, entries)
        try checkEnforcement(of: result, entries)
        return try command(key, entry.value, result.process)
    }

    /// Reports keys of an operation that are only allowed with another kind of work.
    private mutating func misplaced(
        _ keys: OperationKeys,
        _ entries: [Node.Entry],
        _ name: String,
        _ place: String
    ) throws(Stop) {
        guard !keys.isEmpty else { return }
        for entry in entries {
            guard let key = OperationKey.byName[entry.key], keys.contains(key) else { continue }
            try fields.log.report(
                .misplacedKey,
                at: entry.keyPosition,
                entry.key,
                "\(entry.key.quoted) of operation \(name.quoted) is only allowed with \(place)"
            )
        }
    }

    private mutating func checkFiles(
        of result: OperationFields,
        _ entries: [Node.Entry]
    ) throws(Stop) {
        func entry(_ key: OperationKey) -> Node.Entry? { entries.first { $0.key == key.name } }
        let name = result.description.name
        let process = result.process
        let count = process.produces.count + process.consumes.count
        if count > limits.operationFiles, let entry = entry(.produces) {
            try fields.log.report(
                GraphFileError.Problem(
                    limit: .operationFiles,
                    value: count,
                    maximum: limits.operationFiles,
                    at: entry.keyPosition,
                    name,
                    "operation \(name.quoted)"
                )
            )
        }
        let list = entry(.produces)?.value
        // If the list has elements, a problem with one of them was reported.
        guard process.skipsIfUpToDate, process.produces.isEmpty, let entry = entry(.skip),
            list == nil || list?.isNull == true || list?.elements?.isEmpty == true
        else { return }
        try fields.log.report(
            .missingKey,
            at: entry.keyPosition,
            entry.key,
            "“skip: upToDate” of operation \(name.quoted) needs “produces”, the files that may be"
                + " up to date"
        )
    }

    /// Without resources of its own, an operation may have those of the defaults.
    private mutating func checkEnforcement(
        of result: OperationFields,
        _ entries: [Node.Entry]
    ) throws(Stop) {
        let description = result.description
        guard description.enforcesResources, !description.resources.hasEnforceable,
            let entry = entries.first(where: { $0.key == OperationKey.enforce.name }),
            let resources = entries.first(where: { $0.key == OperationKey.resources.name })?.value
        else { return }
        let names = resources.isNull ? [] : resources.entries?.map(\.key)
        // If it names one of them, or is no map, that was reported.
        guard names?.contains(where: ResourceAmounts.enforceable.contains) == false else { return }
        try fields.log.report(
            .missingKey,
            at: entry.keyPosition,
            entry.key,
            "“enforce” of operation \(description.name.quoted) needs “cpus” or “memory” in its "
                + "“resources”"
        )
    }

    private mutating func command(
        _ key: OperationKey,
        _ node: Node,
        _ process: CommandDescription
    ) throws(Stop) -> Work? {
        var command = process
        if key == .run {
            guard let line = try fields.text(node, key.name) else { return nil }
            guard !line.isBlank else {
                try fields.mismatch(node, key.name, "a line for the shell")
                return nil
            }
            command.arguments = CommandDescription.shell(line)
        } else {
            guard let elements = node.elements, !elements.isEmpty else {
                try fields.mismatch(node, key.name, "a list: a program and its arguments")
                return nil
            }
            for element in elements {
                guard let argument = try fields.text(element, key.name) else { return nil }
                command.arguments.append(argument)
            }
            guard command.arguments[0] != "" else {
                try fields.mismatch(elements[0], key.name, "a program and its arguments")
                return nil
            }
        }
        var bytes = command.arguments.reduce(0) { $0 + $1.utf8.count + 1 }
        bytes += Self.environmentBytes(of: command)
        bytes += (command.produces + command.consumes).reduce(0) { $0 + $1.utf8.count + 1 }
        try checkSize(bytes, "this command with its environment", at: node.position)
        return .command(command)
    }

    private mutating func registered(
        _ node: Node,
        _ input: Node?,
        version: Int
    ) throws(Stop) -> Work? {
        guard let kind = try fields.name(node, "operation") else { return nil }
        switch kind {
        case Work.commandKind:
            try fields.mismatch(
                node,
                "operation",
                "a registered kind; processes have run or command"
            )
            return nil
        case Work.externalKind:
            try fields.mismatch(
                node,
                "operation",
                "a registered kind; an externally completed operation has external: true"
            )
            return nil
        case Work.nothingKind:
            guard let input, !input.isNull, input.entries?.isEmpty != true else { return .nothing }
            try fields.mismatch(input, "input", "empty for an operation that does nothing")
            return nil
        case Work.waitKind:
            guard let entries = input?.entries, entries.count == 1,
                let entry = entries.first, entry.key == "duration"
            else {
                try fields.mismatch(
                    input ?? Node(.null, at: node.position),
                    "input",
                    "{duration: …} for an operation that waits"
                )
                return nil
            }
            return try fields.duration(entry.value, entry.key).map { .wait($0) }
        default:
            guard
                var payload = try input.map({ (node) throws(Stop) in try self.payload(node) })
                    ?? .empty
            else { return nil }
            payload.contentType = Payload.json(version: version)
            return .registered(kind: kind, input: payload)
        }
    }

    private mutating func external(_ node: Node, _ input: Node?) throws(Stop) -> Work? {
        guard node.bool == true else {
            try fields.mismatch(node, "external", "true")
            return nil
        }
        guard let input else { return .external(input: .empty) }
        return try payload(input).map { .external(input: $0) }
    }

    private mutating func payload(_ node: Node) throws(Stop) -> Payload? {
        var bytes: [UInt8] = []
        if let wrong = JSONText.append(node, to: &bytes, bytesMax: limits.payloadBytes) {
            try fields.mismatch(wrong, "input", "JSON, which has finite numbers only")
            return nil
        }
        try checkSize(bytes.count, "this input", at: node.position)
        return Payload(bytes: bytes)
    }

    private static func environmentBytes(of command: CommandDescription) -> Int {
        func bytes(_ variables: [String: String]) -> Int {
            variables.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 2 }
        }
        return bytes(command.environment) + bytes(command.secrets)
    }

    private mutating func checkSize(
        _ bytes: Int,
        _ what: String,
        at position: Position
    ) throws(Stop) {
        guard bytes > limits.payloadBytes else { return }
        try fields.log.report(
            GraphFileError.Problem(
                limit: .payloadBytes,
                value: bytes,
                maximum: limits.payloadBytes,
                at: position,
                "",
                what
            )
        )
    }
}
