import Glibc
import OperonModel

/// A file whose first line is the number of a process.
enum PIDFile {
    /// Some programs write further lines.
    private static let bytesMax = 4_096

    /// Reads the number. May block as long as the file system does.
    static func read(_ path: String) throws(TriggerSourceError) -> Int32 {
        // What is not a file must not block the thread.
        let number = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard number >= 0 else { throw failure(errno, path) }
        let file = Descriptor(owning: number)
        var status = stat()
        guard unsafe fstat(file.number, &status) == 0 else { throw failure(errno, path) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw TriggerSourceError(.invalid, "“\(path)” is not a file")
        }
        var bytes = [UInt8](repeating: 0, count: bytesMax + 1)
        let count = unsafe bytes.withUnsafeMutableBytes { buffer in
            unsafe Glibc.read(file.number, buffer.baseAddress, buffer.count)
        }
        guard count >= 0 else { throw failure(errno, path) }
        guard count <= bytesMax else {
            throw TriggerSourceError(
                .limitExceeded,
                "“\(path)” has more than \(bytesMax) bytes, so it is no file with the number of a"
                    + " process"
            )
        }
        let line = bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }
        let digits = String(decoding: line, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        guard digits.count == 1, let process = Int32(digits[0]), process > 0 else {
            throw TriggerSourceError(
                .unreadable,
                "the first line of “\(path)” is not the number of a process"
            )
        }
        return process
    }

    private static func failure(_ code: Int32, _ path: String) -> TriggerSourceError {
        let why =
            switch code {
            case ENOENT, ENOTDIR: "the file “\(path)” does not exist"
            case EACCES, EPERM: "the user \(OwnProcess.userName) may not read “\(path)”"
            default: "“\(path)” cannot be read: \(SystemError.text(code))"
            }
        return TriggerSourceError(errno: code, why)
    }
}
