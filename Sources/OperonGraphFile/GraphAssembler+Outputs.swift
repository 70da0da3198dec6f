import OperonModel

/// An operation with `forEach: { output: … }`.
struct OutputRepetition {
    let name: String
    /// The operation whose output has the elements.
    let output: String
    /// Where the file names it.
    let outputPosition: Position
    /// The variables that each element sets; `nil`: `item`.
    let variables: [String]?
    /// The fields that each element has.
    let fields: Node
    /// How many elements may be in the cluster at once, if the file says that without a variable.
    var inFlight: InFlightLimit?
}

/// An operation that is repeated for an output becomes two: `render.forEach`, which adds the
/// elements when the output is there, and `render`, the group. Elements are added as dependencies
/// of the group, so the group is what it is for every other repeated operation.
extension GraphAssembler {
    /// Fields of which a reader cannot tell whether they are right before it has the values.
    private static let unreadable: Set<String> = [
        OperationKey.cancelSiblings.name, OperationKey.deadline.name, OperationKey.enforce.name,
        OperationKey.inFlight.name, OperationKey.memory.name, OperationKey.notBefore.name,
        OperationKey.priority.name, OperationKey.qualityOfService.name, OperationKey.queue.name,
        OperationKey.skip.name, OperationKey.workers.name,
    ]

    /// The field `forEach`, if it names an output.
    mutating func entryForOutput(in entries: [Node.Entry]) throws(Stop) -> Node.Entry? {
        let keys = entries.filter { RepetitionReader.keys.contains($0.key) }
        guard keys.count == 1, keys[0].key == OperationKey.forEach.name,
            keys[0].value.entries?.contains(where: { $0.key == RepetitionReader.outputKey }) == true
        else { return nil }
        return keys[0]
    }

    // MARK: - Reading

    /// Adds the operation that adds the elements, and their group.
    mutating func addRepeated(
        _ name: String?,
        at position: Position,
        nameIsKey: Bool,
        _ entries: [Node.Entry],
        forOutput forEach: Node.Entry
    ) throws(Stop) {
        let settings = Self.settings(entries, nameIsKey: nameIsKey)
        guard let name, try mayRepeat(name, at: position),
            var repetition = try repetition(of: name, forEach, settings, at: position),
            let adding = try reader.fields.name(
                name + RepeatedNames.addingSuffix,
                at: position,
                "the operation that adds the elements"
            )
        else { return try addPlaceholder(at: position) }
        let common = try settingsOfElements(of: repetition)
        repetition.inFlight = common.description.inFlight
        if repetition.inFlight?.group == "" { repetition.inFlight?.group = name }
        var operation = OperationFields(directory: nil)
        operation.description.name = adding
        operation.description.expectedDuration = .zero
        operation.description.dependencies = [DependencyDescription(repetition.output, .succeeded)]
        operation.dependencyPositions = [repetition.outputPosition]
        for (dependency, position) in zip(
            common.description.dependencies,
            common.dependencyPositions
        ) where dependency.name != repetition.output {
            operation.description.dependencies.append(dependency)
            operation.dependencyPositions.append(position)
        }
        operation.keys = .all
        if common.keys.contains(.queue) {
            operation.description.queue = common.description.queue
        } else {
            operation.keys.remove(.queue)
        }
        self.adding[operations.count] = repetition
        try register(adding, at: position)
        try append(operation, at: position)
        var group = operation
        group.description.name = name
        group.description.expectedDuration = nil
        group.description.dependencies = [DependencyDescription(adding)]
        group.dependencyPositions = [position]
        let place = operations.count
        groups[name] = Group(elements: place..<place, output: repetition.output)
        try register(name, at: position)
        try append(group, at: position)
    }

