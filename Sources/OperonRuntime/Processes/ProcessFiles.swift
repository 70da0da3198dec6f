import COperonProcess
import Glibc
import NIOConcurrencyHelpers
import OperonModel

/// The files through which processes get their inputs and give their outputs: one private directory
/// (0700) per runner, removed with it; two files per attempt, removed after it.
///
/// Every call but `attempt` blocks: they belong on the files thread.
struct ProcessFiles: Sendable {
    /// Where one attempt finds its files.
    struct Attempt: Sendable {
        let inputs: String
        let output: String
        /// Whether `inputs` is its own and not the common empty one.
        let hasInputs: Bool
    }

    let directory: String
    private let hold: DirectoryHold

    /// Begins the name of every such directory.
    static let namePrefix = "operon-"

    /// Is in the environment of every process that gets its files here, and of none else.
    var marker: String { "\(ProcessEnvironment.inputs)=\(directory)/" }

    /// Makes the directory under `parent`.
    init(in parent: String) throws(SystemError) {
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
        // Attempts without inputs share one file, so that they cost no file each.
        try ProcessFiles.write([], to: emptyInputs)
    }

    private var emptyInputs: String { "\(directory)/no-inputs.json" }

    /// Makes the directory and the common file again if somebody has removed them, as those who
    /// clean the temporary directory do. Whether it had to.
    @discardableResult
    func repair() throws(SystemError) -> Bool {
        guard unsafe access(emptyInputs, F_OK) != 0 else { return false }
        guard errno == ENOENT else { throw .current("looking at \(emptyInputs)") }
        return try hold.repair { () throws(SystemError) in
            // By another thread meanwhile.
            guard unsafe access(emptyInputs, F_OK) != 0 else { return false }
            guard unsafe mkdir(directory, 0o700) == 0 || errno == EEXIST else {
                throw .current("making \(directory) again")
            }
            try hold.take(directory)
            try ProcessFiles.write([], to: emptyInputs)
            return true
        }
    }

    /// The names for attempt number `id` of this runner. Nothing is made.
    func attempt(_ id: UInt64, hasInputs: Bool) -> Attempt {
        Attempt(
            inputs: hasInputs ? "\(directory)/\(id).inputs.json" : emptyInputs,
            output: "\(directory)/\(id).output.json",
            hasInputs: hasInputs
        )
    }

    // MARK: - Inputs

    /// Writes all of them to a new file.
    static func write(_ inputs: [NamedInput], to path: String) throws(SystemError) {
        let writer = try InputsWriter(path)
        for input in inputs { try writer.append(input) }
        try writer.finish()
    }

    // MARK: - Output

    /// Whether an output could not be read for want of something that the system may have again.
    static func isShortage(_ error: OperationError) -> Bool { error == Self.shortage }

    static let shortage = outputError("the system has nothing left to read it with")

    /// Whether the attempt wrote anything: one system call, cheap enough for any thread of ours.
    static func hasOutput(_ path: String) -> Bool {
        unsafe faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0
    }

    /// Reads the output, at most `limit` bytes of it.
    static func readOutput(_ attempt: Attempt, limit: Int) throws(OperationError) -> [UInt8] {
        // A FIFO in its place must not hold the thread, a link must not lead elsewhere.
        let number = unsafe open(
            attempt.output,
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
        // Somebody who left the process group may still write: one byte more than the limit tells.
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

    /// The outcome of an attempt whose output cannot be used.
    static func outputError(_ why: String) -> OperationError {
        .thrown(
            type: "output",
            message: "The output in $OPERON_OUTPUT cannot be used: \(why).",
            payload: []
        )
    }

    // MARK: - Removing

    /// Removes what belongs to one attempt.
    static func remove(_ attempt: Attempt) {
        removeTree(attempt.output)
        if attempt.hasInputs { removeTree(attempt.inputs) }
    }

    /// Removes everything.
    func removeAll() { ProcessFiles.removeTree(directory) }

    /// What cannot be removed is left for `removeAll`, and after that for whoever cleans the
    /// temporary directory.
    private static func removeTree(_ path: String) { unsafe operon_process_remove(path) }
}

/// A directory that is held open and locked for as long as it is used: systemd-tmpfiles skips a
/// directory on which somebody has a BSD file lock, with all that is in it (tmpfiles.d(5), “Age”).
private final class DirectoryHold: Sendable {
    private final class Opened: Sendable {
        let descriptor: Descriptor

        init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
    }

    private let opened = NIOLockedValueBox<Opened?>(nil)
    private let repairing = NIOLock()

    /// Opens a directory that must be this user's alone, and locks it.
    func take(_ path: String) throws(SystemError) {
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(path, flags)
        guard number >= 0 else { throw .current("opening \(path)") }
        let descriptor = Descriptor(owning: number)
        var status = stat()
        guard unsafe fstat(number, &status) == 0 else { throw .current("looking at \(path)") }
        guard status.st_uid == geteuid(), status.st_mode & 0o077 == 0 else {
            throw SystemError(doing: "using \(path), which others may use as well", code: EPERM)
        }
        // Best effort: a file system without locks has none that looks for them either.
        _ = flock(number, LOCK_SH | LOCK_NB)
        let held = Opened(descriptor)
        opened.withLockedValue { $0 = held }
    }

    /// One repair at a time.
    func repair(_ body: () throws(SystemError) -> Bool) throws(SystemError) -> Bool {
        repairing.lock()
        defer { repairing.unlock() }
        return try body()
    }
}
