import OperonModel

/// An operation with `forEach` or `matrix` becomes an operation for each element, and one with the
/// plain name, the group: it does nothing, and depends on all elements.
extension GraphAssembler {
    /// What an element counts beside its texts, so that a short file does not become a graph of any
    /// size.
    private static let elementBytes = 32
    /// What each value that is compared with one of `exclude` counts, because a comparison takes
    /// time.
    private static let exclusionBytes = 16

    struct Group {
        /// The indices of the elements; the group itself follows them.
        let elements: Range<Int>
        /// The operation whose output has the elements, which are added while the graph runs;
        /// `nil`: the elements are in the file.
        var output: String?
    }

    static func isRepeated(_ entries: [Node.Entry]) -> Bool {
        entries.contains { RepetitionReader.keys.contains($0.key) }
    }

    // MARK: - Elements

    /// Adds the elements of an operation and their group.
    /// - Parameter name: `nil`: it has a problem that was reported.
    mutating func addRepeated(
        _ name: String?,
        at position: Position,
        nameIsKey: Bool,
        _ entries: [Node.Entry]
    ) throws(Stop) {
        if let forEach = try entryForOutput(in: entries) {
            return try addRepeated(
                name,
                at: position,
                nameIsKey: nameIsKey,
                entries,
                forOutput: forEach
            )
        }
        guard let repetition = try repetition(in: entries), let name else {
            return try addPlaceholder(at: position)
        }
        guard repetition.indexCount < limits.operationsPerGraph else {
            // With the group.
            let (count, isTooLarge) = repetition.indexCount.addingReportingOverflow(1)
            throw tooMany(isTooLarge ? .max : count, .operationsPerGraph, at: position, name)
        }
        guard try mayRepeat(name, at: position) else { return try addPlaceholder(at: position) }
        let settings = Self.settings(entries, nameIsKey: nameIsKey)
        let problems = reader.fields.log.problems.count
        let first = operations.count
        try addElements(
            0..<repetition.indexCount,
            of: repetition,
            in: name,
            at: position,
            Node(.mapping(settings), at: position)
        )
        let elements = first..<operations.count
        var common: (OperationDescription, OperationKeys) = (
            OperationFields(directory: nil).description, []
        )
        if !elements.isEmpty {
            common = (operations[first], keys[first])
        } else if reader.fields.log.problems.count == problems {
            common = try settingsOfEveryElement(settings, of: repetition)
        }
        try addGroup(name, of: elements, like: common, at: position)
    }

    /// Whether a repeated operation can have this name; if not, that was reported.
    mutating func mayRepeat(_ name: String, at position: Position) throws(Stop) -> Bool {
        guard declaresParameters || !name.contains("${") else {
            try reader.fields.log.report(
                .invalidValue,
                at: position,
                name,
                "the name \(name.quoted) of a repeated operation has no “${”: each element has its"
                    + " values after the name, as in “render[a.png]”"
            )
            return false
        }
        guard indices[name] == nil else {
            try register(name, at: position)
            return false
        }
        return true
    }

    /// The fields that each element has.
    static func settings(_ entries: [Node.Entry], nameIsKey: Bool) -> [Node.Entry] {
        entries.filter {
            !RepetitionReader.keys.contains($0.key)
                && (nameIsKey || $0.key != OperationKey.name.name)
        }
    }

    /// Adds elements of a repetition, up to the first that has a problem.
    ///
    /// - Returns: The index of that one.
    @discardableResult
    mutating func addElements(
        _ range: Range<Int>,
        of repetition: Repetition,
        in name: String,
        at position: Position,
        _ template: Node
    ) throws(Stop) -> Int? {
        let bytes =
            Self.elementBytes + Self.bytes(of: template)
            + Self.exclusionBytes * repetition.exclusionCount
        let problems = reader.fields.log.problems.count
        let first = operations.count
        defer { parameters.unset(repetition.variables) }
        parameters.setOrigins(repetition.origins, of: repetition.variables)
        let uses = shellUses(in: template.entries ?? [])
        warn(of: uses, in: name)
        for index in range {
            // Excluded combinations count as well, because finding them takes time.
            try parameters.count(bytes, at: position)
            guard let element = repetition.element(at: index) else { continue }
            parameters.set(repetition.variables, to: element.values)
            let node = try parameters.expanded(template, reporting: &reader.fields)
            if !uses.isEmpty { try refuse(uses, in: name + element.label) }
            if let node {
                try addElement(
                    element,
                    of: repetition,
                    in: name,
                    since: first,
                    at: position,
                    node
                )
            }
            // Most mistakes are in all elements, so one report is enough.
            guard reader.fields.log.problems.count == problems else { return index }
        }
        return nil
    }

