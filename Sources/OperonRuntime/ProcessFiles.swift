import COperonProcess
import Glibc
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

    /// Bytes written at once: few system calls, little memory, whatever the size of the inputs.
    private static let writeBytes = 256 << 10

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
        // Attempts without inputs share one file, so that they cost no file each.
        try ProcessFiles.write([], to: emptyInputs)
    }

    private var emptyInputs: String { "\(directory)/no-inputs.json" }

    /// The names for attempt number `id` of this runner. Nothing is made.
    func attempt(_ id: UInt64, hasInputs: Bool) -> Attempt {
        Attempt(
            inputs: hasInputs ? "\(directory)/\(id).inputs.json" : emptyInputs,
            output: "\(directory)/\(id).output.json",
            hasInputs: hasInputs
        )
    }

    // MARK: - Inputs

    /// Writes `{"name": output or null, …}` to a new file: JSON outputs as they are, others as
    /// strings in base64.
    static func write(_ inputs: [NamedInput], to path: String) throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(path, flags, 0o400)
        guard number >= 0 else { throw .current("making the file of inputs") }
        let file = Descriptor(owning: number)

        var pending: [UInt8] = []
        var separator = Array("{".utf8)
        for input in inputs {
            pending += separator + JSONText.quoted(input.name) + ":".utf8
            separator = Array(",".utf8)
            try append(input.output, to: &pending, flushingTo: file)
        }
        pending += (inputs.isEmpty ? "{}\n" : "}\n").utf8
        try flush(&pending, to: file)
    }

    private static func append(
        _ output: Payload?,
        to pending: inout [UInt8],
        flushingTo file: borrowing Descriptor
    ) throws(SystemError) {
        guard let output, !output.isEmpty else {
            pending += "null".utf8
            return
        }
        guard output.contentType != Payload.json else {
            if pending.count + output.bytes.count > writeBytes { try flush(&pending, to: file) }
            pending += output.bytes
            return
        }
        pending.append(UInt8(ascii: "\""))
        // A multiple of three, so that padding comes only at the end.
        let groupBytes = writeBytes / 4 * 3
        for start in stride(from: 0, to: output.bytes.count, by: groupBytes) {
            let end = min(start + groupBytes, output.bytes.count)
            Base64.append(output.bytes[start..<end], to: &pending)
            if pending.count > writeBytes { try flush(&pending, to: file) }
        }
        pending.append(UInt8(ascii: "\""))
    }

    private static func flush(
        _ pending: inout [UInt8],
        to file: borrowing Descriptor
    ) throws(SystemError) {
        var written = 0
        while written < pending.count {
            let number = file.number
            let count = unsafe pending.withUnsafeBytes { bytes in
                unsafe Glibc.write(number, bytes.baseAddress! + written, bytes.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .current("writing the file of inputs") }
            written += count
        }
        pending.removeAll(keepingCapacity: true)
    }

    // MARK: - Output

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
        guard number >= 0 else { throw outputError(SystemError.text(errno)) }
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

/// RFC 4648, section 4.
enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )

    /// Appends the encoding of `bytes`, padded.
    static func append(_ bytes: ArraySlice<UInt8>, to text: inout [UInt8]) {
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let left = bytes.endIndex - index
            let group =
                UInt32(bytes[index]) << 16
                | (left > 1 ? UInt32(bytes[index + 1]) << 8 : 0)
                | (left > 2 ? UInt32(bytes[index + 2]) : 0)
            text.append(alphabet[Int(group >> 18)])
            text.append(alphabet[Int(group >> 12 & 63)])
            text.append(left > 1 ? alphabet[Int(group >> 6 & 63)] : UInt8(ascii: "="))
            text.append(left > 2 ? alphabet[Int(group & 63)] : UInt8(ascii: "="))
            index += 3
        }
    }
}
