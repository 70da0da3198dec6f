import OperonArguments
import OperonCore
import OperonRuntime
import UnixSignals

/// `--supervise`: this process starts itself again without that option and keeps that child
/// running. The child dies with this process.
struct Supervision {
    let environment: [String: String]
    let say: @Sendable (String) -> Void

    /// Runs until the worker has drained, or has ended in a way that another start would not
    /// change. Returns its exit code.
    func run() async throws -> Int32 {
        var random = SystemRandomNumberGenerator()
        let supervisor = Supervisor(
            command,
            policy: RestartPolicy(seed: random.next())
        ) { [say] end, pause in
            say("the worker \(Self.words(end)); restarting it in \(Self.seconds(pause))")
        }
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        return await withTaskGroup(of: Int32?.self) { group in
            group.addTask { await supervisor.run() }
            group.addTask {
                for await signal in signals { await supervisor.forward(signal.rawValue) }
                return nil
            }
            defer { group.cancelAll() }
            while let code = await group.next() {
                if let code { return code }
            }
            return ExitStatus.success
        }
    }

    /// This program with the same options except `--supervise`.
    private var command: Supervisor.Command {
        Supervisor.Command(
            candidates: Environment.ownPaths,
            arguments: CommandLine.arguments.filter { $0 != "--supervise" },
            environment: environment
        )
    }

    private static func words(_ end: RestartPolicy.End) -> String {
        switch end {
        case .exit(let code): "ended with exit code \(code)"
        case .signal(let number): "was ended by \(SignalName.of(number))"
        case .notStarted: "could not be started"
        }
    }

    /// Seconds with one decimal.
    private static func seconds(_ duration: Duration) -> String {
        let tenths = Int((duration / .milliseconds(100)).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }
}
