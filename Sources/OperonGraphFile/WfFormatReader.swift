import OperonModel

/// Reads workflows recorded by WfCommons (https://github.com/wfcommons/WfFormat) to replay them:
/// each task becomes a wait of its run time × the scale.
///
/// Schema 1.5 has the tasks in `workflow.specification` and their run times in
/// `workflow.execution`; up to 1.4 both are in `workflow.tasks` (once `jobs`). Fields that do not
/// concern order or time are ignored. The order is taken from `parents` only. A parent that is
/// listed twice counts once. A parent that is not a task is left out and named in a warning,
/// because published instances have such parents.
struct WfFormatReader {
    private struct Task {
        var identifier: String
        var position: Position
        var title: String?
        var parents: [String] = []
        var runtime: Double?
    }

    private let limits: Limits
    private let scale: Double
    private var parser: JSONParser
    private var log = ProblemLog()
    private var graphName: String?
    private var tasks: [Task] = []
    private var indices: [String: Int] = [:]
    private var runtimes: [String: Double] = [:]
    private var edges = 0

    /// Whether the root has a `workflow` before any `operations`.
    static func isWfFormat(_ bytes: [UInt8]) -> Bool {
        var parser = JSONParser(bytes, bounds: TreeBounds(Limits()))
        do throws(Stop) {
            try parser.beginObject()
            var isFirst = true
            while let (key, _) = try parser.nextKey(isFirst: &isFirst) {
                if key == "workflow" { return true }
                if key == "operations" { return false }
                try parser.skip()
            }
        } catch {
            // benign: the reader of graphs reports what is wrong.
            return false
        }
        return false
    }

    static func read(
        _ bytes: [UInt8],
        file: String,
        options: GraphFileOptions
    ) throws(GraphFileError) -> GraphFile {
        guard let scale = options.replayScale else {
            throw refusal(
                .unsupported,
                "workflow",
                "this is a recorded workflow (WfFormat), whose programs and data are elsewhere;"
                    + " replay its run times with --replay SCALE, for example --replay 0.01",
                file
            )
        }
        if let first = options.parameters.first {
            throw GraphFileError.unfound(.problem(first.unknown(among: [])), file: file)
        }
        guard scale.isFinite, scale >= 0 else {
            throw refusal(
                .invalidValue,
                "--replay",
                "--replay must be a number of at least 0, not \(scale)",
                file
            )
        }
        var reader = WfFormatReader(bytes, limits: options.limits, scale: scale)
        var stop: Stop?
        do throws(Stop) {
            try reader.readRoot()
        } catch {
            stop = error
        }
        do throws(Stop) {
            if stop == nil, reader.log.problems.isEmpty { return try reader.graph(file: file) }
        } catch {
            stop = error
        }
        throw reader.log.error(after: stop, file: file) ?? GraphFileError(problems: [])
    }

    private static func refusal(
        _ code: GraphFileError.Code,
        _ thing: String,
        _ message: String,
        _ file: String
    ) -> GraphFileError {
        let problem = GraphFileError.Problem(code, at: .none, thing, message)
        return GraphFileError.unfound(.problem(problem), file: file)
    }

    private init(_ bytes: [UInt8], limits: Limits, scale: Double) {
        self.limits = limits
        self.scale = scale
        parser = JSONParser(bytes, bounds: TreeBounds(limits))
    }

    // MARK: - Walking

    private mutating func readRoot() throws(Stop) {
        try parser.beginObject()
        var isFirst = true
        while let (key, _) = try parser.nextKey(isFirst: &isFirst) {
            if key == "workflow" {
                try readWorkflow()
            } else if key == "name" {
                graphName = try parser.value().text
            } else {
                try parser.skip()
            }
        }
        try JSONReader.finish(&parser)
    }

    private mutating func readWorkflow() throws(Stop) {
        try parser.beginObject()
        var isFirst = true
        while let (key, _) = try parser.nextKey(isFirst: &isFirst) {
            switch key {
            case "specification": try readTasks(ofKey: ["tasks"], isExecution: false)
            case "execution": try readTasks(ofKey: ["tasks"], isExecution: true)
            case "tasks", "jobs": try readList(isExecution: false)
            default: try parser.skip()
            }
        }
    }

    private mutating func readTasks(ofKey keys: [String], isExecution: Bool) throws(Stop) {
        try parser.beginObject()
        var isFirst = true
        while let (key, _) = try parser.nextKey(isFirst: &isFirst) {
            if keys.contains(key) {
                try readList(isExecution: isExecution)
            } else {
                try parser.skip()
            }
        }
    }

    private mutating func readList(isExecution: Bool) throws(Stop) {
        try parser.beginArray()
        var isFirst = true
        while try parser.nextElement(isFirst: &isFirst) {
            let node = try parser.value()
            for finding in parser.takeFindings() { try log.report(finding) }
            guard let task = try task(node) else { continue }
            if isExecution {
                if let runtime = task.runtime { runtimes[task.identifier] = runtime }
            } else {
                try add(task)
            }
        }
    }

    private mutating func task(_ node: Node) throws(Stop) -> Task? {
        guard let entries = node.entries else {
            try log.report(
                .wrongType,
                at: node.position,
                node.thing,
                "a task must be a map, not \(node.kindName)"
            )
            return nil
        }
        var task = Task(identifier: "", position: node.position)
        for entry in entries {
            switch entry.key {
            case "id":
                task.identifier = entry.value.text ?? ""
                task.position = entry.value.position
            case "name": task.title = entry.value.text
            case "parents": task.parents = try parents(entry.value)
            case "runtime", "runtimeInSeconds": task.runtime = try runtime(entry.value)
            default: break
            }
        }
        // Older instances identify tasks by name.
        if task.identifier.isEmpty { task.identifier = task.title ?? "" }
        var fields = FieldReader(limits: limits)
        fields.log = log
        defer { log = fields.log }
        let name = try fields.name(task.identifier, at: task.position, "id")
        return name == nil ? nil : task
    }