    /// Reads `forEach: { output: …, variables: … }`; `nil`: a problem was reported.
    private mutating func repetition(
        of name: String,
        _ entry: Node.Entry,
        _ settings: [Node.Entry],
        at position: Position
    ) throws(Stop) -> OutputRepetition? {
        guard let value = try expanded(entry.value), let entries = value.entries else { return nil }
        let problems = reader.fields.log.problems.count
        var output: (name: String, at: Position)?
        var variables: [String]?
        for entry in entries {
            switch entry.key {
            case RepetitionReader.outputKey:
                if let name = try reader.fields.name(entry.value, entry.key) {
                    output = (name, entry.value.position)
                }
            case RepetitionReader.variablesKey:
                variables = try self.variables(entry)
            default:
                let known = [RepetitionReader.outputKey, RepetitionReader.variablesKey]
                try reader.fields.unknownKey(entry, among: known)
            }
        }
        if variables == nil, parameters.has(Repetition.itemVariable) {
            try reader.fields.log.report(
                .invalidValue,
                at: entry.keyPosition,
                entry.key,
                "“forEach” sets the variable “item”, which is the name of a parameter; rename the"
                    + " parameter"
            )
        }
        guard reader.fields.log.problems.count == problems, let output else { return nil }
        return OutputRepetition(
            name: name,
            output: output.name,
            outputPosition: output.at,
            variables: variables,
            fields: Node(.mapping(settings), at: position)
        )
    }

    private mutating func variables(_ entry: Node.Entry) throws(Stop) -> [String]? {
        guard let names = try reader.fields.names(entry.value, entry.key) else { return nil }
        guard !names.isEmpty else {
            try reader.fields.log.report(
                .invalidValue,
                at: entry.value.position,
                entry.key,
                "“variables” is empty; it lists what each element of the output sets, such as"
                    + " [width, file]"
            )
            return nil
        }
        guard names.count <= RepetitionReader.variablesMax else {
            try reader.fields.log.report(
                .invalidValue,
                at: entry.keyPosition,
                entry.key,
                "\(names.count) variables are more than elements may have,"
                    + " \(RepetitionReader.variablesMax)"
            )
            return nil
        }
        for name in names {
            let reason =
                GraphParameters.reasonAgainst(name, of: "a variable")
                ?? (parameters.has(name)
                    ? "\(name.quoted) is the name of a parameter already" : nil)
            guard let reason else { continue }
            try reader.fields.log.report(.invalidValue, at: entry.value.position, name, reason)
        }
        return names
    }

    /// Checks the fields as far as that is possible without the values, and reads those that the
    /// elements have in common with their group.
    private mutating func settingsOfElements(
        of repetition: OutputRepetition
    ) throws(Stop) -> OperationFields {
        let variables = repetition.variables ?? [Repetition.itemVariable]
        let dependencies = OperationKey.dependencies.name
        var readable: [Node.Entry] = []
        for entry in repetition.fields.entries ?? [] {
            let whole = Node(.mapping([entry]), at: entry.keyPosition)
            let hasReference = GraphParameters.hasReference(whole, to: variables)
            if hasReference, entry.key == dependencies {
                try reader.fields.log.report(
                    .unsupported,
                    at: entry.keyPosition,
                    entry.key,
                    "the dependencies of an operation that is repeated for an output have none of"
                        + " its variables; to depend on an element of another operation that is"
                        + " repeated for the same output, write “NAME[*]”"
                )
            } else if hasReference, entry.key == OperationKey.external.name {
                // Without it, there would be nothing to do.
                let isExternal = Node(.bool(text: "true"), at: entry.value.position)
                readable.append(
                    Node.Entry(key: entry.key, keyPosition: entry.keyPosition, value: isExternal)
                )
            } else if !hasReference || !Self.unreadable.contains(entry.key) {
                readable.append(entry)
            }
        }
        // “1” is right where a text, a number or a duration is expected.
        let sample = variables.map { _ in Node(.number(text: "1"), at: .none) }
        parameters.set(variables, to: sample)
        let origin = ValueOrigin.outside(.output(repetition.output))
        parameters.setOrigins(variables.map { _ in origin }, of: variables)
        defer { parameters.unset(variables) }
        let uses = shellUses(in: repetition.fields.entries ?? [])
        try refuse(uses, in: repetition.name)
        warn(of: uses, in: repetition.name)
        let node = Node(.mapping(readable), at: repetition.fields.position)
        let expanded = try parameters.expanded(node, reporting: &reader.fields)
        guard let expanded else { return OperationFields(directory: nil) }
        let read = try reader.operation(named: repetition.name, nameIsKey: true, expanded)
        return read ?? OperationFields(directory: nil)
    }

