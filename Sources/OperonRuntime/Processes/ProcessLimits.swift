import Glibc
import OperonModel

/// The system resources that each process of a command may use; 0: no limit.
struct ProcessLimits: Hashable, Sendable {
    let memory: UInt64
    let cpuSeconds: UInt64
    /// The CPU time after which a process that handles SIGXCPU is killed.
    let cpuSecondsAtMost: UInt64
    /// The processors that it may use, as bits in words of 64; empty: those of the worker.
    let processors: [UInt64]

    init(_ command: CommandDescription, processors numbers: [Int] = []) {
        var words: [UInt64] = []
        for number in numbers where (0..<Self.processorsMax).contains(number) {
            while words.count <= number / 64 { words.append(0) }
            words[number / 64] |= 1 << UInt64(number % 64)
        }
        processors = words
        memory = command.memory.map { UInt64(max(1, $0)) } ?? 0
        cpuSeconds = command.cpuTime.map { max(1, Self.wholeSeconds($0)) } ?? 0
        cpuSecondsAtMost =
            cpuSeconds == 0 ? 0 : cpuSeconds + max(1, Self.wholeSeconds(command.grace))
    }

    /// As many as the C library's `cpu_set_t` holds.
    static let processorsMax = 1_024

    private static func wholeSeconds(_ duration: Duration) -> UInt64 {
        let (seconds, attoseconds) = duration.components
        return UInt64(max(0, seconds)) + (attoseconds > 0 ? 1 : 0)
    }
}

// MARK: - Messages for people

extension ProcessLimits {
    /// A line about the limits under which a process failed. The system does not report whether a
    /// limit was the cause, so the line only states the facts; `nil`: the process did not fail, was
    /// stopped, or has no limits.
    func note(on end: RunningProcess.End, _ result: AttemptEnd) -> String? {
        guard case .failed = result, end.stopReason == nil, let status = end.status else {
            return nil
        }
        if cpuSeconds > 0, Self.isEnd(status, by: SIGXCPU) {
            return "its cpuTime of \(cpuSeconds) s was used up (SIGXCPU)"
        }
        let tenths = end.cpuTime.nanoseconds / 100_000_000
        let cpu = "\(tenths / 10).\(tenths % 10) s of CPU time used"
        if cpuSeconds > 0, Self.isEnd(status, by: SIGKILL),
            end.cpuTime >= .seconds(Int64(clamping: cpuSeconds))
        {
            return "killed with \(cpu), of a cpuTime of \(cpuSeconds) s"
        }
        guard memory > 0 else { return nil }
        return "each of its processes may have \(Self.size(memory)) of memory (address space); "
            + "one that asks for more is refused it, and may fail so"
    }

    /// Also true if a shell reports that one of its children ended in this way.
    private static func isEnd(_ status: ProcessStatus, by signal: Int32) -> Bool {
        status == .signaled(signal) || status == .exited(code: 128 + signal)
    }

    private static func size(_ bytes: UInt64) -> String {
        if bytes % (1 << 20) == 0 { return "\(bytes >> 20) MiB" }
        if bytes % (1 << 10) == 0 { return "\(bytes >> 10) KiB" }
        return "\(bytes) B"
    }
}

extension AttemptResult {
    /// Adds a line of Operon's own to the end of the log.
    mutating func add(_ note: String, logBytes: Int) {
        let isMidLine = log.tail.last.map { $0 != UInt8(ascii: "\n") } ?? false
        log.tail += ((isMidLine ? "\n" : "") + "operon: " + note + "\n").utf8
        log = log.bounded(to: logBytes)
    }
}
