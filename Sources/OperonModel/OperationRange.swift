/// Operations of one graph with successive indices, in that order.
package struct OperationRange: Hashable, Sendable, Codable {
    package var graph: GraphID
    package var indices: Range<UInt32>

    package init(graph: GraphID, indices: Range<UInt32>) {
        self.graph = graph
        self.indices = indices
    }

    package func contains(_ operation: OperationID) -> Bool {
        operation.graph == graph && indices.contains(operation.index)
    }
}

extension OperationRange: RandomAccessCollection {
    package var startIndex: UInt32 { indices.lowerBound }
    package var endIndex: UInt32 { indices.upperBound }

    package subscript(index: UInt32) -> OperationID { OperationID(graph: graph, index: index) }
}
