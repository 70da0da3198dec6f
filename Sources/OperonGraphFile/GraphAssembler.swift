import OperonModel

/// Builds a graph from the parts of a file, in any order.
struct GraphAssembler {
    static let rootKeys = [
        "name", "parameters", "order", "queues", "keys", "defaults", "operations",
    ]
    /// The key that names the JSON Schema for editors; ignored here.
    static let schemaKey = "$schema"
    static let parametersKey = "parameters"

    var reader: OperationReader
    /// Whether repeated operations may read files of this machine.
    var readsFiles = true
    /// The largest number of operations that a file of this format may spell out.
    private let writtenMax: Int
    private let writtenLimit: LimitName
    private var writtenCount = 0
    let limits: Limits

    private var graphName: String?
    private var order = OperationOrder.criticalPath
    private var queues: [QueueSettings] = []
    private var keySettings: [KeySettings] = []
    private var defaults: OperationFields?
    /// The same as the file writes them.
    private(set) var writtenDefaults: Node?
    var operations: [OperationDescription] = []
    /// The keys of each operation, so that the defaults can be applied once all are read.
    private(set) var keys: [OperationKeys] = []
    var sourceMap = SourceMap()
    private(set) var indices: [String: UInt32] = [:]
    /// The groups of repeated operations, by name.
    var groups: [String: Group] = [:]
    /// The operations that are repeated for an output, by the index of the operation that adds
    /// their elements.
    var adding: [Int: OutputRepetition] = [:]
    /// The indices of operations that add elements, in a file that was expanded before.
    private(set) var expandedAdding: [Int] = []
    private(set) var hasOperations = false
    /// What the submitter gives.
    private let given: [ParameterAssignment]
    /// Empty until the file declares some.
    var parameters: GraphParameters
    /// Without, `${` has no meaning in the file except in repeated operations.
    private(set) var declaresParameters = false
    /// Values that a shell would interpret, see `ShellUse`.
    var shellWarnings: [GraphFileError.Problem] = []
    /// Whether anything but the parameters was read.
    private var hasRead = false

    init(
        limits: Limits,
        base: String?,
        isYAML: Bool,
        given: [ParameterAssignment],
        expandedBytesMax: Int
    ) {
        self.given = given
        parameters = GraphParameters(expandedBytesMax: expandedBytesMax)
        reader = OperationReader(limits: limits, base: base)
        self.limits = limits
        let yamlIsLess = isYAML && limits.yamlOperations < limits.operationsPerGraph
        writtenMax = yamlIsLess ? limits.yamlOperations : limits.operationsPerGraph
        writtenLimit = yamlIsLess ? .yamlOperations : .operationsPerGraph
    }

    mutating func report(_ findings: [GraphFileError.Problem]) throws(Stop) {
        for finding in findings { try reader.fields.log.report(finding) }
    }

    /// Notes that the file has `operations`; the elements follow one by one.
    mutating func beginOperations() {
        hasOperations = true
        hasRead = true
    }

    // MARK: - Parameters

    /// Reads the declarations of parameters. Everything that is read before does not know them, so
    /// readers look for them first.
    mutating func declareParameters(_ entry: Node.Entry) throws(Stop) {
        declaresParameters = true
        // Without their values, everything that uses them would look wrong.
        guard try parameters.declare(entry, given, reporting: &reader.fields) else {
            throw .reported
        }
    }

    /// A value was given, and the file declares no parameters.
    var unknownParameter: Stop? {
        guard !declaresParameters, let first = given.first else { return nil }
        return .problem(first.unknown(among: []))
    }

    /// The node with the values of parameters; `nil`: a problem with a reference was reported.
    mutating func expanded(_ node: Node) throws(Stop) -> Node? {
        guard declaresParameters else { return node }
        return try parameters.expanded(node, reporting: &reader.fields)
    }

