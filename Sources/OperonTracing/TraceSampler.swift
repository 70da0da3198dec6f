package import OperonModel

/// Which traces are recorded
/// (https://opentelemetry.io/docs/specs/otel/trace/sdk/#built-in-samplers).
package struct TraceSampler: Hashable, Sendable {
    /// For a trace that begins here, or whose beginning is not asked.
    private enum Choice: Hashable {
        case always, never
        /// Those whose lower 56 bits are at least this number.
        case from(UInt64)
    }

    private let choice: Choice
    /// Whether the trace of a parent is recorded if the parent is.
    private let asksParent: Bool

    /// - Parameter ratio: From 0 to 1, for the samplers that have one.
    /// - Returns: `nil` if there is no sampler with this name.
    init?(name: String, ratio: Double) {
        asksParent = name.hasPrefix(Self.parentBased)
        switch asksParent ? name.dropFirst(Self.parentBased.count) : name[...] {
        case "always_on": choice = .always
        case "always_off": choice = .never
        case "traceidratio":
            let bits = Double(UInt64(1) << Self.randomBits)
            choice = ratio == 0 ? .never : .from(UInt64(((1 - ratio) * bits).rounded()))
        default: return nil
        }
    }

    private static let parentBased = "parentbased_"
    /// The bits of a trace's id that are random in every version of W3C's trace context.
    private static let randomBits: UInt64 = 56

    static let defaultName = "parentbased_always_on"
    static let names = ["always_on", "always_off", "traceidratio"].flatMap {
        [$0, parentBased + $0]
    }
    package static let `default` = TraceSampler()

    private init() {
        choice = .always
        asksParent = true
    }

    package func isSampled(_ trace: TraceContext.TraceID, parent: TraceContext?) -> Bool {
        if asksParent, let parent { return parent.isSampled }
        return switch choice {
        case .always: true
        case .never: false
        case .from(let threshold):
            trace.low & (1 << Self.randomBits - 1) >= threshold
        }
    }
}
