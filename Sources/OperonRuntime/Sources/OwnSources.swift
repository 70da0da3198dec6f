package import OperonModel
package import OperonPorts
import Synchronization

/// Makes the sources that this process watches: files, pipes, programs, signals and processes of
/// its machine, and the messages of its broker. What they share is made when the first one needs
/// it.
package final class OwnSources: TriggerSourceProvider {
    package struct Configuration: Sendable {
        /// Whether clients may have this process watch its machine. They can then learn which files
        /// and processes there are, and run programs as its user.
        package var watchesMachine: Bool
        /// The variables of this process, which programs may inherit by name.
        package var environment: [String: String]
        /// The messages of a queue; `nil`: there is no broker.
        package var messages:
            (
                @Sendable (_ queue: String) throws(TriggerSourceError) -> any TriggerSource
            )?
        package var time = TimeSource.system
        /// Receives messages for the administrator about programs that are run.
        package var report: @Sendable (_ sentence: String) -> Void = { _ in }

        package init(watchesMachine: Bool, environment: [String: String]) {
            self.watchesMachine = watchesMachine
            self.environment = environment
        }
    }

    private struct Shared {
        var threads: SourceThreads?
        var runner: ProcessRunner?
        var isShutDown = false
    }

    private let configuration: Configuration
    private let shared = Mutex(Shared())

    package init(_ configuration: Configuration) { self.configuration = configuration }

    package func resolved(_ source: WatchedSource) throws(TriggerSourceError) -> WatchedSource {
        try check(source)
        switch source {
        case .file(let file): _ = try Self.configuration(of: file)
        case .pipe(let path):
            if let problem = Limits.problem(ofWatchedPath: path) {
                throw TriggerSourceError(.invalid, "“\(path)” \(problem)")
            }
        case .signal(let name): _ = try SignalSource(name: name)
        case .process(.number(let number)):
            let process = try ProcessIdentity(running: number)
            return .process(.identity(process.description))
        case .process(.identity(let text)): _ = try Self.identity(text)
        case .process(.file(let path)):
            if let problem = Limits.problem(ofWatchedPath: path) {
                throw TriggerSourceError(.invalid, "“\(path)” \(problem)")
            }
        case .message(let queue): _ = try messages(of: queue)
        case .program(let arguments):
            guard arguments.first?.isEmpty == false else {
                throw TriggerSourceError(.invalid, "the command names no program")
            }
        }
        return source
    }

    package func source(
        _ source: WatchedSource
    ) throws(TriggerSourceError) -> any TriggerSource {
        try check(source)
        let time = configuration.time
        switch source {
        case .file(let file):
            return FileWatcher(
                try Self.configuration(of: file),
                threads: try threads(),
                time: time
            )
        case .pipe(let path):
            return try PipeSource(path: path, threads: try threads(), time: time)
        case .program(let arguments):
            var random = SystemRandomNumberGenerator()
            return try ProgramSource(
                CommandDescription(arguments: arguments),
                runner: try runner(),
                threads: try threads(),
                seed: random.next(),
                time: time
            )
        case .signal(let name): return try SignalSource(name: name)
        case .process(.file(let path)):
            return ProcessWatcher(.pidFile(path), threads: try threads(), time: time)
        case .process(.identity(let text)):
            let process = try Self.identity(text)
            return ProcessWatcher(.process(process), threads: try threads(), time: time)
        case .process(.number(let number)):
            let process = try ProcessIdentity(running: number)
            return ProcessWatcher(.process(process), threads: try threads(), time: time)
        case .message(let queue): return try messages(of: queue)
        }
    }

    package func shutDown() async {
        let (threads, runner) = shared.withLock { shared in
            shared.isShutDown = true
            defer {
                shared.threads = nil
                shared.runner = nil
            }
            return (shared.threads, shared.runner)
        }
        await runner?.shutdown()
        threads?.stop()
    }

    private func check(_ source: WatchedSource) throws(TriggerSourceError) {
        guard source.isLocal, !configuration.watchesMachine else { return }
        throw TriggerSourceError(
            .accessRefused,
            "the coordinator watches nothing on its machine: start it with --watch-machine"
        )
    }

    private func messages(of queue: String) throws(TriggerSourceError) -> any TriggerSource {
        guard let messages = configuration.messages else {
            throw TriggerSourceError(.accessRefused, "this coordinator has no broker")
        }
        return try messages(queue)
    }

    private static func configuration(
        of file: FileSource
    ) throws(TriggerSourceError) -> FileWatcher.Configuration {
        try FileWatcher.Configuration(
            path: file.path,
            pattern: file.pattern,
            changes: file.changes
        )
    }

    private static func identity(_ text: String) throws(TriggerSourceError) -> ProcessIdentity {
        guard let process = ProcessIdentity(text) else {
            throw TriggerSourceError(.invalid, "“\(text)” is not the identity of a process")
        }
        return process
    }

    // MARK: - What sources share

    private func threads() throws(TriggerSourceError) -> SourceThreads {
        try shared.withLock { shared in
            Result { () throws(TriggerSourceError) in
                if let threads = shared.threads { return threads }
                guard !shared.isShutDown else { throw Self.over }
                let threads = try SourceThreads()
                shared.threads = threads
                return threads
            }
        }.get()
    }

    private func runner() throws(TriggerSourceError) -> ProcessRunner {
        try shared.withLock { shared in
            Result { () throws(TriggerSourceError) in
                if let runner = shared.runner { return runner }
                guard !shared.isShutDown else { throw Self.over }
                var processes = ProcessRunner.Configuration(environment: configuration.environment)
                processes.report = configuration.report
                do throws(ProcessRunnerError) {
                    let runner = try ProcessRunner(processes)
                    shared.runner = runner
                    return runner
                } catch {
                    throw TriggerSourceError(.exhausted, error.message)
                }
            }
        }.get()
    }

    private static let over = TriggerSourceError(
        .ended,
        "the process that watches is shutting down"
    )
}