    /// Reads a key of the file's root and its value, which was read as a whole.
    mutating func root(_ entry: Node.Entry) throws(Stop) {
        if entry.key == Self.parametersKey {
            guard !declaresParameters else { return }
            // Readers have looked for it, and missed it only if it is written in a way of its own.
            guard !hasRead else {
                try reader.fields.log.report(
                    .misplacedKey,
                    at: entry.keyPosition,
                    entry.key,
                    "these “parameters” must come first, as a key of the file itself"
                )
                throw .reported
            }
            return try declareParameters(entry)
        }
        hasRead = true
        // Each operation is expanded on its own: a repeated one has variables.
        if entry.key == "operations" { return try readOperations(entry.value) }
        guard let value = try expanded(entry.value) else { return }
        var entry = entry
        entry.value = value
        switch entry.key {
        case "name": graphName = try reader.fields.name(entry.value, "name")
        case "order": order = try reader.fields.order(entry.value, "order") ?? .criticalPath
        case "queues": try readQueues(entry.value)
        case "keys": try readKeys(entry.value)
        case "defaults": try readDefaults(entry.value)
        case Self.schemaKey: break
        default: try reader.fields.unknownKey(entry, among: Self.rootKeys)
        }
    }

    private mutating func readDefaults(_ node: Node) throws(Stop) {
        defaults = try reader.defaults(node)
        writtenDefaults = node
    }

    /// Takes over what the elements of an output need of the file that repeats an operation.
    mutating func prepare(_ template: ElementTemplate) throws(Stop) {
        for parameter in template.parameters {
            parameters.set(parameter.key, to: parameter.value.value)
        }
        if let written = template.defaults { try readDefaults(written) }
    }

    // MARK: - Operations

    private mutating func readOperations(_ node: Node) throws(Stop) {
        beginOperations()
        if let entries = node.entries {
            for entry in entries { try operation(entry) }
        } else if let elements = node.elements {
            for element in elements { try operation(element) }
        } else {
            try reader.fields.mismatch(node, "operations", "a map or a list of operations")
        }
    }

    /// Reads an operation of a map; the key is its name.
    mutating func operation(_ entry: Node.Entry) throws(Stop) {
        let position = entry.keyPosition
        try countWritten(at: position)
        guard let name = try expanded(Node(.string(entry.key), at: position)) else {
            return try addPlaceholder(at: position)
        }
        let checked = try reader.fields.name(name.joinedText, at: position, "operations")
        try add(checked, at: position, nameIsKey: true, entry.value)
    }

    /// Reads an operation of a list, or of a line; it has the key `name`.
    mutating func operation(_ node: Node) throws(Stop) {
        try countWritten(at: node.position)
        guard let entries = node.entries else {
            return try reader.fields.mismatch(node, "operations", "a list of maps")
        }
        guard let entry = entries.first(where: { $0.key == OperationKey.name.name }) else {
            let misspelt = entries.first {
                Suggestion.nearest(to: $0.key, among: [OperationKey.name.name]) != nil
            }
            return try reader.fields.log.report(
                .missingKey,
                at: misspelt?.keyPosition ?? node.position,
                "name",
                "this operation needs a “name”"
                    + (misspelt.map { ", and \($0.key.quoted) is none" } ?? "")
            )
        }
        guard let value = try expanded(entry.value) else {
            return try addPlaceholder(at: node.position)
        }
        let name = try reader.fields.name(value, "name")
        try add(name, at: entry.value.position, nameIsKey: false, node)
    }

    private mutating func add(
        _ name: String?,
        at position: Position,
        nameIsKey: Bool,
        _ node: Node
    ) throws(Stop) {
        if let entries = node.entries, Self.isRepeated(entries) {
            return try addRepeated(name, at: position, nameIsKey: nameIsKey, entries)
        }
        guard let expanded = try expanded(node) else { return try addPlaceholder(at: position) }
        let uses = shellUses(in: node.entries ?? [])
        try refuse(uses, in: name ?? "")
        warn(of: uses, in: name ?? "")
        try addOne(name, at: position, nameIsKey: nameIsKey, expanded)
    }

    /// Adds an operation with a problem, which is in the log: the indices of later ones stay right.
    mutating func addPlaceholder(at position: Position) throws(Stop) {
        try append(OperationFields(directory: nil), at: position)
    }

