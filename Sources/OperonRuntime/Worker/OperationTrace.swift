package import OperonModel

#if Cluster
import Instrumentation
import ServiceContextModule
package import Tracing

/// The trace that an operation belongs to. The submitter names it as a `traceparent` (W3C trace
/// context), which travels with every attempt.
package struct OperationTrace: Sendable {
    private static let key = "traceparent"

    /// `nil`: the program has set up no tracer.
    private let tracer: (any Tracer)?

    /// Uses the program's tracer; without one, an attempt passes on the trace that it was given.
    package init(tracer: any Tracer = InstrumentationSystem.tracer) {
        self.tracer = tracer is NoOpTracer ? nil : tracer
    }

    /// Runs an attempt within a span of its own. Whatever the attempt starts continues that span:
    /// code through the task's context, a process through `TRACEPARENT`.
    package func span(
        around operation: DispatchedOperation,
        _ run: (DispatchedOperation) async -> AttemptResult
    ) async -> AttemptResult {
        guard let tracer else { return await run(operation) }
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
            span.attributes["operon.graph"] = operation.graphName
            span.attributes["operon.queue"] = operation.queue
            span.attributes["operon.kind"] = operation.work.kind
            span.attributes["operon.attempt"] = Int64(operation.ordinal)
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
#else
/// No tracer is linked: an attempt passes on the trace that it was given.
package struct OperationTrace: Sendable {
    package init() {}

    package func span(
        around operation: DispatchedOperation,
        _ run: (DispatchedOperation) async -> AttemptResult
    ) async -> AttemptResult { await run(operation) }
}
#endif
