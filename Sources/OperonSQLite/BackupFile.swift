import Glibc
import OperonPorts

/// A copy of a store that is read from its beginning to its end, and is gone when nobody reads it
/// any more: its name is taken away at once, so that nothing is left of it, whatever happens.
final class BackupFile: Sendable {
    let byteCount: Int
    private let descriptor: Int32
    /// Reading blocks, and neither commits nor syncs shall wait for it.
    private let thread: BlockingThread
    private let atEnd: @Sendable () -> Void

    private static let pieceBytes = 256 << 10

    /// - Parameter atEnd: is told when the copy is gone.
    /// - Throws: `StoreError`, or that there is no thread.
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

    /// `nil`: that was all.
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
