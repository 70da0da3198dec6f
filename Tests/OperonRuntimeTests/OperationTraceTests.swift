import InMemoryTracing
import NIOConcurrencyHelpers
import OperonModel
import OperonPorts
import OperonRuntime
import ServiceContextModule
import Testing
import Tracing

@Suite struct OperationTraceTests {
    private static let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    private static func operation() -> DispatchedOperation {
        DispatchedOperation(
            held: HeldAttempt(
                attempt: AttemptID(epoch: Epoch(rawValue: 1), number: 1),
                operation: OperationID(graph: GraphID(rawValue: 0), index: 0)
            ),
            ordinal: 2,
            graphName: "graph",
            name: "render",
            queue: "tiles",
            work: .nothing,
            priority: .normal,
            rank: 0,
            timeout: nil,
            qualityOfService: .default,
            inputs: [],
            traceParent: parent
        )
    }

    private static func result(_ end: AttemptEnd) -> AttemptResult {
        AttemptResult(end: end, startedAt: .zero, endedAt: .zero)
    }

    @Test func `an attempt is a span that its code continues`() async {
        let tracer = InMemoryTracer()
        let ended = await OperationTrace(tracer: tracer).span(around: Self.operation()) { _ in
            tracer.startSpan("inside").end()
            return Self.result(.succeeded)
        }

        #expect(ended.end == .succeeded)
        let spans = tracer.finishedSpans
        #expect(spans.map(\.operationName) == ["inside", "render"])
        #expect(spans.first?.parentSpanID == spans.last?.spanID)
        #expect(spans.last?.attributes["operon.queue"]?.toSpanAttribute() == .string("tiles"))
        #expect(spans.last?.attributes["operon.attempt"]?.toSpanAttribute() == .int64(2))
        #expect(spans.last?.status == nil)
    }

    @Test func `what failed says so`() async {
        let tracer = InMemoryTracer()
        _ = await OperationTrace(tracer: tracer).span(around: Self.operation()) { _ in
            Self.result(.failed(.exit(code: 3)))
        }

        #expect(tracer.finishedSpans.last?.status?.code == .error)
    }

    @Test func `without a tracer an attempt hands on what it was given`() async {
        var given: String?
        _ = await OperationTrace(tracer: NoOpTracer()).span(around: Self.operation()) { operation in
            given = operation.traceParent
            return Self.result(.succeeded)
        }

        #expect(given == Self.parent)
    }

    // MARK: - Without a tracer, with what takes spans

    private final class Sink: SpanSink {
        let spans = NIOLockedValueBox<[TraceSpan]>([])
        let linksMax = 128

        func take(_ spans: [TraceSpan]) { self.spans.withLockedValue { $0 += spans } }

        func isSampled(_ trace: TraceContext.TraceID, parent: TraceContext?) -> Bool { true }
    }

    @Test func `a span of an attempt is the parent of what it starts`() async throws {
        let sink = Sink()
        var given: String?
        _ = await OperationTrace(sink).span(around: Self.operation()) { operation in
            given = operation.traceParent
            return Self.result(.failed(.exit(code: 3)))
        }

        let span = try #require(sink.spans.withLockedValue { $0 }.first)
        #expect(span.context.traceParent == given)
        #expect(span.context.with(try #require(span.parent)).traceParent == Self.parent)
        #expect(span.name == "render")
        #expect(span.error == "exit code 3")
        #expect(span.attributes.contains(.init("operon.attempt", .number(2))))
    }

    @Test(arguments: ["", "nonsense", String(parent.dropLast(2) + "00")])
    func `what is not recorded passes on what it was given`(traceParent: String) async {
        let sink = Sink()
        var operation = Self.operation()
        operation.traceParent = traceParent
        var given: String?
        _ = await OperationTrace(sink).span(around: operation) { operation in
            given = operation.traceParent
            return Self.result(.succeeded)
        }

        #expect(given == traceParent)
        #expect(sink.spans.withLockedValue { $0.isEmpty })
    }
}
