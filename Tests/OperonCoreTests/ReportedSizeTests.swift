import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// What operations report and ask is cut or refused before it is an event that no message carries:
/// such an event would be sent again with every beat, and its operation would never end.
struct ReportedSizeTests {
    private let limits = Limits()

    private func bench() -> WorkerBench {
        var bench = WorkerBench(slots: 1)
        bench.join()
        bench.dispatch([1])
        bench.drain()
        return bench
    }

    private func reported(_ change: (inout AttemptResult) -> Void) throws -> AttemptResult {
        var bench = bench()
        var result = bench.result()
        change(&result)
        bench.drive(.ended(WorkerBench.held(1).attempt, result))
        let events = bench.drain().events
        #expect(events.allSatisfy { $0.byteCount < limits.messageBytes / 2 })
        guard case .finished(_, let reported)? = events.last else {
            throw Unexpected(events: events)
        }
        return reported
    }

    private struct Unexpected: Error { let events: [WorkerEvent] }

    @Test func `an error of any length is cut`() throws {
        let long = String(repeating: "é", count: 5 << 20)
        let errors: [OperationError] = [
            .thrown(type: long, message: long, payload: Array(repeating: 1, count: 9 << 20)),
            .kindUnknown(long), .signal(name: long), .undecodable(long),
            .versionUnsupported(long), .conditionFailed(name: long),
        ]
        for error in errors {
            let result = try reported { $0.end = .failed(error) }
            guard case .failed(let told) = result.end else {
                Issue.record("\(result.end)")
                continue
            }
            #expect(told.code == error.code)
            #expect(told.byteCount < 2 * (64 << 10) + 16)
            #expect(told.byteCount >= 64 << 10)
        }
        let short = OperationError.thrown(type: "T", message: "m", payload: [1])
        #expect(try reported { $0.end = .failed(short) }.end == .failed(short))
    }

    @Test func `an output over the limit fails its operation`() throws {
        let bytes = limits.payloadBytes + 1
        let result = try reported {
            $0.output = Payload(bytes: Array(repeating: 0, count: bytes))
        }
        #expect(
            result.end == .failed(.outputTooLarge(bytes: bytes, limit: limits.payloadBytes))
        )
        #expect(result.output == .empty)
        let named = try reported {
            $0.output = Payload(
                contentType: String(repeating: "x", count: 9 << 20),
                bytes: [1]
            )
        }
        guard case .failed(.undecodable) = named.end else {
            Issue.record("\(named.end)")
            return
        }
    }

    @Test func `of a log the first and the last bytes are reported`() throws {
        let bytes = limits.logBytes + 3
        let whole = try reported { $0.log.tail = Array(repeating: 1, count: bytes) }
        #expect(whole.log.head.count == KeptLog.headBytes(of: limits.logBytes))
        #expect(whole.log.count == limits.logBytes)
        #expect(whole.log.missing == 3)
        let cut = try reported {
            $0.log = KeptLog(head: [2], missing: 4, tail: Array(repeating: 1, count: bytes))
        }
        #expect(cut.log.head == [2])
        #expect(cut.log.count == limits.logBytes)
        #expect(cut.log.missing == 8)
    }

    @Test func `names that no operation can have are refused`() {
        let long = String(repeating: "n", count: 9 << 20)
        let contents: [WorkerAgent.RequestContent] = [.read(long), .wait(["b", long])]
        for content in contents {
            var bench = bench()
            bench.drive(.asked(1, WorkerBench.held(1).attempt, content))
            let effects = bench.drain()
            guard case .refused(.invalid)? = effects.answers.first?.content else {
                Issue.record("\(effects.answers.count) answers")
                continue
            }
            #expect(effects.events.isEmpty)
        }
        // A graph, the number and the name, each as long as it may be.
        let name = String(repeating: "n", count: limits.nameBytes)
        var bench = bench()
        bench.drive(.asked(1, WorkerBench.held(1).attempt, .wait(["\(name)/4294967295/\(name)"])))
        #expect(bench.drain().answers.isEmpty)
    }
}
