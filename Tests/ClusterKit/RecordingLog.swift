package import Logging

/// Records the messages that a logger is given.
package struct RecordingLog: LogHandler {
    let messages: Recorder<[String]>
    package var metadata: Logger.Metadata = [:]
    package var logLevel = Logger.Level.notice

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) { messages.change { $0.append("\(event.message)") } }
}

extension Recorder<[String]> {
    /// A logger whose messages it records.
    package var logger: Logger { Logger(label: "test") { _ in RecordingLog(messages: self) } }
}