    /// Checks the settings of an operation without elements, except those that depend on the
    /// values that an element would have.
    private mutating func settingsOfEveryElement(
        _ settings: [Node.Entry],
        of repetition: Repetition
    ) throws(Stop) -> (OperationDescription, OperationKeys) {
        let fixed = settings.filter { entry in
            let node = Node(.mapping([entry]), at: entry.keyPosition)
            return !GraphParameters.hasReference(node, to: repetition.variables)
        }
        let node = Node(.mapping(fixed), at: .none)
        let expanded = try parameters.expanded(node, reporting: &reader.fields)
        let fields = try reader.partial(expanded?.entries ?? [], nameIsKey: true)
        return (fields.description, fields.keys)
    }

    /// Reads `forEach` or `matrix`; `nil`: a problem was reported.
    private mutating func repetition(in entries: [Node.Entry]) throws(Stop) -> Repetition? {
        let keys = entries.filter { RepetitionReader.keys.contains($0.key) }
        guard keys.count == 1 else {
            try reader.fields.log.report(
                .misplacedKey,
                at: keys[1].keyPosition,
                keys[1].key,
                "\(keys[1].key.quoted) and \(keys[0].key.quoted) cannot be combined"
            )
            return nil
        }
        var entry = keys[0]
        guard let value = try expanded(entry.value) else { return nil }
        entry.value = value
        let values = RepetitionReader(
            base: readsFiles ? reader.base : nil,
            parameters: parameters
        )
        var repetition =
            entry.key == OperationKey.forEach.name
            ? try values.forEach(entry, reporting: &reader.fields)
            : try values.matrix(entry, reporting: &reader.fields)
        if let read = repetition {
            repetition?.origins = origins(of: read, keys[0], value)
        }
        return repetition
    }

    private mutating func addElement(
        _ element: Repetition.Element,
        of repetition: Repetition,
        in group: String,
        since first: Int,
        at position: Position,
        _ node: Node
    ) throws(Stop) {
        let text = group + element.label
        // With several variables, no value alone is the cause.
        let values = element.values.map(\.position)
        let place = values.count == 1 ? values[0] : position
        guard element.label != RepeatedNames.eachSuffix else {
            return try reader.fields.log.report(
                .invalidValue,
                at: place,
                "*",
                "“*” cannot be the only value of an element, because \(text.quoted) means all"
                    + " elements"
            )
        }
        if let index = indices[text], index >= first {
            return try reader.fields.log.report(
                .duplicateOperation,
                at: place,
                text,
                "two elements have the name \(text.quoted)"
            )
        }
        guard let name = try reader.fields.name(text, at: place, "an element") else { return }
        var variables: [String: String] = [:]
        for (variable, value) in zip(repetition.variables, element.values) {
            variables[variable] = value.text
        }
        try addOne(name, at: position, nameIsKey: true, node, variables: variables, group: group)
    }

    /// The group has the queue of its elements, and none of their other settings, nor those of the
    /// defaults.
    private mutating func addGroup(
        _ name: String,
        of elements: Range<Int>,
        like element: (description: OperationDescription, keys: OperationKeys),
        at position: Position
    ) throws(Stop) {
        var group = OperationFields(directory: nil)
        group.description.name = name
        group.keys = .all
        if element.keys.contains(.queue) {
            group.description.queue = element.description.queue
        } else {
            group.keys.remove(.queue)
        }
        if elements.isEmpty {
            // What depends on the group waits for what its elements would have waited for.
            group.description.dependencies = element.description.dependencies
            group.dependencyPositions = element.description.dependencies.map { _ in position }
        }
        groups[name] = Group(elements: elements)
        try register(name, at: position)
        try append(group, at: position)
    }

    /// What the texts of a node take each time it is used.
    private static func bytes(of node: Node) -> Int {
        let own = MemoryLayout<String>.stride
        return switch node.value {
        case .null: own
        case .bool(let text), .number(let text), .string(let text): own + text.utf8.count
        case .sequence(let elements): elements.reduce(own) { $0 + bytes(of: $1) }
        case .mapping(let entries):
            entries.reduce(own) { $0 + $1.key.utf8.count + bytes(of: $1.value) }
        }
    }

    // MARK: - Dependencies on groups

    /// Gives each group its dependencies, and replaces `render[*]`: in an element by the element
    /// with the same label, elsewhere by all of them.
    ///
    /// The group succeeds if no element failed, so an operation with the default condition depends
    /// on the group alone: a thousand operations after a thousand need two thousand edges, not a
    /// million. Any other condition is one on each element, and so is a dependency of an operation
    /// that cancels its siblings.
    mutating func resolveGroups() throws(Stop) {
        findExpandedGroups()
        guard !groups.isEmpty else { return }
        let written = sourceMap
        sourceMap = SourceMap()
        // Elements come in the order of their groups.
        let ordered = groups.sorted { $0.value.elements.upperBound < $1.value.elements.upperBound }
        var rest = ordered[...]
        for index in operations.indices {
            while let next = rest.first, next.value.elements.upperBound < index {
                rest.removeFirst()
            }
            let own = rest.first.flatMap { $0.value.elements.contains(index) ? $0.key : nil }
            let name = operations[index].name
            let position = written.operations[index]
            if !adding.isEmpty { try checkName(name, at: position) }
            if let repetition = adding[index] {
                let positions = try resolveElements(of: repetition, at: index, written)
                sourceMap.append(position, dependencies: positions)
            } else if let group = groups[name], group.output == nil, !group.elements.isEmpty,
                group.elements.upperBound == index
            {
                operations[index].dependencies = group.elements.map {
                    DependencyDescription(operations[$0].name)
                }
                let positions = [Position](repeating: position, count: group.elements.count)
                sourceMap.append(position, dependencies: positions)
            } else {
                let positions = try resolveDependencies(of: index, in: own, written)
                sourceMap.append(position, dependencies: positions)
            }
            try checkEdges(at: position, name)
        }
    }

