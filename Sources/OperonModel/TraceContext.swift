/// The place of a span in its trace, as in the header `traceparent` of W3C's trace context, version
/// 00 (https://www.w3.org/TR/trace-context/#traceparent-header).
package struct TraceContext: Hashable, Sendable {
    /// Sixteen random bytes that all spans of a trace share. Never zero.
    package struct TraceID: Hashable, Sendable, CustomStringConvertible {
        package let high: UInt64
        package let low: UInt64

        /// `nil` for zero, which stands for no trace.
        package init?(high: UInt64, low: UInt64) {
            guard high != 0 || low != 0 else { return nil }
            self.high = high
            self.low = low
        }

        package static func random(using random: inout some RandomNumberGenerator) -> TraceID {
            while true {
                if let id = TraceID(high: random.next(), low: random.next()) { return id }
            }
        }

        /// Thirty-two lower-case hexadecimal digits.
        package var description: String { SpanID.digits(high) + SpanID.digits(low) }
    }

    /// Identifies a span within its trace. Never zero.
    package struct SpanID: Hashable, Sendable, CustomStringConvertible {
        package let rawValue: UInt64

        /// `nil` for zero, which stands for no span.
        package init?(rawValue: UInt64) {
            guard rawValue != 0 else { return nil }
            self.rawValue = rawValue
        }

        package static func random(using random: inout some RandomNumberGenerator) -> SpanID {
            while true {
                if let id = SpanID(rawValue: random.next()) { return id }
            }
        }

        /// The id that follows from a number. Different numbers with the same seed have different
        /// ids, except that two of them share one in place of zero.
        package static func derived(from number: UInt64, seed: UInt64) -> SpanID {
            let bits = mixed(seed ^ mixed(number))
            return SpanID(notZero: bits == 0 ? .max : bits)
        }

        private init(notZero bits: UInt64) { rawValue = bits }

        /// A bijection that changes about half of the bits for each bit that differs: the finalizer
        /// of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
        /// 2014).
        private static func mixed(_ number: UInt64) -> UInt64 {
            var bits = number
            bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
            bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
            return bits ^ (bits >> 31)
        }

        /// Sixteen lower-case hexadecimal digits.
        package var description: String { Self.digits(rawValue) }

        fileprivate static func digits(_ number: UInt64) -> String {
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
    }

    package let trace: TraceID
    package let span: SpanID
    /// The flags of version 00: bit 0 says that the trace is recorded.
    package let flags: UInt8

    package init(trace: TraceID, span: SpanID, flags: UInt8) {
        self.trace = trace
        self.span = span
        self.flags = flags
    }

    package static let sampledFlag: UInt8 = 1

    /// Whether spans of this trace are recorded.
    package var isSampled: Bool { flags & Self.sampledFlag != 0 }

    /// Another span of the same trace.
    package func with(_ span: SpanID) -> TraceContext {
        TraceContext(trace: trace, span: span, flags: flags)
    }

    /// Parses a `traceparent`; `nil` if it is not valid, which W3C has everybody ignore. Of a
    /// version after 00, the fields of version 00 are used, as W3C asks for.
    package init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.count >= 4, let version = Self.number(parts[0], digits: 2), version != 0xFF,
            version > 0 || parts.count == 4,
            parts[1].count == 32,
            let high = Self.number(parts[1].prefix(16), digits: 16),
            let low = Self.number(parts[1].suffix(16), digits: 16),
            let trace = TraceID(high: high, low: low),
            let span = Self.number(parts[2], digits: 16).flatMap({ SpanID(rawValue: $0) }),
            let flags = Self.number(parts[3], digits: 2)
        else { return nil }
        self.init(trace: trace, span: span, flags: UInt8(flags))
    }

    /// Lower-case digits only, as W3C has it.
    private static func number(_ text: Substring.UTF8View, digits: Int) -> UInt64? {
        guard text.count == digits else { return nil }
        var number: UInt64 = 0
        for byte in text {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                number = number << 4 | UInt64(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"):
                number = number << 4 | UInt64(byte - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return number
    }

    /// The `traceparent` of this span.
    package var traceParent: String {
        let digits = String(flags, radix: 16)
        return "00-\(trace)-\(span)-\(digits.count == 1 ? "0" : "")\(digits)"
    }
}
