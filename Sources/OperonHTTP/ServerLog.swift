import Logging

/// The log of the HTTP library, except when its task is cancelled: the code that cancels it logs
/// why.
struct ServerLog: LogHandler {
    private var base: any LogHandler

    init(_ logger: Logger) { base = logger.handler }

    var metadata: Logger.Metadata {
        get { base.metadata }
        set { base.metadata = newValue }
    }

    var metadataProvider: Logger.MetadataProvider? {
        get { base.metadataProvider }
        set { base.metadataProvider = newValue }
    }

    var logLevel: Logger.Level {
        get { base.logLevel }
        set { base.logLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { base[metadataKey: key] }
        set { base[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        guard !Task.isCancelled else { return }
        base.log(event: event)
    }
}
