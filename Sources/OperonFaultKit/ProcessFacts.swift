import Foundation
package import Glibc

/// What the system says about a process.
package enum ProcessFacts {
    /// Bytes of its memory that are in use.
    package static func residentBytes(_ process: pid_t = getpid()) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(process)/statm", encoding: .utf8)
        guard let pages = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
            throw CommandFailure("statm of \(process) says “\(text)”")
        }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }

    package static func descriptorCount(_ process: pid_t = getpid()) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
    }
}
