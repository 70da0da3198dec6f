/// The reports of the operations of a run. Each is made when it is read: the reports of a million
/// operations would take more memory than the graph.
package struct OperationReports: RandomAccessCollection, Sendable {
    private let make: @Sendable (Int) -> OperationReport
    package let startIndex = 0
    package let endIndex: Int

    /// `make` returns the report of the operation with an index in 0..<`count`, always the same for
    /// an index.
    package init(count: Int, make: @escaping @Sendable (Int) -> OperationReport) {
        endIndex = count
        self.make = make
    }

    package init(_ reports: [OperationReport]) {
        self.init(count: reports.count) { reports[$0] }
    }

    package subscript(index: Int) -> OperationReport { make(index) }
}

extension OperationReports: ExpressibleByArrayLiteral {
    package init(arrayLiteral reports: OperationReport...) { self.init(reports) }
}
