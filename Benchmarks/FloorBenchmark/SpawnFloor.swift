import ArgumentParser
import Foundation
import OperonModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Processes that do nothing, a few at a time: what starting and waiting cost by themselves.
struct SpawnFloor: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "spawn",
        abstract: "posix_spawn of /bin/true."
    )

    @Option(help: "Processes in all.")
    var processes = 10_000

    @Option(help: "Processes at a time.")
    var slots = 2

    func run() throws {
        let started = ContinuousClock.now
        var running = 0
        for _ in 0..<processes {
            if running == slots {
                try waitForOne()
                running -= 1
            }
            try spawn()
            running += 1
        }
        for _ in 0..<running { try waitForOne() }
        let seconds = (ContinuousClock.now - started).seconds
        printJSON([
            ("name", "\"spawn\""), ("processes", "\(processes)"), ("slots", "\(slots)"),
            ("seconds", rounded(seconds)),
            ("processesPerSecond", rounded(Double(processes) / seconds)),
        ])
    }

    private func spawn() throws {
        var pid: pid_t = 0
        let status = "/bin/true".withCString { path in
            var arguments: [UnsafeMutablePointer<CChar>?] = [
                UnsafeMutablePointer(mutating: path), nil,
            ]
            return posix_spawn(&pid, path, nil, nil, &arguments, environ)
        }
        guard status == 0 else { throw ValidationError("/bin/true: error \(status)") }
    }

    private func waitForOne() throws {
        var status: Int32 = 0
        guard waitpid(-1, &status, 0) > 0, status == 0 else {
            throw ValidationError("/bin/true ended with status \(status)")
        }
    }
}
