import Glibc
import OperonArguments
import OperonModel
import OperonRuntime
import OperonTerminal
import Synchronization
import UnixSignals

/// Watches something until it ends or the user presses Ctrl-C. Ctrl-C ends only the watching.
enum Detaching {
    /// Returns the exit code of `body`. After SIGINT it prints how to resume watching and returns
    /// 0; after SIGTERM it returns 143.
    ///
    /// - Parameter ends: Whether a signal ends the program as if it did not handle it: a script
    ///   that was interrupted while it waited must not go on.
    static func run(
        _ console: Console,
        ends: Bool = false,
        saying sentences: @escaping @Sendable () -> [String],
        _ body: @escaping @Sendable () async throws -> Int32
    ) async throws -> Int32 {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        return try await withThrowingTaskGroup(of: Int32?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                for await signal in signals {
                    guard signal == .sigint else {
                        if ends { OwnProcess.end(by: SIGTERM) }
                        return ExitStatus.terminated
                    }
                    // A terminal prints ^C at the cursor, so the sentences start on a new line.
                    console.say((console.errors.isTerminal ? [""] : []) + sentences())
                    if ends { OwnProcess.end(by: SIGINT) }
                    return ExitStatus.success
                }
                return nil
            }
            defer { group.cancelAll() }
            while let code = try await group.next() {
                if let code { return code }
            }
            return ExitStatus.terminated
        }
    }
}

/// Limits how long a caller waits.
enum Timeout {
    /// Returns the result of `body`; `nil` if it did not return within the limit. Without a limit,
    /// it waits as long as `body` takes.
    static func within<Value: Sendable>(
        _ limit: Duration?,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        guard let limit else { return try await body() }
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await Task.sleep(for: limit)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }
}

/// The number of the last event that was shown, for callers that continue after it.
final class LastEvent: Sendable {
    private let number: Mutex<UInt64?>

    init(_ number: UInt64?) { self.number = Mutex(number) }

    var sequence: UInt64? {
        get { number.withLock { $0 } }
        set { number.withLock { $0 = newValue } }
    }

    var sentences: [String] {
        let after = sequence.map { " --after \($0)" } ?? ""
        return ["To continue: operon events --follow\(after)"]
    }
}
