import OperonModel
import Testing

@Suite struct TraceContextTests {
    private static let text = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"

    @Test func `a traceparent is read and written`() throws {
        let context = try #require(TraceContext(Self.text))
        #expect(context.trace.description == "0af7651916cd43dd8448eb211c80319c")
        #expect(context.span.description == "00f067aa0ba902b7")
        #expect(context.isSampled)
        #expect(context.traceParent == Self.text)
        #expect(TraceContext("00-\(context.trace)-\(context.span)-fe")?.isSampled == false)
    }

    @Test func `a later version is read as far as it is known`() {
        let later = "cc" + Self.text.dropFirst(2)
        #expect(TraceContext(later)?.traceParent == Self.text)
        #expect(TraceContext(later + "-what-comes")?.traceParent == Self.text)
    }

    @Test(arguments: [
        "", "00", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7",
        "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-",
        "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-1",
        "00-0AF7651916CD43DD8448EB211C80319C-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319-00f067aa0ba902b7-01",
        "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
        "00-0af7651916cd43dd8448eb211c8031 c-00f067aa0ba902b7-01",
        "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba9é2b-01",
    ])
    func `what is no traceparent is not read`(text: String) {
        #expect(TraceContext(text) == nil)
    }

    @Test func `ids that follow from numbers differ`() {
        var ids: Set<TraceContext.SpanID> = []
        for seed in 0..<4 as Range<UInt64> {
            for number in 0..<10_000 as Range<UInt64> {
                ids.insert(.derived(from: number, seed: seed))
            }
        }
        #expect(ids.count == 40_000)
        let first = TraceContext.SpanID.derived(from: 7, seed: 1)
        #expect(first == .derived(from: 7, seed: 1))
    }

    @Test func `a span does not end before it begins`() throws {
        let context = try #require(TraceContext(Self.text))
        let span = TraceSpan(
            .worker,
            "late",
            .consumer,
            context,
            parent: nil,
            from: WallTime(nanosecondsSince1970: 20),
            to: WallTime(nanosecondsSince1970: 10)
        )
        #expect(span.end == span.start)
    }
}
