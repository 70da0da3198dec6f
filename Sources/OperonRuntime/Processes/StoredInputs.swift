import NIOConcurrencyHelpers
import OperonModel

/// What all processes of a worker need of its private directory: the directory itself, the file of
/// no inputs, and the socket to the worker.
struct CommonFiles: Sendable {
    let files: ProcessFiles
    /// `nil`: the path of the directory is too long for a socket.
    let inside: InsideSocket?
    let report: @Sendable (_ sentence: String) -> Void

    /// Makes again what somebody has removed, as cleaners of the temporary directory do. Blocks.
    func repair() throws(SystemError) {
        if try files.repair() {
            report("made \(files.directory) again, which somebody had removed")
        }
        try inside?.repair()
    }
}

/// The file of inputs of an attempt that is not running yet, filled piece by piece in the order of
/// its dependencies. Whoever made it runs the attempt with it, or discards it.
package final class StoredInputs: Sendable {
    let id: UInt64
    let attempt: ProcessFiles.Attempt
    private let common: CommonFiles
    /// Made by the first piece. Only the files thread looks.
    private let writer = NIOLockedValueBox<InputsWriter?>(nil)

    init(id: UInt64, attempt: ProcessFiles.Attempt, _ common: CommonFiles) {
        self.id = id
        self.attempt = attempt
        self.common = common
    }

    /// Why it could not be written; `nil`: it was. On the files thread.
    func write(_ inputs: [NamedInput], isLast: Bool) -> SystemError? {
        do throws(SystemError) {
            let opened = self.writer.withLockedValue { $0 }
            let writer = if let opened { opened } else { try open() }
            self.writer.withLockedValue { $0 = isLast ? nil : writer }
            for input in inputs { try writer.append(input) }
            if isLast { try writer.finish() }
            return nil
        } catch {
            return error
        }
    }

    private func open() throws(SystemError) -> InputsWriter {
        try common.repair()
        return try InputsWriter(attempt.inputs)
    }
}
