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
        event.count = .max
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
        event.trigger = text
        event.firing = .max
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

    // MARK: - Reading

    private static func whole(_ line: [UInt8]) throws -> EventView {
        try JSONDecoder().decode(EventView.self, from: Data(line))
    }

    /// Every subset of the fields, as far as one field can be missing or alone.
    private static var sparse: [EventView] {
        var full = full("plain é 漢")
        full.error = nil
        let clear: [(inout EventView) -> Void] = [
            { $0.graph = nil }, { $0.graphName = nil }, { $0.operation = nil },
            { $0.outcome = nil }, { $0.isUpToDate = nil }, { $0.attempt = nil },
            { $0.ending = nil }, { $0.worker = nil }, { $0.queue = nil }, { $0.key = nil },
            { $0.trigger = nil },
            { $0.by = nil }, { $0.reason = nil },
        ]
        var events = [full]
        for field in clear.indices {
            var without = full
            clear[field](&without)
            var alone = full
            for other in clear.indices where other != field { clear[other](&alone) }
            events += [without, alone]
        }
        return events
    }

    @Test func `what the writer writes is read without Foundation, and is the same event`() {
        for event in Self.sparse { #expect(EventJSON.view(EventJSON.line(event)) == event) }
        for kind in ClusterEvent.Kind.allCases {
            let event = Self.event(kind)
            #expect(EventJSON.view(EventJSON.line(event)) == event)
        }
        for outcome in OutcomeKind.allCases {
            var event = Self.event(.finished)
            event.outcome = outcome
            #expect(EventJSON.view(EventJSON.line(event)) == event)
        }
    }

    @Test func `an event with an error or an escape is left to Foundation`() {
        #expect(EventJSON.view(EventJSON.line(Self.full("plain"))) == nil)
        for text in Self.texts {
            var event = Self.full(text)
            event.error = nil
            let line = EventJSON.line(event)
            let hasEscape = line.contains(UInt8(ascii: "\\"))
            #expect(EventJSON.view(line) == (hasEscape ? nil : event), "\(text.debugDescription)")
        }
    }

    /// Whatever a stranger sends: either it is left to Foundation, or Foundation reads the same.
    @Test func `changed bytes are read as Foundation reads them, or not at all`() throws {
        var generator = Repeatable(state: 17)
        let interesting = Array("\"{}[],:\\0129 tfn\u{7F}é".utf8) + [0, 0x0A, 0x1F, 0xC2, 0xFF]
        var readCount = 0
        for event in Self.sparse {
            let line = EventJSON.line(event)
            for _ in 0..<400 {
                var changed = line
                let place = Int(generator.next() % UInt64(changed.count))
                switch generator.next() % 4 {
                case 0: changed.remove(at: place)
                case 1: changed.insert(interesting.randomElement(using: &generator)!, at: place)
                case 2: changed = Array(changed[..<place])
                default: changed[place] = interesting.randomElement(using: &generator)!
                }
                guard let view = EventJSON.view(changed) else { continue }
                readCount += 1
                let text = String(decoding: changed, as: UTF8.self)
                #expect(view == (try Self.whole(changed)), "\(text)")
            }
        }
        #expect(readCount > 1_000, "hardly anything was read at all")
    }

    @Test func `numbers that are too large, negative or padded are not read`() {
        func line(_ sequence: String) -> [UInt8] {
            Array(#"{"at":"2023-11-14T22:13:20Z","kind":"finished","sequence":\#(sequence)}"#.utf8)
        }
        #expect(EventJSON.view(line("18446744073709551615"))?.sequence == .max)
        #expect(EventJSON.view(line("0"))?.sequence == 0)
        let others = ["18446744073709551616", "99999999999999999999", "-1", "01", "", "1.5", "1e3"]
        for number in others {
            #expect(EventJSON.view(line(number)) == nil, "\(number)")
        }
    }
}

/// The same numbers in every run (SplitMix64).
private struct Repeatable: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
