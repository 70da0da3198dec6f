package import OperonModel

/// Finds the repeated operations in a list of operations, so that each is shown as one line.
///
/// A graph file names the elements `render[…]`, and their group, which follows them and does
/// nothing, `render`. What has these names in this order is a repeated operation, wherever the list
/// comes from.
package struct ElementFolding: Sendable {
    /// One repeated operation.
    package struct Group: Hashable, Sendable {
        /// The plain name, which is that of the group.
        package let name: String
        /// The indices of the elements; there is at least one. The group itself follows them.
        package let elements: Range<Int>

        /// The name that stands for all elements.
        package var title: String { name + "[*]" }
    }

    /// In the order of the list.
    package private(set) var groups: [Group] = []
    /// The number of operations.
    package private(set) var count = 0
    /// The names of the last operations that may be elements.
    private var candidates: [String] = []

    package init() {}

    /// The repeated operations of a graph.
    package init(_ operations: some Sequence<OperationDescription>) {
        for operation in operations { add(operation.name, isNothing: operation.work == .nothing) }
    }

    /// Adds the next operation of the list. Returns its group, if it is one.
    @discardableResult
    package mutating func add(_ name: String, isNothing: Bool) -> Group? {
        defer { count += 1 }
        let begin = isNothing ? name + "[" : ""
        if isNothing, candidates.last?.hasPrefix(begin) == true {
            let length = candidates.reversed().prefix { $0.hasPrefix(begin) }.count
            candidates = []
            let group = Group(name: name, elements: count - length..<count)
            groups.append(group)
            return group
        }
        if name.utf8.last == UInt8(ascii: "]") {
            candidates.append(name)
        } else {
            candidates = []
        }
        return nil
    }
}

/// A row of a list of operations.
package enum OperationRow: Hashable, Sendable {
    case operation(OperationView)
    case repeated(RepeatedRow)
}

/// A repeated operation in a list: its elements, without their group.
package struct RepeatedRow: Hashable, Sendable {
    package let graph: UInt32
    package let title: String
    package private(set) var counts = StateCounts()
    /// `nil`: not the same for all.
    package private(set) var queue: String?
    package private(set) var priority: QueuePriority?
    /// Those of all elements.
    package private(set) var attempts = 0

    fileprivate init(_ group: ElementFolding.Group, _ elements: ArraySlice<OperationRow>) {
        title = group.title
        var first: OperationView?
        for case .operation(let element) in elements {
            counts.add(element)
            attempts += Int(element.attempts)
            guard let known = first else {
                (first, queue, priority) = (element, element.queue, element.priority)
                continue
            }
            if element.queue != known.queue { queue = nil }
            if element.priority != known.priority { priority = nil }
        }
        graph = first?.graph ?? 0
    }
}

/// Folds a list of operations, page by page.
package struct OperationFolding: Sendable {
    private var folding = ElementFolding()
    /// The rows so far. Those of elements whose group may still follow are among them.
    package private(set) var rows: [OperationRow] = []
    /// The index of the last operation that was added.
    package private(set) var last: UInt32?

    package init() {}

    package mutating func add(_ operation: OperationView) {
        last = operation.index
        let isNothing = operation.kind == Work.nothingKind
        guard let group = folding.add(operation.name, isNothing: isNothing) else {
            return rows.append(.operation(operation))
        }
        let elements = rows.suffix(group.elements.count)
        let row = RepeatedRow(group, elements)
        rows.removeLast(elements.count)
        rows.append(.repeated(row))
    }

    /// Whether the last operation may be an element whose group follows.
    package var isWithinGroup: Bool {
        guard case .operation(let operation) = rows.last else { return false }
        return operation.name.utf8.last == UInt8(ascii: "]")
    }
}

extension StateCounts {
    fileprivate mutating func add(_ operation: OperationView) {
        switch (operation.state, operation.outcome) {
        case (.pending, _): pending += 1
        case (.ready, _): ready += 1
        case (.dispatched, _): dispatched += 1
        case (.executing, _): executing += 1
        case (.finished, .succeeded?), (.finished, nil): succeeded += 1
        case (.finished, .failed?): failed += 1
        case (.finished, .cancelled?): cancelled += 1
        case (.finished, .skipped?): skipped += 1
        }
    }
}

extension GraphDescription {
    /// The graph with one operation, named `render[*]`, for each repeated operation and its group.
    /// It is for drawings: dependencies between elements of the same operation are left out.
    package var folded: GraphDescription {
        let groups = ElementFolding(operations).groups
        guard !groups.isEmpty else { return self }
        var titles: [String: String] = [:]
        for group in groups {
            for index in group.elements { titles[operations[index].name] = group.title }
            titles[group.name] = group.title
        }
        var folded = self
        folded.operations = []
        var next = 0
        for group in groups {
            folded.operations += operations[next..<group.elements.lowerBound].map {
                Self.renamed($0, titles, dependencies: $0.dependencies)
            }
            next = group.elements.upperBound + 1
            // The group depends on the elements only.
            let all = operations[group.elements].flatMap(\.dependencies)
            folded.operations.append(
                Self.renamed(operations[group.elements.upperBound], titles, dependencies: all)
            )
        }
        folded.operations += operations[next...].map {
            Self.renamed($0, titles, dependencies: $0.dependencies)
        }
        return folded
    }

    private static func renamed(
        _ operation: OperationDescription,
        _ titles: [String: String],
        dependencies: [DependencyDescription]
    ) -> OperationDescription {
        var renamed = operation
        renamed.name = titles[operation.name] ?? operation.name
        renamed.dependencies = []
        var known: Set<DependencyDescription> = []
        for var dependency in dependencies {
            dependency.name = titles[dependency.name] ?? dependency.name
            guard dependency.name != renamed.name, known.insert(dependency).inserted else {
                continue
            }
            renamed.dependencies.append(dependency)
        }
        return renamed
    }
}
