import Glibc
import Synchronization

/// The running process groups, in a file: one entry of sixteen bytes each, in slots that are
/// reused. An entry is written as a whole, so the file is readable however the worker ends.
final class ProcessGroupTable: Sendable {
    private struct State {
        var count = 0
        var free: [Int] = []
    }

    private let file: Descriptor
    private let state = Mutex(State())

    private static let entryBytes = 16

    /// Makes an empty table, replacing any earlier one.
    init(_ path: String) throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(path, flags, 0o600)
        guard number >= 0 else { throw .current("making \(path)") }
        file = Descriptor(owning: number)
    }

    /// Notes the group that a process leads; returns its slot.
    func add(_ process: pid_t) -> Int {
        let place = state.withLock { state in
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
        state.withLock { $0.free.append(place) }
    }

    private func write(process: Int64, start: UInt64, at place: Int) {
        let words = [UInt64(bitPattern: process).littleEndian, start.littleEndian]
        let number = file.number
        // On a full disk the entry is lost; its processes can then only be found by their
        // environment.
        _ = unsafe words.withUnsafeBytes { bytes in
            unsafe pwrite(number, bytes.baseAddress, bytes.count, off_t(place * Self.entryBytes))
        }
    }

    // MARK: - What a previous run left

    /// A group that ran when its worker ended.
    struct Entry: Hashable {
        let process: pid_t
        /// When its leader started, in ticks since the boot; zero: it had ended before its start
        /// time could be read.
        let start: UInt64

        /// Kills what is left of the group. Returns whether anything was left, or may have been
        /// because the system had no resources left for a look.
        ///
        /// - Parameter session: The session of the group's worker.
        func kill(session: pid_t) -> Bool {
            let leader = KernelProcess(process)
            if let leader {
                // The number now belongs to another process, and so does its group.
                guard leader.start == start else { return false }
            }
            if leader?.isZombie ?? true {
                guard let hasMembers = hasMembers(session) else { return true }
                guard hasMembers else { return false }
            }
            return Glibc.kill(-process, SIGKILL) == 0
        }

        /// Whether the group still has members; `nil`: unknown. A group number stays taken while
        /// the group has members, and no process joins a group of another session. So these members
        /// belong to the old group, unless the number has since wrapped around and been reused in
        /// the same session.
        private func hasMembers(_ session: pid_t) -> Bool? {
            KernelProcess.all()?.contains {
                $0.group == process && $0.session == session && $0.start >= start && !$0.isZombie
            }
        }
    }

    /// Returns `nil` if the entries cannot be read.
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
