import OperonModel

/// The operations that depend on an operation of another graph, in order of arrival.
///
/// Entries of dropped graphs stay listed until they are half of the list. So dropping a dependent
/// costs a constant number of steps on average, however many dependents there are.
struct OuterDependents: Sendable {
    private(set) var all: [Dependency] = []
    /// How many of `all` belong to graphs that were dropped.
    private(set) var goneCount = 0

    var isEmpty: Bool { all.count == goneCount }

    mutating func append(_ dependent: Dependency) { all.append(dependent) }

    mutating func remove(_ operation: OperationID) { all.removeAll { $0.operation == operation } }

    /// This many of the entries belong to a graph that was dropped just now.
    ///
    /// - Returns: How many entries were visited.
    mutating func lose(_ count: Int, isGone: (GraphID) -> Bool) -> Int {
        goneCount += count
        guard goneCount * 2 >= all.count else { return count }
        let steps = all.count
        all.removeAll { isGone($0.operation.graph) }
        goneCount = 0
        return steps
    }
}
