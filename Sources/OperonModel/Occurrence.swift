/// Something that occurred once.
package struct Occurrence: Hashable, Sendable {
    /// The bytes of an identity.
    package static let identityBytesMax = 256
    /// The bytes of the JSON that describes an occurrence.
    package static let eventBytesMax = Limits.watchedEventBytes

    /// The same whenever the same occurrence is seen again, also by another run of the source.
    /// Printable ASCII without spaces.
    package let identity: String
    /// A JSON object that describes it.
    package let event: [UInt8]

    /// One member of an event.
    package enum Value: Sendable {
        case text(String)
        case number(Int64)
        /// A JSON value.
        case json([UInt8])
    }

    /// An occurrence that another process reported; `nil`: it cannot be one. Whether the event is
    /// JSON is not looked at.
    package init?(identity: String, object event: [UInt8]) {
        guard Self.isIdentity(identity), event.count <= Self.eventBytesMax,
            event.first == UInt8(ascii: "{")
        else { return nil }
        self.identity = identity
        self.event = event
    }

    package static func isIdentity(_ text: String) -> Bool {
        1...identityBytesMax ~= text.utf8.count && text.utf8.allSatisfy { 0x21...0x7E ~= $0 }
    }

    /// - Throws: `limitExceeded` if the event would be too large.
    package init(
        identity: String,
        event members: KeyValuePairs<String, Value?>
    ) throws(TriggerSourceError) {
        precondition(
            identity.utf8.count <= Self.identityBytesMax,
            "Sources make identities of numbers and hashes, and hash what may be longer."
        )
        self.identity = identity
        var event: [UInt8] = []
        for (name, value) in members {
            guard let value else { continue }
            event.append(event.isEmpty ? UInt8(ascii: "{") : UInt8(ascii: ","))
            JSONString.append(name, to: &event)
            event.append(UInt8(ascii: ":"))
            switch value {
            case .text(let text): JSONString.append(text, to: &event)
            case .number(let number): event += String(number).utf8
            case .json(let json): event += json
            }
        }
        event += event.isEmpty ? "{}".utf8 : "}".utf8
        guard event.count <= Self.eventBytesMax else {
            throw TriggerSourceError(
                .limitExceeded,
                "what occurred takes \(event.count) bytes as JSON; at most"
                    + " \(Self.eventBytesMax) are possible"
            )
        }
        self.event = event
    }
}

/// What a source says about itself.
package enum TriggerSourceStatus: Hashable, Sendable {
    /// It observes: whatever occurs from now on is reported.
    case observing
    /// It cannot observe at present, and tries again.
    case waiting(TriggerSourceError)
    /// Something occurred that cannot be reported. The source goes on.
    case refused(TriggerSourceError)
}

/// Why a source cannot observe, or cannot report something.
package struct TriggerSourceError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Code: UInt8, Hashable, Sendable, CaseIterable {
        /// What it observes cannot be what was asked for: a relative path, a pattern with a slash,
        /// a file that is no pipe.
        case invalid = 1
        /// What it observes does not exist.
        case absent
        /// This user may not observe it.
        case accessRefused
        /// More files, longer lines or larger messages than a limit allows.
        case limitExceeded
        /// What occurred cannot be read: no UTF-8, no JSON.
        case unreadable
        /// The system has no descriptor, memory or watch left.
        case exhausted
        /// The program that it reads from has ended.
        case ended
        /// The broker is unreachable.
        case unreachable
        /// Another error of the system.
        case system
    }

    package let code: Code
    /// Without a capital and a full stop.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
