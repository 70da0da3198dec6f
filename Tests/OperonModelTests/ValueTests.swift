import Foundation
import OperonModel
import Testing

/// The small values: priorities, ids, conditions, outcomes, errors, limits.
struct ValueTests {
    /// Stores and messages have the numbers: one that changed would be read as something else.
    @Test func `what is kept or sent as a number keeps its number`() {
        func names<Kept: CaseIterable & RawRepresentable>(_: Kept.Type) -> [String]
        where Kept.RawValue: FixedWidthInteger {
            Kept.allCases.map { "\($0.rawValue) \($0)" }
        }
        #expect(
            names(DependencyCondition.self)
                == ["0 unlessFailed", "1 finished", "2 succeeded", "3 failed"]
        )
        #expect(
            names(OutcomeKind.self) == ["0 succeeded", "1 failed", "2 cancelled", "3 skipped"]
        )
        #expect(
            names(OperationState.self)
                == ["0 pending", "1 ready", "2 dispatched", "3 executing", "4 finished"]
        )
        #expect(names(OperationOrder.self) == ["0 criticalPath", "1 submission"])
        #expect(
            names(QualityOfService.self) == [
                "0 background", "1 utility", "2 default", "3 userInitiated", "4 userInteractive",
            ]
        )
        #expect(
            names(ClusterEvent.Ending.self) == [
                "1 succeeded", "2 failed", "3 cancelled", "4 returned", "5 lost", "6 crashed",
            ]
        )
        #expect(
            names(ClusterEvent.Kind.self) == [
                "1 graphSubmitted", "2 graphAdded", "3 graphClosed", "4 graphFinished",
                "5 graphCancelled", "6 suspended", "7 resumed", "8 queueSet", "9 queueCancelled",
                "10 priority", "11 cancelRequested", "12 granted", "13 started",
                "14 attemptEnded", "15 retry", "16 finished", "17 reopened",
                "18 dependencyAdded", "19 dependencyRemoved", "20 workerJoined", "21 workerLost",
                "22 workerDraining", "23 keySet", "24 rangeFinished",
                "25 triggerAdded", "26 triggerReplaced", "27 triggerRemoved",
                "28 triggerSuspended", "29 triggerResumed", "30 triggerFired",
            ]
        )
    }

    @Test func `the name of an event's kind is read back, known or not`() throws {
        for kind in ClusterEvent.Kind.allCases { #expect(EventKind(kind).known == kind) }
        let later = Data("[\"keyLent\"]".utf8)
        let kinds = try JSONDecoder().decode([EventKind].self, from: later)
        #expect(kinds.map(\.known) == [nil])
        #expect(try JSONEncoder().encode(kinds) == later)
    }

    @Test func `priorities have Foundation's values, in order, and levels from 0 to 4`() {
        #expect(QueuePriority.allCases.map(\.rawValue) == [-8, -4, 0, 4, 8])
        #expect(QueuePriority.allCases.sorted() == QueuePriority.allCases)
        #expect(QueuePriority.allCases.map(\.level) == [0, 1, 2, 3, 4])
        let inverse = (UInt8(0)...4).map { QueuePriority(level: $0) }
        #expect(inverse == QueuePriority.allCases.map { Optional($0) })
        #expect(QueuePriority(level: 5) == nil)
        #expect(QueuePriority(level: .max) == nil)
        #expect(
            QueuePriority.allCases.map(\.name)
                == ["veryLow", "low", "normal", "high", "veryHigh"]
        )
    }

    @Test func `no quality of service raises a process above its worker`() {
        #expect(QualityOfService.allCases.map(\.niceness) == [19, 10, 0, 0, 0])
        #expect(
            QualityOfService.allCases.map(\.name) == [
                "background", "utility", "default", "userInitiated", "userInteractive",
            ]
        )
    }

    @Test(arguments: [0, 1, 0xdead_beef, UInt64.max])
    func `a random id reads back what it wrote`(_ bits: UInt64) {
        let id = Incarnation(rawValue: bits)

        #expect(id.description.count == 16)
        #expect(Incarnation(text: id.description) == id)
    }

    @Test(arguments: ["", "0", "00000000000000000", "000000000000000g", "-000000000000001"])
    func `what is no random id is refused`(_ text: String) {
        #expect(Reign(text: text) == nil)
    }

    @Test func `ids are ordered as they were given out`() {
        let first = OperationID(graph: GraphID(rawValue: 1), index: 9)
        let second = OperationID(graph: GraphID(rawValue: 2), index: 0)
        let old = AttemptID(epoch: Epoch(rawValue: 1), number: 99)
        let new = AttemptID(epoch: Epoch(rawValue: 2), number: 1)

        #expect(first < second && old < new)
        #expect(first.description == "1/9")
        #expect(new.description == "2.1")
    }

    @Test func `conditions keep their wire values and names`() {
        #expect(DependencyCondition.allCases.map(\.rawValue) == [0, 1, 2, 3])
        #expect(
            DependencyCondition.allCases.map(\.name)
                == ["unlessFailed", "finished", "succeeded", "failed"]
        )
    }

    @Test func `an outcome knows its kind`() {
        let id = OperationID(graph: GraphID(rawValue: 0), index: 0)
        let outcomes: [Outcome] = [
            .succeeded, .failed(.timeout), .cancelled(reason: ""), .skipped(cause: id),
        ]
        #expect(outcomes.map(\.kind) == OutcomeKind.allCases)
    }

    @Test func `only what the work itself did is worth another attempt`() {
        let retryable: [OperationError] = [
            .thrown(type: "E", message: "", payload: []), .exit(code: 1), .signal(name: "SIGKILL"),
            .timeout,
        ]
        let final: [OperationError] = [
            .kindUnknown("k"), .deadline, .workerLost, .inputTooLarge(bytes: 2, limit: 1),
            .outputTooLarge(bytes: 2, limit: 1), .undecodable("u"), .versionUnsupported("v"),
            .conditionFailed(name: "c"),
        ]
        for error in retryable { #expect(error.isRetryable, "\(error)") }
        for error in final { #expect(!error.isRetryable, "\(error)") }
        #expect(Set((retryable + final).map(\.code)).count == 12)
    }

    @Test func `an error is a line for a person`() {
        #expect(
            OperationError.thrown(type: "E", message: "no disk", payload: []).description
                == "no disk"
        )
        #expect(OperationError.thrown(type: "E", message: "", payload: []).description == "E")
        #expect(OperationError.exit(code: 3).description == "exit code 3")
    }

    @Test func `a refusal says what to change`() {
        #expect(
            Refusal.unknownOperation(name: "b", namedBy: "a").description
                == "“a” depends on “b”, which does not exist"
        )
        #expect(
            Refusal.limitExceeded(limit: .slots, value: 5_000, maximum: 4_096).description
                == "slots of a worker: 5000 is over the limit of 4096"
        )
    }

    @Test func `work names its kind`() {
        let works: [Work] = [
            .nothing, .wait(.seconds(1)), .command(CommandDescription(arguments: ["true"])),
            .registered(kind: Work.forEachKind, input: .empty),
        ]
        #expect(works.map(\.kind).sorted() == Work.builtInKinds)
        #expect(Work.registered(kind: "Blur", input: .empty).kind == "Blur")
        #expect((works + [.external(input: .empty)]).map(\.kind).sorted() == Work.reservedKinds)
    }

    @Test func `an attempt is read as it is written, and nothing else is one`() {
        for id in [
            AttemptID(epoch: Epoch(rawValue: 0), number: 0),
            AttemptID(epoch: Epoch(rawValue: .max), number: .max),
        ] {
            #expect(AttemptID(id.description) == id)
        }
        for text in ["", "1", "1.", ".1", "1.2.3", "01.2", "1.02", "+1.2", "1.-2", "1.2 ", "a.b"] {
            #expect(AttemptID(text) == nil, "\(text)")
        }
        #expect(AttemptID("4294967296.1") == nil)
    }

    @Test func `every limit has words of its own`() {
        #expect(Set(LimitName.allCases.map(\.description)).count == LimitName.allCases.count)
    }
}
