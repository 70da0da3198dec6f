import FoundationEssentials
import Glibc

/// Seconds on the clock and of the processors, and memory, from step to step.
struct Meter {
    var operations: Int
    private let name: String
    private let clock = ContinuousClock()
    private var last: (clock: ContinuousClock.Instant, processors: Double)
    private var fields: [String] = []
    /// Pages in memory before anything was submitted.
    private var before = 0

    init(_ name: String, _ operations: Int) {
        self.name = name
        self.operations = operations
        last = (clock.now, Process.processorSeconds)
    }

    mutating func begin() { before = (try? Process.memory("VmRSS:")) ?? 0 }

    /// What passed since the last lap.
    mutating func lap(_ step: String) {
        let now = (clock: clock.now, processors: Process.processorSeconds)
        let passed = (now.clock - last.clock) / .seconds(1)
        fields.append("\"\(step)Seconds\": \(rounded(passed))")
        fields.append("\"\(step)CPUSeconds\": \(rounded(now.processors - last.processors))")
        last = now
    }

    /// Prints the line.
    func say(fileAt path: String) throws {
        let file =
            try Process.bytes(ofFile: path) + ((try? Process.bytes(ofFile: path + "-wal")) ?? 0)
        let resident = try Process.memory("VmRSS:")
        let all =
            ["\"step\": \"\(name)\"", "\"operations\": \(operations)"] + fields + [
                "\"fileBytes\": \(file)", "\"residentBytes\": \(resident)",
                "\"describedBytes\": \(before)", "\"peakBytes\": \(try Process.memory("VmHWM:"))",
            ]
        print("{\(all.joined(separator: ", "))}")
    }

    private func rounded(_ seconds: Double) -> Double { (seconds * 1e4).rounded() / 1e4 }
}

/// This process, as the system sees it.
enum Process {
    /// Of all threads, the kernel's work for them included.
    static var processorSeconds: Double {
        var usage = rusage()
        unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    private static func seconds(_ time: timeval) -> Double {
        Double(time.tv_sec) + Double(time.tv_usec) / 1e6
    }

    /// A field of its status, in bytes.
    static func memory(_ field: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        for line in status.split(separator: "\n") where line.hasPrefix(field) {
            let words = line.split { $0 == " " || $0 == "\t" }
            if words.count > 1, let kibibytes = Int(words[1]) { return kibibytes * 1_024 }
        }
        throw BenchmarkError(description: "/proc/self/status has no \(field)")
    }

    static func bytes(ofFile path: String) throws -> Int {
        var facts = stat()
        guard unsafe stat(path, &facts) == 0 else {
            throw BenchmarkError(description: "\(path) has no size")
        }
        return Int(facts.st_size)
    }

    /// As a kill ends it: nothing is closed.
    static func die() -> Never {
        fflush(nil)
        _exit(0)
    }
}

struct BenchmarkError: Error, CustomStringConvertible {
    let description: String
}
