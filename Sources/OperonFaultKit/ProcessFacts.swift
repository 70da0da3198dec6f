import Foundation
import Glibc

/// What the system says about a process.
package enum ProcessFacts {
    /// Bytes of its memory that are in use.
    package static func residentBytes(_ process: Int32 = getpid()) throws -> Int {
        try memory(process, column: 1)
    }

    /// Bytes of its address space.
    package static func virtualBytes(_ process: Int32) throws -> Int {
        try memory(process, column: 0)
    }

    private static func memory(_ process: Int32, column: Int) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(process)/statm", encoding: .utf8)
        let words = text.split(separator: " ").dropFirst(column)
        guard let pages = words.first.flatMap({ Int($0) }) else {
            throw CommandFailure("statm of \(process) says “\(text)”")
        }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }

    /// Whether every thread of it has been stopped by a signal.
    package static func isStopped(_ process: Int32) -> Bool {
        let folder = "/proc/\(process)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return !threads.isEmpty
            && threads.allSatisfy { thread in
                let stat = try? String(contentsOfFile: "\(folder)/\(thread)/stat", encoding: .utf8)
                // “number (name) state …”; the name may contain anything.
                guard let stat, let end = stat.lastIndex(of: ")") else { return false }
                return stat[end...].hasPrefix(") T")
            }
    }

    package static func descriptorCount(_ process: Int32 = getpid()) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
    }
}
