package import OperonModel
import OperonPorts

#if Cluster
import UnixSignals

/// A signal that somebody sends to this process (`kill -USR1 PID`), as an occurrence.
///
/// Signals coalesce: those that arrive while one is being reported are one occurrence together. An
/// identity is drawn for each occurrence. Between its arrival and its report a signal is only in
/// the memory of this process. While no source observes a signal, the signal has its default
/// effect: SIGHUP, SIGUSR1 and SIGUSR2 end the process.
package struct SignalSource: TriggerSource {
    private let name: String
    private let signal: UnixSignal

    /// - Throws: `invalid` unless it is one of `WatchedSource.signals`.
    package init(name: String) throws(TriggerSourceError) {
        switch name {
        case "SIGHUP": signal = .sighup
        case "SIGUSR1": signal = .sigusr1
        case "SIGUSR2": signal = .sigusr2
        default:
            let names = WatchedSource.signals.joined(separator: ", ")
            throw TriggerSourceError(
                .invalid,
                "“\(name)” cannot be observed: possible are \(names)"
            )
        }
        self.name = name
    }

    package func run(
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        // Returns when the signal is handled.
        let signals = await UnixSignalsSequence(trapping: signal)
        let arrived = Signal()
        status(.observing)
        try await withThrowingTaskGroup { group in
            group.addTask {
                for await _ in signals { arrived.raise() }
            }
            defer { group.cancelAll() }
            for await _ in arrived.raised {
                let identity = "signal:\(LineOccurrence.drawn())"
                let event: KeyValuePairs<String, Occurrence.Value?> = ["signal": .text(name)]
                try await report(try Occurrence(identity: identity, event: event))
            }
        }
        try Task.checkCancellation()
    }
}
#else
/// Signals belong to the program that this is linked into.
package struct SignalSource: TriggerSource {
    package init(name: String) throws(TriggerSourceError) {
        throw TriggerSourceError(
            .invalid,
            "“\(name)” cannot be observed: that needs the trait “Cluster” of the package operon"
        )
    }

    package func run(
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {}
}
#endif