    // MARK: - Dependencies

    /// Resolves the dependencies of the operation that adds elements, and gives it its work. It
    /// waits for all that its elements depend on, so no element can close a cycle.
    mutating func resolveElements(
        of repetition: OutputRepetition,
        at index: Int,
        _ written: SourceMap
    ) throws(Stop) -> [Position] {
        try checkOutput(of: repetition)
        try checkInFlight(of: repetition)
        var siblings: [String] = []
        var dependencies: [DependencyDescription] = []
        var positions: [Position] = []
        for (place, dependency) in operations[index].dependencies.enumerated() {
            let position = written.position(ofDependency: place, of: index)
            var dependency = dependency
            if place == 0 {
                // That on the output, which was checked.
            } else if let target = RepeatedNames.group(ofEach: dependency.name),
                indices[dependency.name] == nil
            {
                guard groups[target]?.output == repetition.output else {
                    try report(noSibling: dependency.name, target, of: repetition, at: position)
                    continue
                }
                siblings.append(target)
                // Its elements exist when this operation has succeeded.
                dependency = DependencyDescription(target + RepeatedNames.addingSuffix)
            } else if try refusesUnknownElements(dependency, of: index, at: position) {
                continue
            } else if groups[dependency.name] != nil, !Self.isOfGroup(dependency.condition) {
                try report(condition: dependency, at: position)
                continue
            }
            guard !dependencies.contains(where: { $0.name == dependency.name }) else { continue }
            dependencies.append(dependency)
            positions.append(position)
        }
        operations[index].dependencies = dependencies
        var template = ElementTemplate(
            name: repetition.name,
            output: repetition.output,
            variables: repetition.variables,
            base: reader.base,
            parameters: parameters.needed(by: repetition.fields),
            defaults: writtenDefaults,
            fields: repetition.fields
        )
        template.siblings = siblings
        try setWork(template, at: index, written.operations[index])
        return positions
    }

    private mutating func setWork(
        _ template: ElementTemplate,
        at index: Int,
        _ position: Position
    ) throws(Stop) {
        let (bytes, wrong) = template.encode(bytesMax: limits.payloadBytes)
        if let wrong {
            return try reader.fields.log.report(
                .unsupported,
                at: wrong.position.line > 0 ? wrong.position : position,
                wrong.thing,
                "in an operation that is repeated for an output, and in the “defaults” of its file,"
                    + " \(wrong.kindName) is written as in JSON, or in quotes"
            )
        }
        guard bytes.count <= limits.payloadBytes else {
            return try reader.fields.log.report(
                GraphFileError.Problem(
                    limit: .payloadBytes,
                    value: bytes.count,
                    maximum: limits.payloadBytes,
                    at: position,
                    template.name,
                    "the fields of \(template.name.quoted) with the parameters and defaults"
                )
            )
        }
        operations[index].work = .registered(kind: Work.forEachKind, input: Payload(bytes: bytes))
    }

    /// Reports a name that an element of an output may get: they belong to these elements alone.
    mutating func checkName(_ name: String, at position: Position) throws(Stop) {
        guard name.utf8.last == UInt8(ascii: "]") else { return }
        for bracket in name.indices where name[bracket] == "[" {
            let target = String(name[..<bracket])
            guard let output = groups[target]?.output else { continue }
            return try reader.fields.log.report(
                .invalidValue,
                at: position,
                name,
                "\(name.quoted) is a name for an element of \(target.quoted), whose elements are"
                    + " not known before \(output.quoted) has left its output; rename this"
                    + " operation"
            )
        }
    }

