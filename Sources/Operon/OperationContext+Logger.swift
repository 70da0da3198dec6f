public import Logging
internal import OperonRuntime

extension OperationContext {
    /// A logger that writes to the operation's log, as ``log(_:)`` does: each message is one line
    /// with its level, text and metadata. The log level is `info` unless it is changed.
    public var logger: Logger {
        let context = self
        return Logger(label: operationName) { _ in OperationLogHandler(context: context) }
    }
}

/// Writes log messages to the operation's own log.
private struct OperationLogHandler: LogHandler {
    let context: OperationContext
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    init(context: OperationContext) { self.context = context }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        let fields = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        context.log("\(event.level) \(event.message)\(fields)")
    }
}