    /// Finds the groups of elements from outputs in a file that was expanded before: each follows
    /// the operation that adds its elements.
    private mutating func findExpandedGroups() {
        for index in expandedAdding where index + 1 < operations.count {
            let (adding, group) = (operations[index], operations[index + 1])
            guard group.work == .nothing, groups[group.name] == nil,
                adding.name == group.name + RepeatedNames.addingSuffix,
                let output = adding.dependencies.first?.name
            else { continue }
            groups[group.name] = Group(elements: index + 1..<index + 1, output: output)
        }
    }

    /// Resolves the dependencies of one operation, and returns their positions.
    private mutating func resolveDependencies(
        of index: Int,
        in group: String?,
        _ written: SourceMap
    ) throws(Stop) -> [Position] {
        let old = operations[index].dependencies
        let positions = old.indices.map { written.position(ofDependency: $0, of: index) }
        guard
            old.contains(where: {
                groups[$0.name] != nil || RepeatedNames.group(ofEach: $0.name) != nil
                    || !adding.isEmpty && $0.name.utf8.last == UInt8(ascii: "]")
            })
        else { return positions }
        var new: [DependencyDescription] = []
        var conditions: [String: DependencyCondition] = [:]
        var newPositions: [Position] = []
        for (dependency, position) in zip(old, positions) {
            var dependency = dependency
            if group == nil { nameGroup(in: &dependency) }
            let meant = try names(meantBy: dependency, of: index, in: group, at: position)
            try parameters.count(
                meant.count * MemoryLayout<DependencyDescription>.stride,
                at: position
            )
            for name in meant {
                let earlier = conditions.updateValue(dependency.condition, forKey: name)
                if let earlier, earlier != dependency.condition {
                    try reader.fields.log.report(
                        .duplicateKey,
                        at: position,
                        name,
                        "the dependency on \(name.quoted) has two different conditions"
                    )
                }
                guard earlier == nil else {
                    let place = dependency.takesElements ? new.firstIndex { $0.name == name } : nil
                    if let place { new[place].takesElements = true }
                    continue
                }
                dependency.name = name
                new.append(dependency)
                newPositions.append(position)
            }
        }
        operations[index].dependencies = new
        return newPositions
    }

    /// Replaces `render[*]` by the group if its elements come from an output, since nobody knows
    /// them yet.
    private func nameGroup(in dependency: inout DependencyDescription) {
        guard let target = RepeatedNames.group(ofEach: dependency.name),
            indices[dependency.name] == nil,
            groups[target]?.output != nil
        else { return }
        dependency.name = target
        dependency.takesElements = true
    }

    /// The operations that a dependency means: all elements, one of them, or the one of the name.
    private mutating func names(
        meantBy dependency: DependencyDescription,
        of index: Int,
        in group: String?,
        at position: Position
    ) throws(Stop) -> [String] {
        let name = dependency.name
        if try refusesUnknownElements(dependency, of: index, at: position) { return [] }
        if let group = groups[name], group.output == nil, !group.elements.isEmpty,
            dependency.condition != .unlessFailed || operations[index].cancelSiblings
        {
            return group.elements.map { operations[$0].name }
        }
        guard let target = RepeatedNames.group(ofEach: name), indices[name] == nil else {
            return [name]
        }
        guard let elements = groups[target]?.elements else {
            try reader.fields.log.report(
                .unknownOperation,
                at: position,
                name,
                "\(name.quoted) names elements of \(target.quoted), which is no repeated operation"
                    + " of this file"
                    + (indices[target] == nil
                        ? Suggestion.hint(for: target, among: groups.keys.sorted()) : "")
            )
            return []
        }
        guard let group else { return elements.map { operations[$0].name } }
        let own = operations[index].name
        let element = target + Substring(own.utf8.dropFirst(group.utf8.count))
        guard indices[element] != nil else {
            try reader.fields.log.report(
                .unknownOperation,
                at: position,
                name,
                "\(own.quoted) depends on \(name.quoted), but there is no \(element.quoted)"
            )
            return []
        }
        return [element]
    }
}
