import Glibc
import OperonPorts

/// A copy of a store that is read once, from its beginning to its end. The file is unlinked as soon
/// as it is open, so the system deletes it when the last reader is gone, even after a crash.
final class BackupFile: Sendable {
    let byteCount: Int
    private let descriptor: Int32
    /// A thread for reading, which blocks; neither commits nor syncs may wait for it.
    private let thread: BlockingThread
    private let atEnd: @Sendable () -> Void

    private static let pieceBytes = 256 << 10

    /// - Parameter atEnd: called when the copy is gone.
    /// - Throws: `StoreError`, or an error if the system has no thread.
    init(takingOver path: String, atEnd: @escaping @Sendable () -> Void) throws {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        let code = errno
        _ = unsafe unlink(path)
        var facts = stat()
        guard descriptor >= 0, unsafe fstat(descriptor, &facts) == 0 else {
            let why = StoreFile.reason(code)
            throw StoreError(.failed, "The copy “\(path)” cannot be read: \(why).")
        }
        do {
            thread = try BlockingThread()
        } catch {
            close(descriptor)
            throw error
        }
        byteCount = Int(facts.st_size)
        self.descriptor = descriptor
        self.atEnd = atEnd
    }

    deinit {
        close(descriptor)
        thread.stop()
        atEnd()
    }

    /// The next piece; `nil` at the end.
    func next() async throws -> [UInt8]? {
        let piece = try await thread.perform { [descriptor] in try Self.read(descriptor) }
        return piece.isEmpty ? nil : piece
    }

    private static func read(_ descriptor: Int32) throws -> [UInt8] {
        var piece = [UInt8](repeating: 0, count: pieceBytes)
        while true {
            let count = unsafe piece.withUnsafeMutableBytes { bytes in
                unsafe Glibc.read(descriptor, bytes.baseAddress, bytes.count)
            }
            if count >= 0 {
                piece.removeLast(pieceBytes - count)
                return piece
            }
            guard errno == EINTR else {
                throw StoreError(.failed, "The copy cannot be read: \(StoreFile.reason(errno)).")
            }
        }
    }
}
