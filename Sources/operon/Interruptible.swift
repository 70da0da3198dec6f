import ArgumentParser
import Glibc
import OperonArguments
import UnixSignals

/// Runs work that would leave an incomplete file behind if SIGINT or SIGTERM ended the process.
enum Interruptible {
    /// Returns the result of `body`. The first signal cancels `body`, which cleans up; the second
    /// one ends the process at once.
    ///
    /// - Throws: what `body` throws; `ExitCode` 130 or 143 if a signal was the cause.
    static func run<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        let work = Task { try await body() }
        let listening = Task {
            var code: Int32?
            for await signal in signals {
                if let code { _exit(code) }
                code = signal == .sigint ? ExitStatus.interrupted : ExitStatus.terminated
                work.cancel()
            }
            return code
        }
        let result = await work.result
        listening.cancel()
        guard case .failure = result, work.isCancelled else { return try result.get() }
        throw ExitCode(await listening.value ?? ExitStatus.interrupted)
    }
}
