import COperonProcess
import Glibc
import OperonModel

/// One life of a worker, as it is written down for the next: who it was, and how what it ran is
/// recognised.
struct Life: Hashable {
    let incarnation: Incarnation
    /// The boot of the machine and the space of process numbers it lived in. In others nothing of
    /// it can be left, and its numbers mean other processes.
    let boot: String
    let numbers: String
    let session: pid_t
    /// Is in the environment of all its processes and of none else.
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

    /// Reads what `text` writes; `nil` for anything else, such as half of it.
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

    /// Kills what is left of it; whether nothing is, as far as can be seen.
    ///
    /// - Parameters:
    ///   - groups: those it ran; `nil`: they cannot be read.
    ///   - boot: of the machine now; `nil`: it cannot be read, so nothing says that it was another.
    ///   - numbers: the space of process numbers now; likewise.
    func isEnded(
        groups: [ProcessGroupTable.Entry]?,
        boot current: String? = Life.currentBoot,
        numbers currentNumbers: String? = Life.currentNumbers
    ) -> Bool {
        guard let groups, let current, let currentNumbers, !boot.isEmpty, !numbers.isEmpty
        else { return false }
        guard boot == current, numbers == currentNumbers else { return true }
        for look in 0..<Self.looksMax {
            // By group what has hidden its environment, by environment what has left its group.
            let left = groups.count { $0.kill(session: session) }
            let marked = unsafe operon_process_kill_marked(marker)
            guard left > 0 || marked > 0 else {
                removeFiles()
                return true
            }
            // What was killed needs a moment to go; one that hangs in the kernel has until the end.
            if look + 1 < Self.looksMax { usleep(10_000) }
        }
        return false
    }

    /// Five seconds: SIGKILL is not long in coming.
    private static let looksMax = 500

    /// What the guard would have removed. Only a directory that such a name was made for.
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

/// Files of a few hundred bytes: ours, and the kernel's.
enum SmallFile {
    private static let bytesMax = 64 << 10

    /// `nil`: it cannot be read. Never more than 64 KiB of it.
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
