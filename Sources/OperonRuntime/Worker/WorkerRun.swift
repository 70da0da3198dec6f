import COperonProcess
import Glibc
import OperonModel

/// One run of a worker process, as it is written down for the next run: its incarnation, and how to
/// recognise the processes that it started.
struct WorkerRun: Hashable {
    let incarnation: Incarnation
    /// The boot of the machine and the PID namespace of the run. If either is different now, none
    /// of its processes can be left, and its process numbers mean other processes.
    let boot: String
    let numbers: String
    let session: pid_t
    /// A text that is in the environment of all its processes and of no others.
    let marker: String
    /// The directory of its temporary files.
    let files: String

    init(incarnation: Incarnation, marker: String, files: String) {
        self.incarnation = incarnation
        self.marker = marker
        self.files = files
        boot = Self.currentBoot ?? ""
        numbers = Self.currentNumbers ?? ""
        session = getsid(0)
    }

    /// Parses a `text`; returns `nil` for anything else, such as half of one.
    init?(text: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard lines.count == 8, lines[0] == Self.header, lines[7].isEmpty,
            let incarnation = Incarnation(text: lines[1]), let session = pid_t(lines[4]),
            !lines[5].isEmpty
        else { return nil }
        self.incarnation = incarnation
        boot = lines[2]
        numbers = lines[3]
        self.session = session
        marker = lines[5]
        files = lines[6]
    }

    private static let header = "operon worker 1"

    var text: String {
        [Self.header, incarnation.description, boot, numbers, "\(session)", marker, files, ""]
            .joined(separator: "\n")
    }

    /// Kills the remaining processes of this run; returns whether none can be seen any more.
    ///
    /// - Parameters:
    ///   - groups: The process groups it ran; `nil`: they cannot be read.
    ///   - boot: The current boot; `nil`: it cannot be read, so the boot may be the same.
    ///   - numbers: The current PID namespace; `nil` likewise.
    func isEnded(
        groups: [ProcessGroupTable.Entry]?,
        boot current: String? = WorkerRun.currentBoot,
        numbers currentNumbers: String? = WorkerRun.currentNumbers
    ) -> Bool {
        guard let groups, let current, let currentNumbers, !boot.isEmpty, !numbers.isEmpty
        else { return false }
        guard boot == current, numbers == currentNumbers else { return true }
        for look in 0..<Self.looksMax {
            // By group for processes with a hidden environment, by environment for those that left
            // their group.
            let left = groups.count { $0.kill(session: session) }
            let marked = unsafe operon_process_kill_marked(marker)
            guard left > 0 || marked > 0 else {
                removeFiles()
                return true
            }
            // Killed processes take a moment to end. One that hangs in the kernel has until the
            // last look.
            if look + 1 < Self.looksMax { usleep(10_000) }
        }
        return false
    }

    /// Five seconds of looks every 10 ms: SIGKILL usually takes effect at once.
    private static let looksMax = 500

    /// Removes what the guard process would have removed, but only a directory with such a name.
    private func removeFiles() {
        guard files.split(separator: "/").last?.hasPrefix(ProcessFiles.namePrefix) == true
        else { return }
        unsafe operon_process_remove(files)
    }

    private static var currentBoot: String? {
        guard let bytes = SmallFile.read("/proc/sys/kernel/random/boot_id") else { return nil }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    private static var currentNumbers: String? {
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            let text = unsafe bytes.baseAddress!.assumingMemoryBound(to: CChar.self)
            return unsafe readlink("/proc/self/ns/pid", text, bytes.count)
        }
        return count > 0 ? String(decoding: buffer.prefix(count), as: UTF8.self) : nil
    }
}

/// Access to files of a few hundred bytes: the worker's own, and the kernel's.
enum SmallFile {
    private static let bytesMax = 64 << 10

    /// Reads at most 64 KiB of a file; `nil`: it cannot be read.
    static func read(_ path: String) -> [UInt8]? {
        let number = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard number >= 0 else { return nil }
        let file = Descriptor(owning: number)
        var bytes = [UInt8](repeating: 0, count: bytesMax)
        var count = 0
        while count < bytes.count {
            let number = file.number
            let part = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(number, buffer.baseAddress! + count, buffer.count - count)
            }
            if part < 0, errno == EINTR { continue }
            guard part >= 0 else { return nil }
            if part == 0 { break }
            count += part
        }
        return Array(bytes[..<count])
    }
}
