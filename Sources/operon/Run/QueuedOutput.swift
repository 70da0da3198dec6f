import OperonRuntime
import OperonTerminal

/// An output that accepts every write at once, even while its reader is blocked.
struct QueuedOutput: TerminalOutput {
    let file: FileOutput
    private let queue: LineQueue

    /// Enough for the messages of a hundred thousand operations that fail at once.
    private static let bytesMax = 64 << 20

    init(_ file: FileOutput) {
        self.file = file
        queue = LineQueue(
            bytesMax: Self.bytesMax,
            write: { file.write($0) },
            leftOut: { Array("\($0) lines are missing here: they were not read in time\n".utf8) }
        )
    }

    func size() -> TerminalSize? { file.size() }

    func isWritable() -> Bool { queue.isEmpty && file.isWritable() }

    func write(_ bytes: [UInt8]) { queue.add(bytes) }

    /// Returns when everything is written, or when the task is cancelled.
    func flush() async { await queue.flush() }
}
