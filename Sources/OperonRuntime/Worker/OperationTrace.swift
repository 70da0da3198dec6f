package import OperonModel
package import OperonPorts

#if Cluster
import Instrumentation
import ServiceContextModule
package import Tracing
#endif

/// The trace that an operation belongs to. The submitter names it as a `traceparent` (W3C trace
/// context), which travels with every attempt. Whatever an attempt starts continues the span of the
/// attempt: code through the task's context, a process through `TRACEPARENT`.
package struct OperationTrace: Sendable {
    /// Who makes the spans of attempts.
    private enum Recorder: Sendable {
        /// Nobody: an attempt passes on the trace that it was given.
        case none
        case sink(any SpanSink)
        #if Cluster
        /// The tracer of a program that links Operon.
        case tracer(any Tracer)
        #endif
    }

    private let recorder: Recorder

    private static var ofProgram: Recorder {
        #if Cluster
        let tracer = InstrumentationSystem.tracer
        return tracer is NoOpTracer ? .none : .tracer(tracer)
        #else
        return .none
        #endif
    }

    /// - Parameter sink: Takes the spans of traces that are recorded; `nil`: the program's tracer
    ///   makes them, if it has one.
    package init(_ sink: (any SpanSink)? = nil) {
        recorder = sink.map { .sink($0) } ?? Self.ofProgram
    }

    /// Runs an attempt within a span of its own.
    package func span(
        around operation: DispatchedOperation,
        _ run: (DispatchedOperation) async -> AttemptResult
    ) async -> AttemptResult {
        switch recorder {
        case .none: return await run(operation)
        case .sink(let sink):
            guard let given = TraceContext(operation.traceParent), given.isSampled,
                sink.isSampled(given.trace, parent: given)
            else { return await run(operation) }
            return await span(around: operation, within: given, sink, run)
        #if Cluster
        case .tracer(let tracer): return await span(around: operation, tracer, run)
        #endif
        }
    }

    private func span(
        around given: DispatchedOperation,
        within parent: TraceContext,
        _ sink: any SpanSink,
        _ run: (DispatchedOperation) async -> AttemptResult
    ) async -> AttemptResult {
        var random = SystemRandomNumberGenerator()
        let context = parent.with(.random(using: &random))
        var operation = given
        operation.traceParent = context.traceParent
        let date = SystemClock.wall()
        let start = SystemClock.now()
        let result = await run(operation)
        var span = TraceSpan(
            .worker,
            operation.name,
            .consumer,
            context,
            parent: parent.span,
            from: date,
            to: date + (SystemClock.now() - start)
        )
        let id = operation.held.operation
        span.attributes = [
            .init(TraceSpan.Name.graph, .text(operation.graphName)),
            .init(TraceSpan.Name.graphID, .number(Int64(id.graph.rawValue))),
            .init(TraceSpan.Name.operation, .text("\(id)")),
            .init(TraceSpan.Name.queue, .text(operation.queue)),
            .init(TraceSpan.Name.kind, .text(operation.work.kind)),
            .init(TraceSpan.Name.attempt, .number(Int64(operation.ordinal))),
        ]
        if case .failed(let error) = result.end {
            span.error = error.description.prefix(bytes: TraceSpan.errorBytesMax)
        }
        sink.take([span])
        return result
    }
}

#if Cluster
extension OperationTrace {
    private static let key = "traceparent"

    package init(tracer: any Tracer) {
        recorder = tracer is NoOpTracer ? .none : .tracer(tracer)
    }

    private func span(
        around operation: DispatchedOperation,
        _ tracer: any Tracer,
        _ run: (DispatchedOperation) async -> AttemptResult
    ) async -> AttemptResult {
        var context = ServiceContext.current ?? .topLevel
        if !operation.traceParent.isEmpty {
            let carrier = [Self.key: operation.traceParent]
            tracer.extract(carrier, into: &context, using: Carrier())
        }
        return await tracer.withAnySpan(
            operation.name,
            context: context,
            ofKind: .consumer
        ) { span in
            span.attributes[TraceSpan.Name.graph] = operation.graphName
            span.attributes[TraceSpan.Name.queue] = operation.queue
            span.attributes[TraceSpan.Name.kind] = operation.work.kind
            span.attributes[TraceSpan.Name.attempt] = Int64(operation.ordinal)
            var operation = operation
            var carrier: [String: String] = [:]
            tracer.inject(span.context, into: &carrier, using: Carrier())
            operation.traceParent = carrier[Self.key] ?? operation.traceParent
            let result = await run(operation)
            if case .failed(let error) = result.end {
                span.setStatus(SpanStatus(code: .error, message: error.description))
            }
            return result
        }
    }

    private struct Carrier: Extractor, Injector {
        func extract(key: String, from carrier: [String: String]) -> String? { carrier[key] }

        func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) {
            carrier[key] = value
        }
    }
}
#endif
