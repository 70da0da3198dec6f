package import OperonModel

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
    /// How many of those that succeeded were up to date.
    package private(set) var upToDate = 0
    /// `nil`: not the same for all.
    package private(set) var queue: String?
    package private(set) var priority: QueuePriority?
    /// Those of all elements.
    package private(set) var attempts = 0

    /// Without elements.
    fileprivate init(_ group: ElementFolding.Group, _ operation: OperationView) {
        title = group.title
        graph = operation.graph
    }

    fileprivate mutating func add(_ element: OperationView) {
        if counts.total == 0 {
            (queue, priority) = (element.queue, element.priority)
        } else {
            if element.queue != queue { queue = nil }
            if element.priority != priority { priority = nil }
        }
        counts.add(element)
        if element.isUpToDate == true { upToDate += 1 }
        attempts += Int(element.attempts)
    }
}

/// Folds a list of operations, page by page.
package struct OperationFolding: Sendable {
    private var folding = ElementFolding()
    /// The rows so far. Those of elements whose group may still follow are among them.
    private var all: [OperationRow] = []
    /// How many of them, from the first, belong to operations up to `after`.
    private var hiddenCount = 0
    /// The index up to which operations have no rows; `nil`: all have.
    private let after: UInt32?
    /// The index of the last operation that was added.
    package private(set) var last: UInt32?
    /// The rows of the groups to which elements are added, by the number of the group. Only looked
    /// up.
    private var growing: [Int: Int] = [:]

    /// - Parameter after: the index of the operation after which a list goes on. The operations up
    ///   to it are added as well, so that those behind it are known as elements of their rows.
    package init(after: UInt32? = nil) { self.after = after }

    /// The rows behind `after`.
    package var rows: ArraySlice<OperationRow> { all[hiddenCount...] }

    /// Whether elements of a row may still follow, however many rows there are.
    package var isGrowing: Bool { folding.isGrowing }

    package mutating func add(_ operation: OperationView) {
        last = operation.index
        switch folding.add(operation.name, kind: operation.kind) {
        case nil:
            // Of what has no row, only what a group may follow is kept.
            guard !isHidden(operation) || Self.mayGoIntoGroup(operation) else { return }
            append(.operation(operation), of: operation)
        case .element(let number): add(operation, to: number)
        case .group(let number):
            let group = folding.groups[number]
            var row = RepeatedRow(group, operation)
            let elements = all.suffix(group.elements.count)
            for case .operation(let element) in elements { row.add(element) }
            removeLast(elements.count)
            // Once it has added the elements, they are what there is to see.
            if group.adding != nil, case .operation(let adding) = all.last,
                adding.outcome == .succeeded
            {
                removeLast(1)
            }
            if group.adding != nil { growing[number] = all.count }
            append(.repeated(row), of: operation)
        }
    }

    private mutating func append(_ row: OperationRow, of operation: OperationView) {
        if isHidden(operation) { hiddenCount += 1 }
        all.append(row)
    }

    private func isHidden(_ operation: OperationView) -> Bool {
        after.map { operation.index <= $0 } ?? false
    }

    private mutating func removeLast(_ count: Int) {
        all.removeLast(count)
        hiddenCount = min(hiddenCount, all.count)
    }

    /// Counts an operation that follows the last row, if it is an element of one of the rows.
    /// Returns whether it is.
    package mutating func addElement(_ operation: OperationView) -> Bool {
        guard let number = folding.group(ofAdded: operation.name) else { return false }
        add(operation, to: number)
        return true
    }

    private mutating func add(_ element: OperationView, to number: Int) {
        guard let place = growing[number], case .repeated(var row) = all[place] else { return }
        row.add(element)
        all[place] = .repeated(row)
    }

    /// Whether the last operation may be one whose row the group that follows takes.
    package var isWithinGroup: Bool {
        guard case .operation(let operation) = all.last else { return false }
        return Self.mayGoIntoGroup(operation)
    }

    /// Whether a group may follow the operation and take its row.
    private static func mayGoIntoGroup(_ operation: OperationView) -> Bool {
        operation.name.utf8.last == UInt8(ascii: "]")
            || operation.kind == Work.forEachKind && operation.outcome == .succeeded
    }
}

extension ElementFolding.Group {
    /// The indices of the operations for which the group stands in a drawing.
    package var members: [Int] {
        (adding.map { [$0] } ?? []) + indices.flatMap { Array($0) }
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
        /// The number of the group, by the index of the group itself.
        var numbers: [Int: Int] = [:]
        var hidden: Set<Int> = []
        for (number, group) in groups.enumerated() {
            numbers[group.index] = number
            titles[group.name] = group.title
            hidden.formUnion(group.members)
            for index in group.members { titles[operations[index].name] = group.title }
        }
        var folded = self
        folded.operations = operations.indices.filter { !hidden.contains($0) }.map { index in
            let operation = operations[index]
            // The group depends on the elements, and on what adds them, only.
            let all =
                numbers[index].map { groups[$0].members.flatMap { operations[$0].dependencies } }
            return Self.renamed(operation, titles, dependencies: all ?? operation.dependencies)
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
