import OperonModel
import OperonPorts

/// The spans of a graph and of its operations. Their ids follow from what the store keeps of the
/// graph, so a span of the next coordinator refers to the spans of this one, and nothing has to be
/// stored for it.
struct GraphTrace {
    /// The span of the graph.
    let context: TraceContext
    /// The submitter's span; `nil`: the graph is the root of its trace.
    let parent: TraceContext.SpanID?
    private let seed: UInt64

    /// - Parameter traceParent: The one that the graph is stored with.
    /// - Returns: `nil` if it belongs to no trace that is recorded.
    init?(_ traceParent: String, of graph: GraphID, in reign: Reign) {
        guard let given = TraceContext(traceParent), given.isSampled else { return nil }
        let store = TraceContext.SpanID.derived(from: reign.rawValue, seed: given.span.rawValue)
        seed =
            TraceContext.SpanID.derived(
                from: UInt64(graph.rawValue),
                seed: store.rawValue
            ).rawValue
        if given.span == Self.root(of: given.trace) {
            context = given
            parent = nil
        } else {
            // No operation has this number.
            context = given.with(.derived(from: .max, seed: seed))
            parent = given.span
        }
    }

    /// The span of an operation.
    ///
    /// - Parameter round: How often the operation was retried by a command.
    func operation(_ index: UInt32, round: UInt32) -> TraceContext {
        context.with(.derived(from: UInt64(round) << 32 | UInt64(index), seed: seed))
    }

    /// The `traceparent` to store with a new graph.
    ///
    /// - Parameter given: The `traceparent` of its submitter; one that is not valid is ignored, as
    ///   W3C has it.
    static func traceParent(given: String, _ sink: any SpanSink) -> String {
        var random = SystemRandomNumberGenerator()
        let parent = TraceContext(given)
        let trace = parent?.trace ?? .random(using: &random)
        let isSampled = sink.isSampled(trace, parent: parent)
        let flags = (parent?.flags ?? 0) & ~TraceContext.sampledFlag
        return TraceContext(
            trace: trace,
            span: parent?.span ?? root(of: trace),
            flags: isSampled ? flags | TraceContext.sampledFlag : flags
        ).traceParent
    }

    /// The span of a graph that begins a trace. Its id tells it apart from a submitter's span.
    private static func root(of trace: TraceContext.TraceID) -> TraceContext.SpanID {
        .derived(from: trace.low, seed: trace.high)
    }
}
