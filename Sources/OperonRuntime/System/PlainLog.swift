package import Logging

/// Log lines for people: one sentence with its details in brackets, passed to the owner of the
/// screen.
package struct PlainLog: LogHandler {
    package var metadata: Logger.Metadata = [:]
    package var metadataProvider: Logger.MetadataProvider?
    package var logLevel: Logger.Level
    private let write: @Sendable (String) -> Void

    package init(level: Logger.Level, write: @escaping @Sendable (String) -> Void) {
        logLevel = level
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
        var line = "\(event.level): \(event.message)"
        if !all.isEmpty {
            let pairs = all.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
            line += " (" + pairs.joined(separator: ", ") + ")"
        }
        write(line)
    }
}
