import NIOConcurrencyHelpers
import OperonArguments
import OperonModel
import OperonTerminal
import UnixSignals

/// Watches something until it ends or somebody presses Ctrl-C: what is watched goes on without it.
enum Detaching {
    /// The exit code of `body`; 0 if it was left by SIGINT, after saying how to come back; 143 by
    /// SIGTERM.
    static func run(
        _ console: Console,
        saying sentences: @escaping @Sendable () -> [String],
        _ body: @escaping @Sendable () async throws -> Int32
    ) async throws -> Int32 {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        return try await withThrowingTaskGroup(of: Int32?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                for await signal in signals {
                    guard signal == .sigint else { return ExitStatus.terminated }
                    // A terminal shows ^C where the cursor is.
                    console.say((console.errors.isTerminal ? [""] : []) + sentences())
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

/// Bounds a wait.
enum Timeout {
    /// What `body` returns; `nil` if it did not within that time. Without a bound it is awaited.
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

/// The number of the last event that was shown, for whoever wants to go on behind it.
final class LastEvent: Sendable {
    private let number: NIOLockedValueBox<UInt64?>

    init(_ number: UInt64?) { self.number = NIOLockedValueBox(number) }

    var sequence: UInt64? {
        get { number.withLockedValue { $0 } }
        set { number.withLockedValue { $0 = newValue } }
    }

    var sentences: [String] {
        let after = sequence.map { " --after \($0)" } ?? ""
        return ["To go on: operon events --follow\(after)"]
    }
}
