import OperonCore
import OperonModel
import OperonRuntime
import Testing

/// What the record of a run takes over from the run before.
@Suite struct RunRecordTests {
    private static func cancelled() -> RunRecord {
        var record = RunRecord(operationCount: 2)
        let first = OperationID(graph: GraphID(rawValue: 0), index: 0)
        record.note(.finished(first, .cancelled(reason: "test")), at: .zero)
        return record
    }

    private static let progress = [
        OperationProgress(state: .ready, outcome: nil, isUpToDate: false),
        OperationProgress(state: .finished, outcome: .succeeded, isUpToDate: true),
    ]

    @Test func `what runs again has no outcome of the run before`() {
        var record = Self.cancelled()
        record.restore(Self.progress, isResumed: true)
        #expect(record.operations.map(\.outcome) == [nil, .succeeded])
        #expect(record.operations[0].finishedAt == nil)
        #expect(record.operations[1].isUpToDate)
    }

    @Test func `what ended in an edited run stays ended`() {
        var record = Self.cancelled()
        record.restore(Self.progress, isResumed: false)
        #expect(record.operations.map(\.outcome) == [.cancelled(reason: "test"), .succeeded])
    }

    @Test func `what was just added is left to its notice`() {
        var record = RunRecord(operationCount: 1)
        record.restore(Self.progress, isResumed: true)
        #expect(record.operations.count == 1)
    }
}
