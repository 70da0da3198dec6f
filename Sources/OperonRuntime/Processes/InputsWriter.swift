import Glibc
import OperonModel

/// Writes `{"name": output or null, …}` to a new file, input by input: JSON outputs unchanged,
/// other outputs as base64 strings.
///
/// Every call blocks and belongs on the files thread. `@unchecked Sendable`: only that thread uses
/// it.
final class InputsWriter: @unchecked Sendable {
    private let file: Descriptor
    private var pending = Array("{".utf8)
    private var isEmpty = true

    /// The buffer is written once it exceeds this many bytes, which takes few system calls and
    /// little memory. A JSON output is buffered whole.
    private static let writeBytes = 256 << 10

    init(_ path: String) throws(SystemError) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(path, flags, 0o400)
        guard number >= 0 else { throw .current("making the file of inputs") }
        file = Descriptor(owning: number)
    }

    func append(_ input: NamedInput) throws(SystemError) {
        if !isEmpty { pending.append(UInt8(ascii: ",")) }
        isEmpty = false
        pending += JSONString.quoted(input.name) + ":".utf8
        try append(input.output)
        if pending.count > Self.writeBytes { try flush() }
    }

    func finish() throws(SystemError) {
        pending += "}\n".utf8
        try flush()
    }

    private func append(_ output: Payload?) throws(SystemError) {
        guard let output, !output.isEmpty else {
            pending += "null".utf8
            return
        }
        guard output.contentType != Payload.json else {
            if pending.count + output.bytes.count > Self.writeBytes { try flush() }
            pending += output.bytes
            return
        }
        pending.append(UInt8(ascii: "\""))
        // A multiple of three, so that padding comes only at the end.
        let groupBytes = Self.writeBytes / 4 * 3
        for start in stride(from: 0, to: output.bytes.count, by: groupBytes) {
            let end = min(start + groupBytes, output.bytes.count)
            Base64.append(output.bytes[start..<end], to: &pending)
            if pending.count > Self.writeBytes { try flush() }
        }
        pending.append(UInt8(ascii: "\""))
    }

    private func flush() throws(SystemError) {
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
}
