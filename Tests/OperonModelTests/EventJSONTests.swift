import Foundation
import OperonModel
import Testing

/// The JSON of an event that is written by hand, against the one of `JSONEncoder`.
struct EventJSONTests {
    private static func reference(_ event: EventView) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return PrintableJSON.escaped(Array(try encoder.encode(event)))
    }

    private static func event(_ kind: ClusterEvent.Kind) -> EventView {
        let time = WallTime(nanosecondsSince1970: 1_700_000_000_123_456_789)
        return EventView(sequence: .max, at: TimeText(time), kind: EventKind(kind))
    }

    /// Every field has a value.
    private static func full(_ text: String) -> EventView {
        var event = event(.finished)
        event.graph = 7
        event.graphName = text
        event.operation = OperationName(graph: 7, index: .max, name: text)
        event.outcome = .failed
        event.isUpToDate = true
        event.attempt = "1.2"
        event.ending = "failed"
        var error = ErrorView(code: "exit", message: text)
        error.type = text
        error.payload = text
        error.payloadBase64 = "/wA="
        error.detail = text
        error.exitCode = -1
        error.bytes = .max
        error.limit = 0
        event.error = error
        event.worker = text
        event.queue = text
        event.key = text
        event.by = text
        event.reason = text
        return event
    }

    private static let texts: [String] =
        ["", "plain", "a/b", "\"quoted\" \\ back", "é 漢 🐋", "\u{2028}\u{202E}\u{61C}\u{9F}"]
        + (0...0x20).map { "a\(Character(UnicodeScalar(UInt8($0))))b" } + ["\u{7F}"]

    @Test func `an event with every field, and with every character that needs an escape`() throws {
        for text in Self.texts {
            let event = Self.full(text)
            #expect(
                EventJSON.line(event) == (try Self.reference(event)),
                "\(text.debugDescription)"
            )
        }
        // A field that comes later has to be written, too.
        for child in Mirror(reflecting: Self.full("a")).children {
            #expect("\(child.value)" != "nil", "\(child.label ?? "") has no value in this test")
        }
    }

    @Test func `an event of each kind, outcome and error`() throws {
        for kind in ClusterEvent.Kind.allCases {
            let event = Self.event(kind)
            #expect(EventJSON.line(event) == (try Self.reference(event)))
            #expect(kind.name == "\(kind)")
        }
        for outcome in OutcomeKind.allCases {
            var event = Self.event(.finished)
            event.outcome = outcome
            event.isUpToDate = false
            #expect(EventJSON.line(event) == (try Self.reference(event)))
        }
        for ending in ClusterEvent.Ending.allCases { #expect(ending.name == "\(ending)") }
        for error in ErrorViewTests.errors {
            var event = Self.event(.attemptEnded)
            event.error = ErrorView(error)
            #expect(EventJSON.line(event) == (try Self.reference(event)))
        }
    }
}