    /// Reports an output that no operation of this file can leave.
    private mutating func checkOutput(of repetition: OutputRepetition) throws(Stop) {
        let name = repetition.output
        let reason: String
        if name == repetition.name {
            reason = "an operation cannot be repeated for its own output"
        } else if groups[name] != nil {
            reason = "it is a repeated operation, and only its elements have outputs"
        } else if let index = indices[name].map(Int.init) {
            switch operations[index].work {
            case .nothing, .wait: reason = "it leaves no output"
            case .command, .registered, .external: return
            }
        } else {
            // An operation of another graph, or of the graph that this file is added to.
            return
        }
        try reader.fields.log.report(
            .invalidValue,
            at: repetition.outputPosition,
            name,
            "\(repetition.name.quoted) cannot be repeated for the output of \(name.quoted): "
                + reason
        )
    }

    /// Reports a limit of a group that has another limit in this file.
    private mutating func checkInFlight(of repetition: OutputRepetition) throws(Stop) {
        guard let own = repetition.inFlight else { return }
        let known =
            operations.lazy.compactMap(\.inFlight).first { $0.group == own.group }
            ?? adding.sorted { $0.key < $1.key }.lazy.compactMap(\.value.inFlight)
            .first { $0.group == own.group }
        guard let known, known.limit != own.limit else { return }
        let entry = repetition.fields.entries?.first { $0.key == OperationKey.inFlight.name }
        try reader.fields.log.report(
            .invalidValue,
            at: entry?.value.position ?? repetition.fields.position,
            own.group,
            "the group \(own.group.quoted) has the limit \(known.limit) already"
        )
    }

    /// Whether a condition on a group means the same as on each of its elements.
    private static func isOfGroup(_ condition: DependencyCondition) -> Bool {
        condition == .unlessFailed || condition == .finished
    }

    private mutating func report(
        condition dependency: DependencyDescription,
        at position: Position
    ) throws(Stop) {
        try reader.fields.log.report(
            .unsupported,
            at: position,
            dependency.name,
            "the condition \(dependency.condition.name) would apply to each element of"
                + " \(dependency.name.quoted), and not all are known yet; only unlessFailed and"
                + " finished apply to a group"
        )
    }

    private mutating func report(
        noSibling name: String,
        _ target: String,
        of repetition: OutputRepetition,
        at position: Position
    ) throws(Stop) {
        let reason =
            indices[target] == nil
            ? "there is no operation \(target.quoted)"
                + Suggestion.hint(for: target, among: groups.keys.sorted())
            : "\(target.quoted) is not repeated for the output of \(repetition.output.quoted)"
        try reader.fields.log.report(
            indices[target] == nil ? .unknownOperation : .unsupported,
            at: position,
            name,
            "\(repetition.name.quoted) cannot depend on \(name.quoted) element by element: "
                + reason
        )
    }

    /// Reports a dependency on elements that only exist when an output is there. Returns whether it
    /// is one.
    mutating func refusesUnknownElements(
        _ dependency: DependencyDescription,
        of index: Int,
        at position: Position
    ) throws(Stop) -> Bool {
        let name = dependency.name
        if let group = groups[name] {
            guard group.output != nil else { return false }
            if operations[index].cancelSiblings {
                try reader.fields.log.report(
                    .unsupported,
                    at: position,
                    name,
                    "an operation with “cancelSiblings” cannot depend on \(name.quoted), whose"
                        + " elements are not known yet"
                )
                return true
            }
            guard !Self.isOfGroup(dependency.condition) else { return false }
            try report(condition: dependency, at: position)
            return true
        }
        guard name.utf8.last == UInt8(ascii: "]"), indices[name] == nil,
            let bracket = name.firstIndex(of: "["),
            let output = groups[String(name[..<bracket])]?.output
        else { return false }
        let target = String(name[..<bracket])
        let all = target + RepeatedNames.eachSuffix
        try reader.fields.log.report(
            .unsupported,
            at: position,
            name,
            "\(name.quoted) is not known before \(output.quoted) has left its output; depend on"
                + " \(target.quoted), or "
                // An element that is in the file would depend on one element alone.
                + (name == all ? "" : "on \(all.quoted) for the outputs of all elements, or ")
                + "repeat this operation for the same output"
        )
        return true
    }
}
