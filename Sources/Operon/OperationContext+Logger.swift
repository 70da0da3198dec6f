public import Logging
internal import OperonRuntime

extension OperationContext {
    /// Writes to the operation's log, as ``log(_:)`` does: a line for each message, with its level,
    /// its text and what belongs to it. Of level `info` and above, unless it is told otherwise.
    public var logger: Logger {
        let context = self
        return Logger(label: operationName) { _ in OperationLogHandler(context: context) }
    }
}

/// Lines of an operation's own log.
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
