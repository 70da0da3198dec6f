import COperonProcess
import Glibc

/// The file that tells a process what fired the trigger by which its graph was submitted. Every
/// call blocks and belongs on the files thread.
struct EventFile: Sendable {
    let path: String
    /// Who reads it; `nil`: the worker's user.
    var user: OperationUser?

    func write(_ text: String) throws(SystemError) {
        try user.act { () throws(SystemError) in try writeNow(text) }
    }

    private func writeNow(_ text: String) throws(SystemError) {
        // A new one: in the folder of another user, that user could have put a pipe there, whose
        // opening waits, or a link.
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(path, flags, 0o600)
        guard number >= 0 else { throw .current("making \(path)") }
        let descriptor = Descriptor(owning: number)
        let bytes = Array(text.utf8)
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes[written...].withUnsafeBytes { buffer in
                unsafe Glibc.write(descriptor.number, buffer.baseAddress, buffer.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .current("writing \(path)") }
            written += count
        }
    }

    func remove() { user.act { unsafe operon_process_remove(path) } }
}
