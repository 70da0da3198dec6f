import OperonModel

/// Observes something outside of the cluster (files, a pipe, signals, a process, a queue of the
/// broker) and reports each occurrence. It decides nothing about what follows.
package protocol TriggerSource: Sendable {
    /// Observes until the task is cancelled, or until nothing more can occur.
    ///
    /// A source that cannot observe at present (the folder is missing, the broker is unreachable)
    /// says so as a status and tries again by itself, for ever.
    ///
    /// - Parameters:
    ///   - report: Returns when the occurrence is stored. The source reports one occurrence at a
    ///     time and in order, and keeps what follows (in the kernel, in the broker) until then. An
    ///     error that it throws ends the source with that error: the occurrence counts as not
    ///     reported.
    ///   - status: Called at each change of whether the source observes, and for each occurrence
    ///     that cannot be reported. It must return at once.
    /// - Throws: `TriggerSourceError` if the source can never observe; what `report` throws;
    ///   `CancellationError`.
    func run(
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws
}

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
    package enum Code: Hashable, Sendable {
        /// What it observes cannot be what was asked for: a relative path, a pattern with a slash,
        /// a file that is no pipe.
        case invalid
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
