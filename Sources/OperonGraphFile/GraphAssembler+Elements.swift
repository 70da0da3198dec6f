import OperonModel

/// An operation with `forEach` or `matrix` becomes an operation for each element, and one with the
/// plain name, the group: it does nothing, and depends on all elements.
extension GraphAssembler {
    /// What an element counts beside its texts, so that a short file does not become a graph of any
    /// size.
    private static let elementBytes = 32
    /// The same for each comparison with what `exclude` names.
    private static let exclusionBytes = 16
    /// How a dependency names the element that belongs to its own.
    private static let eachSuffix = "[*]"

    struct Group {
        /// The indices of the elements; the group itself follows them.
        let elements: Range<Int>
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
        guard let repetition = try repetition(in: entries), let name else {
            return try addPlaceholder(at: position)
        }
        guard repetition.indexCount < limits.operationsPerGraph else {
            // With the group.
            let (count, isTooLarge) = repetition.indexCount.addingReportingOverflow(1)
            throw tooMany(isTooLarge ? .max : count, .operationsPerGraph, at: position, name)
        }
        guard declaresParameters || !name.contains("${") else {
            try reader.fields.log.report(
                .invalidValue,
                at: position,
                name,
                "the name \(name.quoted) of a repeated operation has no “${”: each element has its"
                    + " values after the name, as in “render[a.png]”"
            )
            return try addPlaceholder(at: position)
        }
        let nameKey = OperationKey.name.name
        let template = Node(
            .mapping(
                entries.filter {
                    !RepetitionReader.keys.contains($0.key) && (nameIsKey || $0.key != nameKey)
                }
            ),
            at: position
        )
        let bytes =
            Self.elementBytes + Self.bytes(of: template)
            + Self.exclusionBytes * repetition.exclusionCount
        let problems = reader.fields.log.problems.count
        let first = operations.count
        for index in 0..<repetition.indexCount {
            // What is left out takes time, too.
            try parameters.count(bytes, at: position)
            guard let element = repetition.element(at: index) else { continue }
            parameters.set(repetition.variables, to: element.values)
            let node = try parameters.expanded(template, reporting: &reader.fields)
            if let node {
                try addElement(
                    element,
                    of: repetition,
                    named: name + element.label,
                    since: first,
                    at: position,
                    node
                )
            }
            // What is wrong with one element is wrong with all.
            guard reader.fields.log.problems.count == problems else { break }
        }
        parameters.unset(repetition.variables)
        try addGroup(name, of: first..<operations.count, at: position)
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
        let values = RepetitionReader(base: reader.base, parameters: parameters.names)
        return entry.key == OperationKey.forEach.name
            ? try values.forEach(entry, reporting: &reader.fields)
            : try values.matrix(entry, reporting: &reader.fields)
    }

    private mutating func addElement(
        _ element: Repetition.Element,
        of repetition: Repetition,
        named text: String,
        since first: Int,
        at position: Position,
        _ node: Node
    ) throws(Stop) {
        let place = element.values.first?.position ?? position
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
        try addOne(name, at: position, nameIsKey: true, node, variables: variables)
    }

    /// The group has the queue of its elements, and none of their other settings, nor those of the
    /// defaults.
    private mutating func addGroup(
        _ name: String,
        of elements: Range<Int>,
        at position: Position
    ) throws(Stop) {
        var group = OperationFields(directory: nil)
        group.description.name = name
        group.keys = .all
        if let first = elements.first, keys[first].contains(.queue) {
            group.description.queue = operations[first].queue
        } else {
            group.keys.remove(.queue)
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
    /// million. Any other condition is one on each element.
    mutating func resolveGroups() throws(Stop) {
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
            if let group = groups[name], group.elements.upperBound == index {
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

    /// Resolves the dependencies of one operation, and returns their positions.
    private mutating func resolveDependencies(
        of index: Int,
        in group: String?,
        _ written: SourceMap
    ) throws(Stop) -> [Position] {
        let old = operations[index].dependencies
        let positions = old.indices.map { written.position(ofDependency: $0, of: index) }
        guard old.contains(where: { groups[$0.name] != nil || $0.name.hasSuffix(Self.eachSuffix) })
        else { return positions }
        var new: [DependencyDescription] = []
        var conditions: [String: DependencyCondition] = [:]
        var newPositions: [Position] = []
        for (dependency, position) in zip(old, positions) {
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
                guard earlier == nil else { continue }
                new.append(DependencyDescription(name, dependency.condition))
                newPositions.append(position)
            }
        }
        operations[index].dependencies = new
        return newPositions
    }

    /// The operations that a dependency means: all elements, one of them, or the one of the name.
    private mutating func names(
        meantBy dependency: DependencyDescription,
        of index: Int,
        in group: String?,
        at position: Position
    ) throws(Stop) -> [String] {
        let name = dependency.name
        if let group = groups[name], !group.elements.isEmpty,
            dependency.condition != .unlessFailed
        {
            return group.elements.map { operations[$0].name }
        }
        guard name.hasSuffix(Self.eachSuffix), indices[name] == nil else { return [name] }
        let target = String(name.dropLast(Self.eachSuffix.count))
        guard let elements = groups[target]?.elements else {
            try reader.fields.log.report(
                .unknownOperation,
                at: position,
                name,
                "\(name.quoted) names elements of \(target.quoted), which has neither “forEach”"
                    + " nor “matrix”"
                    + (indices[target] == nil
                        ? Suggestion.hint(for: target, among: groups.keys.sorted()) : "")
            )
            return []
        }
        guard let group else { return elements.map { operations[$0].name } }
        let own = operations[index].name
        let element = target + own.dropFirst(group.count)
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
