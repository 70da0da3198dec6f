package import OperonModel

/// Takes finished spans, and decides which traces are recorded.
package protocol SpanSink: Sendable {
    /// The most links that a span may have.
    var linksMax: Int { get }

    /// Takes spans of traces that are recorded. Returns at once: what cannot be kept is dropped,
    /// and counted.
    func take(_ spans: [TraceSpan])

    /// Decides for a graph that is submitted.
    ///
    /// - Parameter parent: The trace that its submitter named; `nil`: a trace of its own begins.
    func isSampled(_ trace: TraceContext.TraceID, parent: TraceContext?) -> Bool
}