    private mutating func parents(_ node: Node) throws(Stop) -> [String] {
        if node.isNull { return [] }
        let names = node.elements?.map(\.text)
        guard let names, !names.contains(nil) else {
            try log.report(
                .wrongType,
                at: node.position,
                "parents",
                "“parents” must be a list of tasks, not "
                    + (node.elements == nil ? node.kindName : "this")
            )
            return []
        }
        return names.compactMap(\.self)
    }

    private mutating func runtime(_ node: Node) throws(Stop) -> Double? {
        if node.isNull { return nil }
        guard case .number(let text) = node.value, let value = Double(text), value >= 0,
            DurationText.nanoseconds(seconds: value) != nil
        else {
            try log.report(
                .invalidValue,
                at: node.position,
                node.thing,
                "a run time must be a number of seconds from 0 to 100 years, not \(node.kindName)"
            )
            return nil
        }
        return value
    }

    private mutating func add(_ task: Task) throws(Stop) {
        let maximum = limits.operationsPerGraph
        guard tasks.count < maximum else {
            throw .problem(
                GraphFileError.Problem(
                    limit: .operationsPerGraph,
                    value: maximum + 1,
                    maximum: maximum,
                    at: task.position,
                    "",
                    "too large a graph"
                )
            )
        }
        edges += task.parents.count
        guard edges <= limits.edgesPerGraph else {
            throw .problem(
                GraphFileError.Problem(
                    limit: .edgesPerGraph,
                    value: edges,
                    maximum: limits.edgesPerGraph,
                    at: task.position,
                    task.identifier,
                    "too large a graph"
                )
            )
        }
        if let first = indices[task.identifier] {
            try log.report(
                .duplicateOperation,
                at: task.position,
                task.identifier,
                "task \(task.identifier.quoted) is defined twice, first in line "
                    + "\(tasks[first].position.line)"
            )
        }
        indices[task.identifier] = tasks.count
        tasks.append(task)
    }

    // MARK: - The graph

    private mutating func graph(file: String) throws(Stop) -> GraphFile {
        guard !tasks.isEmpty else {
            throw .problem(
                GraphFileError.Problem(
                    .missingKey,
                    at: .none,
                    "tasks",
                    "the workflow has no tasks"
                )
            )
        }
        let titles = uniqueTitles()
        var operations: [OperationDescription] = []
        operations.reserveCapacity(tasks.count)
        var sourceMap = SourceMap()
        var missing = MissingParents()
        for task in tasks {
            operations.append(try operation(task, titles, &missing))
            sourceMap.append(task.position, dependencies: [])
        }
        var fields = FieldReader(limits: limits)
        let name = graphName ?? ""
        let isName = !name.isEmpty && (try? fields.name(name, at: .none, "name")) != nil
        let graph = GraphDescription(
            name: isName ? name : GraphReading.name(of: file),
            operations: operations
        )
        var read = GraphFile(graph: graph, sourceMap: sourceMap, file: file)
        read.warnings = missing.warnings(file: file)
        return read
    }

    /// In schemas up to 1.4, some writers list parents by name.
    private func uniqueTitles() -> [String: String] {
        var titles: [String: String?] = [:]
        for task in tasks {
            guard let title = task.title else { continue }
            titles[title] = titles[title] == nil ? task.identifier : String?.none
        }
        return titles.compactMapValues(\.self)
    }

    private func operation(
        _ task: Task,
        _ titles: [String: String],
        _ missing: inout MissingParents
    ) throws(Stop) -> OperationDescription {
        let seconds = (task.runtime ?? runtimes[task.identifier] ?? 0) * scale
        guard let nanoseconds = DurationText.nanoseconds(seconds: seconds) else {
            throw .problem(
                GraphFileError.Problem(
                    .invalidValue,
                    at: task.position,
                    task.identifier,
                    "the run time of task \(task.identifier.quoted) × \(scale) is over 100 years"
                )
            )
        }
        let duration = Duration.nanoseconds(nanoseconds)
        var operation = OperationDescription(name: task.identifier, work: .wait(duration))
        operation.expectedDuration = duration
        if let title = task.title, title != task.identifier { operation.summary = title }
        var seen = SeenKeys<Void>()
        for parent in task.parents {
            guard let name = indices[parent] == nil ? titles[parent] : parent else {
                missing.note(parent, of: task.identifier, at: task.position)
                continue
            }
            guard seen.insert(name, ()) == nil else { continue }
            operation.dependencies.append(DependencyDescription(name))
        }
        return operation
    }
}

/// Parents that were left out, for the warnings: the first few by name.
private struct MissingParents {
    /// A faulty export may lack every parent, and nobody reads a thousand warnings.
    private static let namedMax = 10

    private var named: [GraphFileError.Problem] = []
    private var count = 0

    mutating func note(_ parent: String, of task: String, at position: Position) {
        count += 1
        guard named.count < Self.namedMax else { return }
        let message =
            "task \(task.quoted) does not wait for its parent \(parent.quoted): the workflow has no"
            + " task of that id, and no single one of that name"
        named.append(GraphFileError.Problem(.unknownOperation, at: position, parent, message))
    }

    func warnings(file: String) -> [GraphFileError.Problem] {
        var warnings = named
        if count > named.count {
            let message = "\(count - named.count) more parents were left out"
            warnings.append(GraphFileError.Problem(.unknownOperation, at: .none, "", message))
        }
        for index in warnings.indices { warnings[index].file = file }
        return warnings
    }
}
