import ArgumentParser
import Glibc
import OperonArguments
import UnixSignals

/// Runs what would leave a half-made file behind if the process just died of SIGINT or SIGTERM.
enum Interruptible {
    /// What `body` returns. The first signal cancels it, and it cleans up; a second one ends the
    /// process at once.
    ///
    /// - Throws: what `body` throws; `ExitCode` 130 or 143 if that is because of a signal.
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
