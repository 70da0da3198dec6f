import COperonProcess
import Glibc
import OperonModel
import Synchronization

/// The files through which processes get their inputs and return their outputs: one private
/// directory (0700) per runner, removed with the runner; two files per attempt, removed after the
/// attempt. If commands run as other users, each of these has a private directory in it, and the
/// files of its attempts are made, read and removed with its rights; others can look up a known
/// name in the directory of the runner, and nothing else (0711).
///
/// Every call except `attempt` blocks and belongs on the files thread.
struct ProcessFiles: Sendable {
    /// The paths of one attempt's files.
    struct Attempt: Sendable {
        let inputs: String
        let output: String
        /// Whether `inputs` is the attempt's own file and not the shared empty one.
        let hasInputs: Bool
        /// The user of the attempt; `nil`: that of the worker.
        var user: OperationUser?
    }

    let directory: String
    private let users: [OperationUser]
    private let hold: DirectoryHold

    /// The prefix of the name of every such directory.
    static let namePrefix = "operon-"

    /// A text that is in the environment of every process with files here, and of no other process.
    var marker: String { "\(ProcessEnvironment.inputs)=\(directory)/" }

    /// Makes the directory under `parent`, for processes of the worker's user and of others.
    init(in parent: String, users: [OperationUser] = []) throws(SystemError) {
        self.users = users
        var template = Array("\(parent)/\(Self.namePrefix)XXXXXX".utf8CString)
        let made = unsafe template.withUnsafeMutableBufferPointer { buffer in
            unsafe mkdtemp(buffer.baseAddress!) != nil
        }
        guard made else { throw .current("making a directory for temporary files in \(parent)") }
        directory = String(
            decoding: template.dropLast().map(UInt8.init(bitPattern:)),
            as: UTF8.self
        )
        hold = DirectoryHold()
        try hold.take(directory)
        try makeCommon()
    }

    private func makeCommon() throws(SystemError) {
        // Attempts without inputs share one file, so that they cost no file each.
        try ProcessFiles.write([], to: emptyInputs)
        guard !users.isEmpty else { return }
        // It has no inputs to keep from others.
        guard unsafe chmod(directory, 0o711) == 0, unsafe chmod(emptyInputs, 0o444) == 0 else {
            throw .current("letting other users into \(directory)")
        }
        for user in users {
            let folder = folder(of: user)
            let (id, group) = unsafe (user.id, user.entry.pointee.group)
            guard unsafe mkdir(folder, 0o700) == 0, unsafe chown(folder, id, group) == 0 else {
                throw .current("making \(folder)")
            }
            try user.act { () throws(SystemError) in
                let number = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                guard number >= 0 else {
                    throw .current("entering \(folder) as \(user.name) (set another TMPDIR)")
                }
                close(number)
            }
        }
    }

    private func folder(of user: OperationUser?) -> String {
        user.map { "\(directory)/u\($0.id)" } ?? directory
    }

    private var emptyInputs: String { "\(directory)/no-inputs.json" }

    /// Makes the directory and the shared file again if they were removed, for example by a cleaner
    /// of the temporary directory. Returns whether it had to.
    @discardableResult
    func repair() throws(SystemError) -> Bool {
        guard unsafe access(emptyInputs, F_OK) != 0 else { return false }
        guard errno == ENOENT else { throw .current("looking at \(emptyInputs)") }
        return try hold.repair { () throws(SystemError) in
            // Another thread repaired it meanwhile.
            guard unsafe access(emptyInputs, F_OK) != 0 else { return false }
            guard unsafe mkdir(directory, 0o700) == 0 || errno == EEXIST else {
                throw .current("making \(directory) again")
            }
            try hold.take(directory)
            try makeCommon()
            return true
        }
    }

    /// The file names for attempt number `id` of this runner. Creates nothing.
    func attempt(_ id: UInt64, hasInputs: Bool, user: OperationUser? = nil) -> Attempt {
        let folder = folder(of: user)
        return Attempt(
            inputs: hasInputs ? "\(folder)/\(id).inputs.json" : emptyInputs,
            output: "\(folder)/\(id).output.json",
            hasInputs: hasInputs,
            user: user
        )
    }

    /// The file with what fired a trigger, for attempt number `id` of this runner.
    func eventPath(of id: UInt64, user: OperationUser? = nil) -> String {
        "\(folder(of: user))/\(id).event.json"
    }

    // MARK: - Inputs

    /// Writes all inputs to the new file of an attempt.
    static func write(_ inputs: [NamedInput], to attempt: Attempt) throws(SystemError) {
        try attempt.user.act { () throws(SystemError) in try write(inputs, to: attempt.inputs) }
    }

