import COperonProcess
import Glibc
package import OperonModel
import OperonSystem

/// What a worker keeps from one run of its process to the next, in a directory that one process at
/// a time may hold: its id, and the processes it ran, so that the next run can end them and report
/// the previous run dead.
///
/// - `lock`: locked (flock(2)) while the process lives; the kernel unlocks it, however the process
///   ends. Contains the process's number, for people.
/// - `worker`: the id, made once.
/// - `life`: the incarnation, and how its processes are recognised; written before the first of
///   them.
/// - `groups`: the running process groups, each in a slot of its own that is overwritten after the
///   group has ended. Two small writes per operation, and nothing to compact.
///
/// Only the id is synced: after a power cut there are no processes left to end.
package final class StateDirectory: Sendable {
    package let path: String
    /// A warning for the administrator; `nil`: there is none.
    package var warning: String? {
        guard let rights = FileRights(path), rights.isReadableByAll else { return nil }
        return "all users can read the state directory \(path): chmod o= \(path)"
    }
    /// Sixteen hexadecimal digits.
    package let worker: String
    /// The previous run. It is dead, and so is everything it ran; `nil`: there was none, or its end
    /// cannot be confirmed.
    package let predecessor: Incarnation?
    private let incarnation: Incarnation
    private let lock: Descriptor
    private let groups: ProcessGroupTable

    /// Takes the directory, making it if necessary, and ends what the previous run left running.
    /// Blocks until the killed processes are gone.
    ///
    /// - Throws: An error with `isHeld` while another process has the directory.
    package init(path: String, incarnation: Incarnation) throws(StateDirectoryError) {
        self.path = path
        self.incarnation = incarnation
        do throws(SystemError) {
            try Self.make(path)
        } catch {
            throw StateDirectoryError(path, error)
        }
        try Self.checkRights(path)
        do throws(SystemError) {
            let lock = try Self.openLock("\(path)/lock")
            guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else {
                throw errno == EWOULDBLOCK ? .held(Self.read("\(path)/lock")) : .current("locking")
            }
            try Self.replace("\(path)/lock", with: "\(getpid())\n", in: lock)
            self.lock = lock
            worker = try Self.workerID("\(path)/worker")
            let life = WorkerRun(text: Self.read("\(path)/life") ?? "")
            predecessor = life.flatMap { life in
                let left = ProcessGroupTable.entries(of: "\(path)/groups")
                return life.isEnded(groups: left) ? life.incarnation : nil
            }
            groups = try ProcessGroupTable("\(path)/groups")
        } catch {
            throw StateDirectoryError(path, error)
        }
    }

    /// Unlocks explicitly instead of relying on the close of the descriptor: a child that is being
    /// started has a copy of the descriptor, and with it the lock, until it executes its program.
    deinit { _ = flock(lock.number, LOCK_UN) }

    /// Notes that this run starts processes from now on, with `marker` in their environment and
    /// their files in `files`.
    func begin(marker: String, files: String) throws(SystemError) {
        let life = WorkerRun(incarnation: incarnation, marker: marker, files: files)
        try Self.write(life.text, to: "\(path)/life")
    }

    /// Notes a running process group; returns the slot for `ended`.
    func started(_ process: pid_t) -> Int { groups.add(process) }

    func ended(_ place: Int) { groups.remove(place) }
}

// MARK: - Files

extension StateDirectory {
    private static func make(_ path: String) throws(SystemError) {
        // Missing parent directories are made private, too.
        var end = path.startIndex
        while end < path.endIndex {
            end = path[path.index(after: end)...].firstIndex(of: "/") ?? path.endIndex
            let part = String(path[..<end])
            guard unsafe mkdir(part, 0o700) == 0 || errno == EEXIST || errno == EISDIR else {
                throw .current("making \(part)")
            }
        }
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw .current("looking at \(path)") }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw SystemError(doing: "looking at \(path)", code: ENOTDIR)
        }
    }

    /// A user who may write there could make this worker kill any of its user's processes, and
    /// could take its place.
    private static func checkRights(_ path: String) throws(StateDirectoryError) {
        guard let rights = FileRights(path) else { return }
        guard rights.hasTrustedOwner else {
            throw StateDirectoryError("The state directory \(path) belongs to another user.")
        }
        guard rights.isWritableByOthers else { return }
        throw StateDirectoryError(
            "Other users may write to the state directory \(path) (mode \(rights.text)): "
                + "chmod go-w \(path)"
        )
    }

    private static func openLock(_ path: String) throws(SystemError) -> Descriptor {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(path, flags, 0o600)
        guard number >= 0 else { throw .current("opening \(path)") }
        return Descriptor(owning: number)
    }

    private static func replace(
        _ path: String,
        with text: String,
        in file: borrowing Descriptor
    ) throws(SystemError) {
        guard ftruncate(file.number, 0) == 0, writeAll(text, to: file) else {
            throw .current("writing \(path)")
        }
    }

    private static func workerID(_ path: String) throws(SystemError) -> String {
        guard let bytes = SmallFile.read(path) ?? (errno == ENOENT ? [] : nil) else {
            throw .current("reading \(path)")
        }
        // The file is empty if a power cut interrupted its creation.
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        if let text = lines.first.map(String.init) {
            guard Incarnation(text: text) != nil else {
                throw SystemError(doing: "reading the worker's id in \(path)", code: EBADMSG)
            }
            return text
        }
        var random = SystemRandomNumberGenerator()
        let id = Incarnation(rawValue: random.next() | 1).description
        try write(id + "\n", to: path, isSynced: true)
        return id
    }

    /// Replaces a file as a whole: a reader finds either the old contents or the new ones.
    private static func write(
        _ text: String,
        to path: String,
        isSynced: Bool = false
    ) throws(SystemError) {
        let new = "\(path).new"
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(new, flags, 0o600)
        guard number >= 0 else { throw .current("making \(new)") }
        let file = Descriptor(owning: number)
        guard writeAll(text, to: file), !isSynced || fsync(file.number) == 0,
            unsafe rename(new, path) == 0
        else { throw .current("writing \(path)") }
    }

    private static func writeAll(_ text: String, to file: borrowing Descriptor) -> Bool {
        let bytes = Array(text.utf8)
        let number = file.number
        // A few bytes to a file are written completely or not at all.
        return unsafe bytes.withUnsafeBytes { bytes in
            unsafe Glibc.write(number, bytes.baseAddress, bytes.count) == bytes.count
        }
    }

    /// Returns `nil` if the file is missing or empty.
    private static func read(_ path: String) -> String? {
        guard let bytes = SmallFile.read(path), !bytes.isEmpty else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }
}

// MARK: - Errors

/// Why a state directory cannot be used: a sentence for the person who starts the worker.
package struct StateDirectoryError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Another process holds the directory.
    package let isHeld: Bool
    package let message: String

    package var description: String { message }

    fileprivate init(_ path: String, _ error: SystemError) {
        isHeld = error.code == EWOULDBLOCK
        message =
            isHeld
            ? "The state directory \(path) is held by \(error.doing): each worker needs its own."
            : "The state directory \(path) cannot be used: \(error)."
    }

    fileprivate init(_ message: String) {
        isHeld = false
        self.message = message
    }
}

extension SystemError {
    /// Another process holds the lock; it wrote its number into the file.
    fileprivate static func held(_ number: String?) -> SystemError {
        let process = number?.split(separator: "\n").first.flatMap { pid_t($0) }
        let holder = process.map { "process \($0)" } ?? "another worker"
        return SystemError(doing: holder, code: EWOULDBLOCK)
    }
}