    /// Reads one operation, in which the references are replaced, and adds it.
    /// - Parameter variables: of its process, unless it sets them itself.
    mutating func addOne(
        _ name: String?,
        at position: Position,
        nameIsKey: Bool,
        _ node: Node,
        variables: [String: String] = [:],
        group: String? = nil
    ) throws(Stop) {
        if let name { try register(name, at: position) }
        let read = try reader.operation(named: name ?? "", nameIsKey: nameIsKey, node)
        // The problems are in the log. A placeholder keeps the indices of the later operations
        // right.
        var fields = read ?? OperationFields(directory: nil)
        if case .command(var command) = fields.description.work {
            if !variables.isEmpty {
                try parameters.count(variables, at: position)
                command.setMissing(variables)
                fields.description.work = .command(command)
            }
            try parameters.countVariables(own: !command.environment.isEmpty, at: position)
        }
        if fields.description.inFlight?.group == "" {
            try nameGroup(group, in: node, of: &fields.description)
        }
        try append(fields, at: position)
    }

    /// A number as `inFlight` means the group of the operation, which only an element has.
    private mutating func nameGroup(
        _ group: String?,
        in node: Node,
        of operation: inout OperationDescription
    ) throws(Stop) {
        guard let group else {
            let entry = node.entries?.first { $0.key == OperationKey.inFlight.name }
            return try reader.fields.log.report(
                .misplacedKey,
                at: entry?.value.position ?? node.position,
                OperationKey.inFlight.name,
                "“inFlight” with a number belongs to an operation with “forEach” or “matrix”; for"
                    + " any other, write { group: NAME, limit: NUMBER }"
            )
        }
        operation.inFlight?.group = group
    }

    /// Notes that the next operation has this name.
    mutating func register(_ name: String, at position: Position) throws(Stop) {
        guard let first = indices[name] else {
            indices[name] = UInt32(operations.count)
            return
        }
        let line = sourceMap.operations[Int(first)].line
        try reader.fields.log.report(
            .duplicateOperation,
            at: position,
            name,
            "operation \(name.quoted) is defined twice, first in line \(line)"
        )
    }

    mutating func append(_ fields: OperationFields, at position: Position) throws(Stop) {
        guard operations.count < limits.operationsPerGraph else {
            throw tooMany(operations.count + 1, .operationsPerGraph, at: position)
        }
        if case .registered(Work.forEachKind, _) = fields.description.work {
            expandedAdding.append(operations.count)
        }
        operations.append(fields.description)
        keys.append(fields.keys)
        sourceMap.append(position, dependencies: fields.dependencyPositions)
        try checkEdges(at: position, fields.description.name)
    }

    func checkEdges(at position: Position, _ name: String) throws(Stop) {
        let edges = sourceMap.dependencies.count
        guard edges > limits.edgesPerGraph else { return }
        throw tooMany(edges, .edgesPerGraph, at: position, name)
    }

    private mutating func countWritten(at position: Position) throws(Stop) {
        writtenCount += 1
        guard writtenCount > writtenMax else { return }
        throw tooMany(writtenCount, writtenLimit, at: position)
    }

    func tooMany(
        _ value: Int,
        _ limit: LimitName,
        at position: Position,
        _ thing: String = ""
    ) -> Stop {
        let maximum =
            switch limit {
            case .edgesPerGraph: limits.edgesPerGraph
            case .yamlOperations: limits.yamlOperations
            default: limits.operationsPerGraph
            }
        return .problem(
            GraphFileError.Problem(
                limit: limit,
                value: value,
                maximum: maximum,
                at: position,
                thing,
                "too large a graph"
            )
        )
    }

    // MARK: - Queues

    private static let queueKeys = [
        "maxConcurrentOperationCount", "isSuspended", "priority", "rate", "burst",
    ]

    private mutating func readQueues(_ node: Node) throws(Stop) {
        for entry in try namedEntries(node, "queues", .queues, limits.queues) {
            guard let (name, settings) = try named(entry, "queues") else { continue }
            queues.append(try queue(name, settings))
        }
    }

