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

    /// Bytes that it may write and shares with nobody: what `RLIMIT_DATA` bounds, and its stack.
    package static func dataBytes(_ process: Int32) throws -> Int {
        try memory(process, column: 5)
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

    /// What each thread of it does, and its TCP sockets by state: for a failure that nobody can
    /// look at while it lasts.
    package static func diagnosis(_ process: Int32) -> String {
        let folder = "/proc/\(process)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        func word(_ thread: String, _ file: String) -> String {
            let text = (try? kernelText("\(folder)/\(thread)/\(file)")) ?? "?"
            return String(text.prefix { $0 != "\n" })
        }
        var lines = threads.sorted().map { thread in
            let state = word(thread, "stat").split(separator: ")").last?.prefix(2) ?? ""
            let call = word(thread, "syscall").prefix { $0 != " " }
            return "thread \(thread) \(word(thread, "comm")):\(state), system call \(call), in "
                + word(thread, "wchan")
        }
        let inodes = Set((try? socketInodes(process)) ?? [])
        var sockets: [String: Int] = [:]
        let table = (try? kernelText("/proc/\(process)/net/tcp")) ?? ""
        for line in table.split(separator: "\n").dropFirst() {
            let words = line.split(separator: " ")
            guard words.count > 9, inodes.contains(words[9]) else { continue }
            // Of one that listens, the second number counts connections that nobody has taken.
            sockets["state \(words[3]), queues \(words[4])", default: 0] += 1
        }
        lines += sockets.sorted { $0.key < $1.key }.map { "\($1) sockets in \($0)" }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func socketInodes(_ process: Int32) throws -> [Substring] {
        let folder = "/proc/\(process)/fd"
        return try FileManager.default.contentsOfDirectory(atPath: folder).compactMap {
            // One that was closed meanwhile is none of them.
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)"))?
                .wholeMatch(of: /socket:\[(\d+)\]/)?.1
        }
    }

    /// The addresses at which it takes connections over TCP, such as `127.0.0.1:7350`; those of
    /// IPv6 in the kernel's digits.
    package static func listeningAddresses(_ process: Int32) throws -> [String] {
        try listening(process, Set(try socketInodes(process))).sorted()
    }

    /// The whole text of a file of the kernel. Foundation loses the beginning of those that are
    /// long and have no size.
    private static func kernelText(_ path: String) throws -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw CommandFailure("\(path) cannot be read") }
        defer { close(file) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(file, &piece, piece.count)
            guard count >= 0 else { throw CommandFailure("\(path) cannot be read") }
            if count == 0 { return String(decoding: bytes, as: UTF8.self) }
            bytes += piece[..<count]
        }
    }

    private static func listening(
        _ process: Int32,
        _ inodes: Set<Substring>
    ) throws -> [String] {
        try ["tcp", "tcp6"].flatMap { family in
            let path = "/proc/\(process)/net/\(family)"
            return try kernelText(path).split(separator: "\n")
                .compactMap { line -> String? in
                    let words = line.split(separator: " ")
                    let listening = "0A"
                    guard words.count > 9, words[3] == listening, inodes.contains(words[9]),
                        let colon = words[1].firstIndex(of: ":"),
                        let port = Int(words[1][colon...].dropFirst(), radix: 16)
                    else { return nil }
                    let host = words[1][..<colon]
                    guard family == "tcp", let number = UInt32(host, radix: 16) else {
                        return "[\(host)]:\(port)"
                    }
                    // In the order of the network, whatever that of the machine is.
                    let bytes = (0..<4).map { (number.bigEndian >> (24 - 8 * $0)) & 0xFF }
                    return bytes.map(String.init).joined(separator: ".") + ":\(port)"
                }
        }
    }

    package static func descriptorCount(_ process: Int32 = getpid()) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
    }
}