    /// Writes all inputs to a new file.
    static func write(_ inputs: [NamedInput], to path: String) throws(SystemError) {
        let writer = try InputsWriter(path)
        for input in inputs { try writer.append(input) }
        try writer.finish()
    }

    // MARK: - Output

    /// Whether an output could not be read because of a shortage that may end.
    static func isShortage(_ error: OperationError) -> Bool { error == Self.shortage }

    static let shortage = outputError("the system has nothing left to read it with")

    /// Whether the attempt wrote an output: one system call, cheap enough for any of the threads.
    static func hasOutput(_ path: String) -> Bool {
        unsafe faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// Reads the output, at most `limit` bytes of it.
    static func readOutput(_ attempt: Attempt, limit: Int) throws(OperationError) -> [UInt8] {
        try attempt.user.act { () throws(OperationError) in
            try readOutput(at: attempt.output, limit: limit)
        }
    }

    private static func readOutput(at path: String, limit: Int) throws(OperationError) -> [UInt8] {
        // A FIFO in its place must not block the thread, and a link must not lead elsewhere.
        let number = unsafe open(
            path,
            O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW
        )
        guard number >= 0 else {
            let error = SystemError.current("reading an output")
            throw error.isShortage ? shortage : outputError(SystemError.text(error.code))
        }
        let file = Descriptor(owning: number)
        var status = stat()
        guard unsafe fstat(file.number, &status) == 0 else {
            throw outputError(SystemError.text(errno))
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw outputError("it is not a file") }
        guard status.st_size <= limit else {
            throw .outputTooLarge(bytes: Int(status.st_size), limit: limit)
        }
        return try read(file, upTo: limit)
    }

    private static func read(
        _ file: borrowing Descriptor,
        upTo limit: Int
    ) throws(OperationError) -> [UInt8] {
        // A process that left the group may still be writing: reading one byte more than the limit
        // shows that the output is too large.
        var bytes = [UInt8](repeating: 0, count: limit + 1)
        var count = 0
        while count < bytes.count {
            let number = file.number
            let part = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(number, buffer.baseAddress! + count, buffer.count - count)
            }
            if part < 0, errno == EINTR { continue }
            guard part >= 0 else { throw outputError(SystemError.text(errno)) }
            if part == 0 { break }
            count += part
        }
        guard count <= limit else { throw .outputTooLarge(bytes: count, limit: limit) }
        return Array(bytes[..<count])
    }

    /// The error of an attempt whose output cannot be used.
    static func outputError(_ why: String) -> OperationError {
        .thrown(
            type: "output",
            message: "The output in $OPERON_OUTPUT cannot be used: \(why).",
            payload: []
        )
    }

    // MARK: - Removing

    /// Removes the files of one attempt.
    static func remove(_ attempt: Attempt) {
        attempt.user.act {
            removeTree(attempt.output)
            if attempt.hasInputs { removeTree(attempt.inputs) }
        }
    }

    /// Removes the directory with all files.
    func removeAll() { ProcessFiles.removeTree(directory) }

    /// Files that cannot be removed are left for `removeAll`, and after that for a cleaner of the
    /// temporary directory.
    private static func removeTree(_ path: String) { unsafe operon_process_remove(path) }
}

/// A directory that is held open and locked while it is used: systemd-tmpfiles skips a directory
/// that has a BSD file lock, with all its contents (tmpfiles.d(5), “Age”).
private final class DirectoryHold: Sendable {
    private final class Opened: Sendable {
        let descriptor: Descriptor

        init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
    }

    private let opened = Mutex<Opened?>(nil)
    private let repairing = Mutex(())

    /// Opens a directory, which must belong to this user alone, and locks it.
    func take(_ path: String) throws(SystemError) {
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(path, flags)
        guard number >= 0 else { throw .current("opening \(path)") }
        let descriptor = Descriptor(owning: number)
        var status = stat()
        guard unsafe fstat(number, &status) == 0 else { throw .current("looking at \(path)") }
        guard status.st_uid == geteuid(), status.st_mode & 0o066 == 0 else {
            throw SystemError(doing: "using \(path), which others may use as well", code: EPERM)
        }
        // Best effort: on a file system without locks, no cleaner looks for them either.
        _ = flock(number, LOCK_SH | LOCK_NB)
        let held = Opened(descriptor)
        opened.withLock { $0 = held }
    }

    /// Allows one repair at a time.
    func repair(_ body: () throws(SystemError) -> Bool) throws(SystemError) -> Bool {
        try repairing.withLock { _ throws(SystemError) in try body() }
    }
}
