package import OperonModel
import OperonPorts

/// Watches for the end of a process of this machine: a certain one, or the one that a file names.
///
/// The identity of an end is that of the process: its number, its start time and the boot. A number
/// that the system gave to another process meanwhile is not mistaken for it.
///
/// **What is known of the end** (`ended` is `exit` with `code`, `signal` with `signal`, or
/// `unknown`): exit code and signal of children of this process and, from Linux 6.15 on, of every
/// process. Earlier kernels tell them to the parent alone.
///
/// **A certain process** that has ended while nobody watched is reported when the watcher starts,
/// as `unknown`. **With a file**, an end while nobody watched cannot be seen. The file may appear
/// later and may change: the process that it names is watched, from a second later on at the
/// latest. If the file is removed, the process that it named is watched on.
package struct ProcessWatcher: TriggerSource {
    package enum Target: Hashable, Sendable {
        /// One process. The source returns after it has reported its end.
        case process(ProcessIdentity)
        /// An absolute path.
        case pidFile(String)
    }

    private let target: Target
    private let threads: SourceThreads
    private let time: TimeSource

    /// How often it reads the file.
    static let checkInterval = Duration.seconds(1)
    /// How long it waits for a parent to collect a process that has ended, which makes the exit
    /// code known.
    private static let patience: [Duration] = [
        .milliseconds(10), .milliseconds(100), .seconds(1),
    ]

    package init(_ target: Target, threads: SourceThreads, time: TimeSource = .system) {
        self.target = target
        self.threads = threads
        self.time = time
    }

    package func run(
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        switch target {
        case .process(let process): try await watch(process, report, status)
        case .pidFile(let path): try await follow(path, report, status)
        }
    }

    private func watch(
        _ process: ProcessIdentity,
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        _ status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        var tell = StatusTeller(status)
        while true {
            switch Self.opened(process) {
            case .success(let descriptor):
                if let descriptor {
                    tell(.observing)
                    try await threads.readiness.readable(descriptor.number)
                }
                return try await conclude(process, descriptor, report)
            case .failure(let error):
                tell(.waiting(error))
                try await time.sleep(time.now() + Self.checkInterval)
            }
        }
    }

    /// `nil`: the process has ended.
    private static func opened(
        _ process: ProcessIdentity
    ) -> Result<ProcessDescriptor?, TriggerSourceError> {
        do throws(SystemError) {
            return .success(try process.descriptor())
        } catch {
            return .failure(TriggerSourceError(error, "a process cannot be watched"))
        }
    }

    private func follow(
        _ path: String,
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        _ status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        var tell = StatusTeller(status)
        /// The process whose end was reported last; the file may name it for some time.
        var ended: ProcessIdentity?
        while true {
            switch await named(path) {
            case .failure(let error): tell(.waiting(error))
            case .success(let process) where process == ended:
                tell(.waiting(Self.absent(process.process, path)))
            case .success(let process):
                switch Self.opened(process) {
                case .failure(let error): tell(.waiting(error))
                case .success(let descriptor):
                    let hasEnded = try await watch(process, descriptor, path, report, &tell)
                    if hasEnded { ended = process }
                    // The file may already name another one.
                    continue
                }
            }
            try await time.sleep(time.now() + Self.checkInterval)
        }
    }

    /// Watches a process until its end, which it reports, or until the file names another one.
    /// Returns whether it has ended.
    private func watch(
        _ process: ProcessIdentity,
        _ descriptor: ProcessDescriptor?,
        _ path: String,
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        _ tell: inout StatusTeller
    ) async throws -> Bool {
        guard let descriptor else {
            try await conclude(process, nil, report)
            return true
        }
        tell(.observing)
        while true {
            let hasEnded = try await threads.readiness.readable(
                descriptor.number,
                within: Self.checkInterval,
                by: time
            )
            if hasEnded {
                try await conclude(process, descriptor, report)
                return true
            }
            if case .success(let other) = await named(path), other != process { return false }
        }
    }

    private func named(_ path: String) async -> Result<ProcessIdentity, TriggerSourceError> {
        await threads.files.perform {
            Result { () throws(TriggerSourceError) in
                let process = try PIDFile.read(path)
                do throws(TriggerSourceError) {
                    return try ProcessIdentity(running: process)
                } catch {
                    throw error.code == .absent ? Self.absent(process, path) : error
                }
            }
        }
    }

    private static func absent(_ process: Int32, _ path: String) -> TriggerSourceError {
        TriggerSourceError(.absent, "process \(process), which “\(path)” names, has ended")
    }

    private func conclude(
        _ process: ProcessIdentity,
        _ descriptor: ProcessDescriptor?,
        _ report: @escaping @Sendable (Occurrence) async throws -> Void
    ) async throws {
        var end = descriptor?.end() ?? .unknown
        for pause in Self.patience {
            guard case .notYetKnown = end, let descriptor else { break }
            try await time.sleep(time.now() + pause)
            end = descriptor.end()
        }
        let (ended, code, signal): (String, Int32?, Int32?) =
            switch end {
            case .exited(let code): ("exit", code, nil)
            case .signaled(let number): ("signal", nil, number)
            case .notYetKnown, .unknown: ("unknown", nil, nil)
            }
        try await report(
            Occurrence(
                identity: "exit:\(process)",
                event: [
                    "process": .number(Int64(process.process)),
                    "ended": .text(ended),
                    "code": code.map { .number(Int64($0)) },
                    "signal": signal.map { .text(SignalName.of($0)) },
                ]
            )
        )
    }
}
