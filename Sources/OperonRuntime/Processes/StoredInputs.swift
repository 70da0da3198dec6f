import OperonModel
import Synchronization

/// The parts of a worker's private directory that all its processes need: the directory itself, the
/// file for attempts without inputs, and the socket to the worker.
struct CommonFiles: Sendable {
    let files: ProcessFiles
    /// `nil`: the path of the directory is too long for a socket.
    let socket: OperationSocket?
    let report: @Sendable (_ sentence: String) -> Void

    /// Restores files that were removed, for example by a cleaner of the temporary directory.
    /// Blocks.
    func repair() throws(SystemError) {
        if try files.repair() {
            report("made \(files.directory) again, which somebody had removed")
        }
        try socket?.repair()
    }
}

/// The inputs file of an attempt that is not running yet, filled piece by piece in the order of its
/// dependencies. Its creator either runs the attempt with it or discards it.
package final class StoredInputs: Sendable {
    let id: UInt64
    let attempt: ProcessFiles.Attempt
    private let common: CommonFiles
    /// Made by the first piece. Used by the files thread only.
    private let writer = Mutex<InputsWriter?>(nil)

    init(id: UInt64, attempt: ProcessFiles.Attempt, _ common: CommonFiles) {
        self.id = id
        self.attempt = attempt
        self.common = common
    }

    /// Writes a piece, on the files thread; returns the error if that fails.
    func write(_ inputs: [NamedInput], isLast: Bool) -> SystemError? {
        do throws(SystemError) {
            let opened = self.writer.withLock { $0 }
            let writer = if let opened { opened } else { try open() }
            self.writer.withLock { $0 = isLast ? nil : writer }
            for input in inputs { try writer.append(input) }
            if isLast { try writer.finish() }
            return nil
        } catch {
            return error
        }
    }

    private func open() throws(SystemError) -> InputsWriter {
        try common.repair()
        return try attempt.user.act { () throws(SystemError) in try InputsWriter(attempt.inputs) }
    }
}