    /// The entries of a map from names to settings.
    private mutating func namedEntries(
        _ node: Node,
        _ field: String,
        _ limit: LimitName,
        _ maximum: Int
    ) throws(Stop) -> [Node.Entry] {
        if node.isNull { return [] }
        guard let entries = node.entries else {
            try reader.fields.mismatch(node, field, "a map from names to settings")
            return []
        }
        guard entries.count <= maximum else {
            throw .problem(
                GraphFileError.Problem(
                    limit: limit,
                    value: entries.count,
                    maximum: maximum,
                    at: node.position,
                    field,
                    "too many \(field)"
                )
            )
        }
        return entries
    }

    /// The name of an entry and its settings, which may be left out; `nil`: a problem was reported.
    private mutating func named(
        _ entry: Node.Entry,
        _ field: String
    ) throws(Stop) -> (name: String, settings: [Node.Entry])? {
        guard let name = try reader.fields.name(entry.key, at: entry.keyPosition, field) else {
            return nil
        }
        if entry.value.isNull { return (name, []) }
        guard let settings = entry.value.entries else {
            try reader.fields.mismatch(entry.value, name, "a map of settings")
            return nil
        }
        return (name, settings)
    }

    private mutating func queue(
        _ name: String,
        _ settings: [Node.Entry]
    ) throws(Stop) -> QueueSettings {
        var queue = QueueSettings(name: name)
        for setting in settings {
            let node = setting.value
            switch setting.key {
            case "maxConcurrentOperationCount":
                guard !node.isNull else { continue }
                queue.maxConcurrentOperationCount = try reader.fields.count(
                    node,
                    setting.key,
                    through: Int(Int32.max)
                )
            case "isSuspended":
                queue.isSuspended = try reader.fields.bool(node, setting.key) ?? false
            case "priority":
                queue.priority = try reader.fields.priority(node, setting.key) ?? .normal
            case "rate", "burst": break
            default: try reader.fields.unknownKey(setting, among: Self.queueKeys)
            }
        }
        queue.rate = try reader.fields.rate(settings)
        return queue
    }

    // MARK: - Keys

    private mutating func readKeys(_ node: Node) throws(Stop) {
        for entry in try namedEntries(node, "keys", .keys, limits.keys) {
            guard let (name, settings) = try named(entry, "keys") else { continue }
            keySettings.append(try key(name, settings))
        }
    }

    private mutating func key(
        _ name: String,
        _ settings: [Node.Entry]
    ) throws(Stop) -> KeySettings {
        var key = KeySettings(name: name)
        for setting in settings {
            guard setting.key == "limit" else {
                if setting.key != "rate", setting.key != "burst" {
                    try reader.fields.unknownKey(setting, among: ["limit", "rate", "burst"])
                }
                continue
            }
            let limit = try reader.fields.count(
                setting.value,
                "limit",
                from: 1,
                through: Int(Int32.max)
            )
            key.limit = limit ?? 1
        }
        key.rate = try reader.fields.rate(settings)
        return key
    }

    // MARK: - The end

    /// The graph, once everything was read without problems. `name` is used if the file has none.
    mutating func finish(name: String) -> (GraphDescription, SourceMap) {
        let positions = sourceMap
        var graph = GraphDescription(name: graphName ?? name, operations: takeOperations())
        graph.order = order
        graph.queues = queues
        graph.keys = keySettings
        return (graph, positions)
    }

    /// The operations that were read without problems since the last call, with the defaults and
    /// the parameters.
    mutating func takeOperations() -> [OperationDescription] {
        if let defaults { apply(defaults) }
        let variables = parameters.variables
        if !variables.isEmpty { add(variables) }
        defer {
            operations = []
            keys = []
            indices = [:]
            sourceMap = SourceMap()
        }
        return operations
    }

    /// Every process gets the values of the parameters; what an operation or the defaults set
    /// comes before them.
    private mutating func add(_ variables: [String: String]) {
        var last: (own: [String: String], merged: [String: String]) = ([:], variables)
        for index in operations.indices {
            guard case .command(var command) = operations[index].work else { continue }
            if !command.secrets.isEmpty {
                command.setMissing(variables)
            } else {
                // Most have none of their own, or that of the defaults: they share one dictionary.
                if command.environment != last.own {
                    last.own = command.environment
                    last.merged = variables.merging(last.own) { _, own in own }
                }
                command.environment = last.merged
            }
            operations[index].work = .command(command)
        }
    }

