/// A finished span: a part of a trace that began and ended, in the terms of OpenTelemetry
/// (https://opentelemetry.io/docs/specs/otel/trace/api/#span).
package struct TraceSpan: Hashable, Sendable {
    package enum Kind: UInt8, Sendable {
        case `internal` = 1
        /// Answers a request.
        case server = 2
        /// Gives work to somebody else, who begins later.
        case producer = 4
        /// Does what a producer gave.
        case consumer = 5
    }

    package enum Value: Hashable, Sendable {
        case text(String)
        case number(Int64)
        case flag(Bool)
    }

    package struct Attribute: Hashable, Sendable {
        package let name: String
        package let value: Value

        package init(_ name: String, _ value: Value) {
            self.name = name
            self.value = value
        }
    }

    /// What is kept of a text that says why something failed.
    package static let errorBytesMax = 1_024

    /// The part of the program that made it.
    package enum Scope: String, Sendable, CaseIterable {
        case coordinator = "operon.coordinator"
        case worker = "operon.worker"
    }

    package var scope: Scope
    package var context: TraceContext
    /// `nil`: it is the root of its trace.
    package var parent: TraceContext.SpanID?
    package var name: String
    package var kind: Kind
    package var start: WallTime
    package var end: WallTime
    package var attributes: [Attribute] = []
    /// The spans of its dependencies.
    package var links: [TraceContext] = []
    /// How many links exceeded the limit.
    package var linksDropped = 0
    /// Why what it stands for failed; `nil`: it did not fail.
    package var error: String?
    /// Whether it is the span of a graph. There are few of them, and a trace without is hard to
    /// read, so they have room where others are dropped.
    package var isOfGraph = false

    package init(
        _ scope: Scope,
        _ name: String,
        _ kind: Kind,
        _ context: TraceContext,
        parent: TraceContext.SpanID?,
        from start: WallTime,
        to end: WallTime
    ) {
        self.scope = scope
        self.name = name
        self.kind = kind
        self.context = context
        self.parent = parent
        self.start = start
        // Two clocks, or one that was set: no span ends before it begins.
        self.end = max(start, end)
    }

    /// The name of an attribute. The names of OpenTelemetry have no words for a graph of
    /// operations.
    package enum Name {
        package static let graph = "operon.graph"
        package static let graphID = "operon.graph.id"
        package static let operation = "operon.operation"
        package static let queue = "operon.queue"
        package static let kind = "operon.kind"
        package static let attempt = "operon.attempt"
        package static let attempts = "operon.attempts"
        package static let outcome = "operon.outcome"
        package static let worker = "operon.worker"
    }
}
