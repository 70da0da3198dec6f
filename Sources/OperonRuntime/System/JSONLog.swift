package import Logging
package import OperonModel

/// Log lines for programs: one JSON object per line, with `time` (UTC), `level`, `label`,
/// `message`, and the message's details in `metadata`.
package struct JSONLog: LogHandler {
    package var metadata: Logger.Metadata = [:]
    package var metadataProvider: Logger.MetadataProvider?
    package var logLevel: Logger.Level
    private let label: String
    private let now: @Sendable () -> WallTime
    private let write: @Sendable ([UInt8]) -> Void

    /// - Parameter write: Takes a whole line including its end.
    package init(
        label: String,
        level: Logger.Level,
        now: @escaping @Sendable () -> WallTime = { SystemClock.wall() },
        write: @escaping @Sendable ([UInt8]) -> Void
    ) {
        self.label = label
        logLevel = level
        self.now = now
        self.write = write
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        var all = metadata
        if let provided = metadataProvider?.get() { all.merge(provided) { _, new in new } }
        if let own = event.metadata { all.merge(own) { _, new in new } }
        write(line(event.level, event.message.description, all))
    }

    /// The line that would be written, including its end.
    package func line(
        _ level: Logger.Level,
        _ message: String,
        _ metadata: Logger.Metadata = [:]
    ) -> [UInt8] {
        var line: [UInt8] = []
        Self.append("{\"time\":", DateText.text(now()), to: &line)
        Self.append(",\"level\":", level.rawValue, to: &line)
        Self.append(",\"label\":", label, to: &line)
        Self.append(",\"message\":", message, to: &line)
        if !metadata.isEmpty {
            line += ",\"metadata\":".utf8
            Self.append(.dictionary(metadata), to: &line)
        }
        line += "}\n".utf8
        return PrintableJSON.escaped(line)
    }

    private static func append(_ key: String, _ text: String, to line: inout [UInt8]) {
        line += key.utf8
        line += JSONString.quoted(text)
    }

    private static func append(_ value: Logger.MetadataValue, to line: inout [UInt8]) {
        switch value {
        case .string(let text): line += JSONString.quoted(text)
        case .stringConvertible(let value): line += JSONString.quoted(value.description)
        case .array(let values):
            line.append(UInt8(ascii: "["))
            for (place, value) in values.enumerated() {
                if place > 0 { line.append(UInt8(ascii: ",")) }
                append(value, to: &line)
            }
            line.append(UInt8(ascii: "]"))
        case .dictionary(let values):
            line.append(UInt8(ascii: "{"))
            for (place, (key, value)) in values.sorted(by: { $0.key < $1.key }).enumerated() {
                if place > 0 { line.append(UInt8(ascii: ",")) }
                line += JSONString.quoted(key)
                line.append(UInt8(ascii: ":"))
                append(value, to: &line)
            }
            line.append(UInt8(ascii: "}"))
        }
    }
}
