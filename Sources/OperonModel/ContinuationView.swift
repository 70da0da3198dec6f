/// What an edited graph does with the operations of the graph that it continues.
package struct ContinuationView: Hashable, Sendable, Codable {
    /// The new graph; `nil`: it was only asked what would happen.
    package var graph: GraphView?
    /// In the order of the new graph.
    package var operations: [ContinuedOperationView]
    /// The names of operations that the new graph does not have.
    package var removed: [String]

    package init(operations: [ContinuedOperationView], removed: [String]) {
        self.operations = operations
        self.removed = removed
    }
}

package struct ContinuedOperationView: Hashable, Sendable, Codable {
    package var name: String
    /// The operation as which it succeeded, which stays; `nil`: it runs.
    package var stays: OperationName?
    /// Why it runs: `added`, `changed`, `succeeded`, `failed`, `cancelled`, `skipped`,
    /// `unfinished`, `additions`, `asked` or `dependency`; `nil`: it stays.
    package var reason: String?
    /// The dependency that runs, if that is the reason.
    package var dependency: String?
    /// How many operations it added to the last graph, if it ran in that one. None of them is
    /// kept: what it adds now runs. `nil`: it stays, added none, or repeats an operation for an
    /// output, of which elements may stay.
    package var additions: Int?

    package init(name: String) { self.name = name }
}
