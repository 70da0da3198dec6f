import OperonModel
import OperonPorts

/// Observes a source for as long as it can be observed: again after a growing pause whenever it
/// fails.
struct SourceObservation: Sendable {
    /// Thrown by whoever takes reports: nothing more is wanted.
    struct Unwanted: Error {}

    enum End: Sendable {
        /// Nothing more can occur.
        case ended
        /// It can never be observed here.
        case impossible(TriggerSourceError)
        case unwanted
        case cancelled
    }

    /// How long a source that failed is left alone: at first, and at most.
    static let pauses = (first: Duration.seconds(1), most: Duration.seconds(60))

    let time: TimeSource
    /// - Throws: `accessRefused` or `invalid` if this process never observes such a source.
    let makeSource: @Sendable () throws(TriggerSourceError) -> any TriggerSource

    func run(
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async -> End {
        var pause = Self.pauses.first
        while !Task.isCancelled {
            do {
                let source: any TriggerSource
                do throws(TriggerSourceError) {
                    source = try makeSource()
                } catch {
                    if error.code == .accessRefused { return .impossible(error) }
                    throw error
                }
                try await source.run(report, status: status)
                return .ended
            } catch is Unwanted {
                return .unwanted
            } catch {
                if Task.isCancelled { break }
                let problem = Self.problem(error)
                if problem.code == .invalid { return .impossible(problem) }
                status(.waiting(problem))
            }
            do { try await time.sleep(time.now() + pause) } catch { break }
            pause = min(pause * 2, Self.pauses.most)
        }
        return .cancelled
    }

    private static func problem(_ error: any Error) -> TriggerSourceError {
        switch error {
        case let error as TriggerSourceError: error
        case let error as SystemError: TriggerSourceError(error, "it cannot be observed")
        default: TriggerSourceError(.system, "\(error)")
        }
    }
}
