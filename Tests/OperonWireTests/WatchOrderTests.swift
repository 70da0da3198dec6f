import OperonFaultKit
import OperonModel
import OperonWire
import Testing

struct WatchOrderTests {
    /// Sources that this program does not know, or refuses: each with its field.
    private static let sources: [(String, @Sendable (inout RawMessage) -> Void)] = [
        ("begin.source", { _ in }),
        ("begin.file.path", { $0.message(3) { $0.string(1, "in") } }),
        ("begin.file.changes", { $0.message(3) { $0.string(1, "/in") } }),
        (
            "begin.file.changes",
            {
                $0.message(3) {
                    $0.string(1, "/in"); $0.data(3, [6])
                }
            }
        ),
        (
            "begin.file.pattern",
            {
                $0.message(3) {
                    $0.string(1, "/in"); $0.string(2, "a/b"); $0.data(3, [1])
                }
            }
        ),
        ("begin.pipe", { $0.string(4, "/a\u{0}") }),
        ("begin.program", { $0.message(5) }),
        ("begin.program", { $0.message(5) { $0.string(1, "a\u{0}") } }),
        (
            "begin.program",
            {
                $0.message(5) { $0.string(1, String(repeating: "a", count: 128 << 10)) }
            }
        ),
        ("begin.signal", { $0.string(6, "SIGKILL") }),
        ("begin.process", { $0.string(7, "") }),
        ("begin.pid_file", { $0.string(8, "run/d.pid") }),
    ]

    /// A later program may send what this one refuses. The worker then reports that it does not
    /// watch it, and obeys the other orders of the message.
    @Test(arguments: sources.indices)
    func `a source that makes no sense here is read as none, and the next order counts`(
        number: Int
    ) throws {
        let (_, source) = Self.sources[number]
        let bytes = RawMessage.coordinator { envelope in
            envelope.message(36) { orders in
                orders.message(1) {
                    $0.message(1) { begin in
                        begin.fixed(1, 1)
                        begin.fixed(2, 7)
                        source(&begin)
                    }
                }
                orders.message(1) { $0.fixed(2, 9) }
            }
        }
        let message = try Wire.decodeCoordinator(bytes)
        #expect(
            message.body
                == .watch([
                    .begin(WatchID(rawValue: 1), TriggerID(rawValue: 7), nil),
                    .end(WatchID(rawValue: 9)),
                ])
        )
    }
}