    private mutating func apply(_ defaults: OperationFields) {
        let given = OperationKey.allCases.filter { defaults.keys.contains($0) }
        guard !given.isEmpty else { return }
        for index in operations.indices {
            let own = keys[index]
            for key in given where !own.contains(key) || key == .environment {
                Self.apply(key, of: defaults, to: &operations[index])
            }
        }
    }

    private static func apply(
        _ key: OperationKey,
        of defaults: OperationFields,
        to operation: inout OperationDescription
    ) {
        let source = defaults.description
        switch key {
        case .name, .description, .forEach, .matrix, .run, .command, .operation, .wait, .external,
            .input, .version, .dependencies, .cancelSiblings, .inFlight, .produces, .consumes:
            break
        case .queue: operation.queue = source.queue
        case .priority: operation.priority = source.priority
        case .qualityOfService: operation.qualityOfService = source.qualityOfService
        case .timeout: operation.timeout = source.timeout
        case .retry: operation.retry = source.retry
        case .expectedDuration: operation.expectedDuration = source.expectedDuration
        case .exclusive: operation.exclusive = source.exclusive
        case .delay: operation.delay = source.delay
        case .notBefore: operation.notBefore = source.notBefore
        case .deadline: operation.deadline = source.deadline
        case .resources:
            if !operation.work.isExternal { operation.resources = source.resources }
        case .workers:
            if !operation.work.isExternal { operation.workers = source.workers }
        case .enforce:
            // After the resources, which may be those of the defaults.
            guard case .command = operation.work, operation.resources.hasEnforceable else {
                return
            }
            operation.enforcesResources = source.enforcesResources
        case .environment, .inheritEnvironment, .directory, .grace, .memory, .cpuTime, .skip:
            guard case .command(var command) = operation.work else { return }
            apply(key, of: defaults.process, to: &command)
            operation.work = .command(command)
        }
    }

    private static func apply(
        _ key: OperationKey,
        of process: CommandDescription,
        to command: inout CommandDescription
    ) {
        if key == .environment {
            // Each variable that the operation sets overrides the same variable of the defaults.
            command.setMissing(process.environment, secrets: process.secrets)
        } else if key == .inheritEnvironment {
            command.inheritEnvironment = process.inheritEnvironment
        } else if key == .directory {
            command.directory = process.directory
        } else if key == .grace {
            command.grace = process.grace
        } else if key == .memory {
            command.memory = process.memory
        } else if key == .skip {
            // Only what produces files can be up to date.
            command.skipsIfUpToDate = process.skipsIfUpToDate && !command.produces.isEmpty
        } else {
            command.cpuTime = process.cpuTime
        }
    }
}

/// The positions of all operations and dependencies: eight bytes for each.
package struct SourceMap: Hashable, Sendable {
    /// The positions of the operations, by index.
    private(set) var operations: [Position] = []
    /// The positions of the dependencies of all operations, one operation after the other.
    private(set) var dependencies: [Position] = []
    /// The end of each operation's part in `dependencies`.
    private var ends: [UInt32] = []

    mutating func append(_ operation: Position, dependencies positions: [Position]) {
        operations.append(operation)
        dependencies += positions
        ends.append(UInt32(clamping: dependencies.count))
    }

    /// The line and column of an operation, from 1; `nil` if they are unknown.
    package func place(ofOperation index: Int) -> (line: Int, column: Int)? {
        guard operations.indices.contains(index) else { return nil }
        return (Int(operations[index].line), Int(operations[index].column))
    }

    /// The position of the dependency in its list; otherwise the position of the operation.
    func position(ofDependency dependency: Int?, of index: Int) -> Position {
        guard operations.indices.contains(index) else { return .none }
        guard let dependency else { return operations[index] }
        let start = index == 0 ? 0 : Int(ends[index - 1])
        guard start + dependency < Int(ends[index]) else { return operations[index] }
        return dependencies[start + dependency]
    }
}
