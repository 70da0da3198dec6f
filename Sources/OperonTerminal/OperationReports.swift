/// What each operation of a run did, made when it is looked at: of a million operations the reports
/// would take more memory than the graph.
package struct OperationReports: RandomAccessCollection, Sendable {
    private let make: @Sendable (Int) -> OperationReport
    package let startIndex = 0
    package let endIndex: Int

    /// `make` gives the report of the operation with an index from 0 to `count`, always the same.
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
