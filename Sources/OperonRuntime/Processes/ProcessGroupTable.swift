import Glibc
import NIOConcurrencyHelpers

/// The process groups that run, in a file: one entry of sixteen bytes each, at a place that is used
/// again. An entry is written as a whole, so whatever ends the worker, the file can be read.
final class ProcessGroupTable: Sendable {
    private struct State {
        var count = 0
        var free: [Int] = []
    }

    private let file: Descriptor
    private let state = NIOLockedValueBox(State())

    private static let entryBytes = 16

    /// Makes an empty one, forgetting what was there.
    init(_ path: String) throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(path, flags, 0o600)
        guard number >= 0 else { throw .current("making \(path)") }
        file = Descriptor(owning: number)
    }

    /// Writes down the group that a process leads. Its place.
    func add(_ process: pid_t) -> Int {
        let place = state.withLockedValue { state in
            if let place = state.free.popLast() { return place }
            state.count += 1
            return state.count - 1
        }
        let start = KernelProcess(process)?.start ?? 0
        write(process: Int64(process), start: start, at: place)
        return place
    }

    func remove(_ place: Int) {
        write(process: 0, start: 0, at: place)
        state.withLockedValue { $0.free.append(place) }
    }

    private func write(process: Int64, start: UInt64, at place: Int) {
        let words = [UInt64(bitPattern: process).littleEndian, start.littleEndian]
        let number = file.number
        // A disk that is full costs the entry: the environment of its processes is left to go by.
        _ = unsafe words.withUnsafeBytes { bytes in
            unsafe pwrite(number, bytes.baseAddress, bytes.count, off_t(place * Self.entryBytes))
        }
    }

    // MARK: - What a former life left

    /// A group that was running when its worker ended.
    struct Entry: Hashable {
        let process: pid_t
        /// When its leader started, in ticks since the boot; zero: it had ended before it could
        /// be asked.
        let start: UInt64

        /// Kills what is left of it; whether there was anything, or may have been, because the
        /// system had nothing left for a look. `session`: that of its worker.
        func kill(session: pid_t) -> Bool {
            let leader = KernelProcess(process)
            if let leader {
                // The number is another's now, and so is its group.
                guard leader.start == start else { return false }
            }
            if leader?.isZombie ?? true {
                guard let hasMembers = hasMembers(session) else { return true }
                guard hasMembers else { return false }
            }
            return Glibc.kill(-process, SIGKILL) == 0
        }

        /// A number stays taken while its group has members, and nobody joins a group from another
        /// session: so the members of a group whose leader is gone are its own, unless the number
        /// went round and became a group of the same session since. `nil`: nobody knows.
        private func hasMembers(_ session: pid_t) -> Bool? {
            KernelProcess.all()?.contains {
                $0.group == process && $0.session == session && $0.start >= start && !$0.isZombie
            }
        }
    }

    /// `nil`: they cannot be read.
    static func entries(of path: String) -> [Entry]? {
        guard let bytes = SmallFile.read(path) else { return errno == ENOENT ? [] : nil }
        return stride(from: 0, to: bytes.count - entryBytes + 1, by: entryBytes).compactMap {
            func word(_ offset: Int) -> UInt64 {
                bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
            }
            guard let process = pid_t(exactly: word($0)), process > 1 else { return nil }
            return Entry(process: process, start: word($0 + 8))
        }
    }
}
