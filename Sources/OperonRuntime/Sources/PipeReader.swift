import Glibc
import OperonModel

/// The reading end of a named pipe, with the lines that come out of it.
///
/// It is opened for reading only and without waiting for a writer. When the last writer has closed
/// the pipe, it is opened again, so that it can be waited for: the kernel keeps reporting the end
/// to a descriptor that has seen it.
///
/// `@unchecked Sendable`: one task uses it; it makes one call at a time.
final class PipeReader: @unchecked Sendable {
    enum Progress {
        case lines([LineSplitter.Item])
        /// Nothing to read at present.
        case empty
        /// The last writer has closed the pipe.
        case ended(LineSplitter.Item?)
    }

    /// The capacity of a pipe by default.
    private static let readBytes = 64 << 10

    private struct Opened: ~Copyable {
        let descriptor: Descriptor
        let device: dev_t
        let inode: ino_t
    }

    let path: String
    private var pipe: Opened
    private var splitter: LineSplitter
    private var buffer = [UInt8](repeating: 0, count: PipeReader.readBytes)

    /// Opens a pipe. May block as long as its file system does.
    init(_ path: String, lineBytesMax: Int) throws(TriggerSourceError) {
        self.path = path
        pipe = try Self.open(path)
        splitter = LineSplitter(bytesMax: lineBytesMax)
    }

    /// The number to wait for. It changes with `reopen`.
    var number: Int32 { pipe.descriptor.number }

    /// Whether the path still leads to this pipe.
    var isCurrent: Bool {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return false }
        return status.st_dev == pipe.device && status.st_ino == pipe.inode
    }

    /// Takes what is in the pipe. To be called only when there is something to read: a pipe that
    /// nobody has opened for writing yet looks as if it had ended.
    func read() -> Progress {
        let number = number
        var count = -1
        repeat {
            count = unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe Glibc.read(number, bytes.baseAddress, bytes.count)
            }
        } while count < 0 && errno == EINTR
        if count < 0 { return .empty }
        guard count > 0 else { return .ended(splitter.finish()) }
        return .lines(splitter.append(buffer[..<count]))
    }

    /// Opens the pipe again. The old descriptor is closed after that, so that a writer never finds
    /// the pipe without a reader. May block as long as its file system does.
    func reopen() throws(TriggerSourceError) { pipe = try Self.open(path) }

    private static func open(_ path: String) throws(TriggerSourceError) -> Opened {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw failure(errno, path) }
        // Opening something else, such as a device, may have effects.
        guard status.st_mode & S_IFMT == S_IFIFO else { throw notAPipe(path) }
        let number = unsafe Glibc.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
        guard number >= 0 else { throw failure(errno, path) }
        let descriptor = Descriptor(owning: number)
        guard unsafe fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFIFO else {
            throw notAPipe(path)
        }
        return Opened(descriptor: descriptor, device: status.st_dev, inode: status.st_ino)
    }

    private static func notAPipe(_ path: String) -> TriggerSourceError {
        TriggerSourceError(.invalid, "“\(path)” is not a named pipe: mkfifo makes one")
    }

    private static func failure(_ code: Int32, _ path: String) -> TriggerSourceError {
        let why =
            switch code {
            case ENOENT, ENOTDIR: "there is no pipe “\(path)”: mkfifo makes one"
            case EACCES, EPERM: "the user \(OwnProcess.userName) may not read the pipe “\(path)”"
            default: "the pipe “\(path)” cannot be opened: \(SystemError.text(code))"
            }
        return TriggerSourceError(errno: code, why)
    }
}
