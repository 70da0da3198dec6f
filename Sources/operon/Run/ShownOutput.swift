import ArgumentParser
import OperonArguments
import OperonCore
import OperonModel
import OperonRuntime
import OperonTerminal
import Synchronization

/// Prints what operations print to standard output, while `operon run` runs.
final class ShownOutput: Sendable {
    enum Mode: String, ExpressibleByArgument, CaseIterable, Sendable {
        /// The output of an attempt when the attempt ends.
        case whole
        /// Lines as they come, with the name of the operation in front of each.
        case stream
    }

    /// Gives each `--show-output` its value: the next word if that is one, else `whole`. The parser
    /// knows no option whose value may be missing.
    static func rewritten(_ arguments: [String]) -> [String] {
        var result: [String] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            guard argument != "--" else { return result + [argument] + rest }
            guard argument == "--show-output" else {
                result.append(argument)
                continue
            }
            let mode = rest.first.flatMap { Mode(rawValue: $0) }
            if mode != nil { rest.removeFirst() }
            result.append("\(argument)=\((mode ?? .whole).rawValue)")
        }
        return result
    }

    private let mode: Mode
    /// Opened when nobody reads standard output.
    let unread = Latch()
    /// Writes on a thread of its own, because a pipe may block: no task waits for it.
    private let thread: SerialThread
    private let printer: Mutex<ShownOutputPrinter>
    /// The bytes that are not written yet.
    private let waiting = Mutex(0)

    private static let waitingBytesMax = 16 << 20

    fileprivate enum Item: Sendable {
        case granted(OperationID)
        case chunk(LogChunk)
        case ended(OperationID, AttemptID, KeptLog)

        /// The approximate memory use until the item is written.
        var byteCount: Int {
            let fixed = 128
            return switch self {
            case .granted: fixed
            case .chunk(let chunk): fixed + chunk.bytes.count
            case .ended(_, _, let log): fixed + log.count
            }
        }
    }

    init(mode: Mode, graph: GrowingGraph, screen: RunScreen) throws {
        self.mode = mode
        do throws(SystemError) {
            thread = try SerialThread(name: "operon-output")
        } catch {
            throw Failure(ExitStatus.failed, "The output cannot be shown: \(error).")
        }
        printer = Mutex(ShownOutputPrinter(mode, graph, screen))
    }

    /// Called on the coordinator's executor, so it returns at once.
    func note(_ notices: [Scheduler.Notice]) {
        for notice in notices {
            switch notice {
            case .granted(let operation, _, _): add(.granted(operation))
            case .log(let chunk) where mode == .stream:
                // The reader is too slow: a line says how much is missing.
                if waiting.withLock({ $0 }) < Self.waitingBytesMax { add(.chunk(chunk)) }
            case .result(let operation, let attempt, let result):
                let hasRoom = waiting.withLock { $0 } < Self.waitingBytesMax
                let gap = KeptLog(missing: result.log.end, tail: [])
                add(.ended(operation, attempt, hasRoom ? result.log : gap))
            default: continue
            }
        }
    }

    private func add(_ item: Item) {
        waiting.withLock { $0 += item.byteCount }
        thread.submit { [self] in
            let isRead = printer.withLock { $0.print(item) }
            waiting.withLock { $0 -= item.byteCount }
            if !isRead { unread.open() }
        }
    }

    /// Returns when everything is written, or when the task is cancelled.
    func flush() async {
        let isWritten = Latch()
        thread.submit { isWritten.open() }
        await isWritten.wait()
    }
}

private struct ShownOutputPrinter {
    private struct Attempts {
        var count: UInt32 = 0
        /// The attempt that printed last, and how many bytes of it were printed.
        var last: AttemptID?
        var next: UInt64 = 0
    }

    private let mode: ShownOutput.Mode
    private let graph: GrowingGraph
    private let screen: RunScreen
    private let output = FileOutput.standardOutput
    private let isTerminal: Bool
    private var text: LogText
    /// Never iterated.
    private var attempts: [OperationID: Attempts] = [:]

    init(_ mode: ShownOutput.Mode, _ graph: GrowingGraph, _ screen: RunScreen) {
        self.mode = mode
        self.graph = graph
        self.screen = screen
        isTerminal = output.isTerminal
        text = LogText(style: screen.style, isTerminal: isTerminal, isPrefixed: true)
    }

    /// Returns whether standard output has a reader.
    mutating func print(_ item: ShownOutput.Item) -> Bool {
        switch item {
        case .granted(let operation): attempts[operation, default: Attempts()].count += 1
        case .chunk(let chunk):
            add(chunk.bytes[...], at: chunk.position, chunk.held.operation, chunk.held.attempt)
        case .ended(let operation, let attempt, let log):
            guard mode == .stream else { return whole(log, of: operation) }
            add(log.head[...], at: 0, operation, attempt)
            add(log.tail[...], at: log.tailOffset, operation, attempt)
            write(text.end(of: name(of: operation)))
        }
        return !output.isClosed
    }

    private func name(of operation: OperationID) -> OperationName {
        OperationName(
            graph: operation.graph.rawValue,
            index: operation.index,
            name: graph.name(of: operation.index)
        )
    }

    /// Prints lines with prefixes: what was not printed before.
    private mutating func add(
        _ bytes: ArraySlice<UInt8>,
        at position: UInt64?,
        _ operation: OperationID,
        _ attempt: AttemptID
    ) {
        var known = attempts[operation] ?? Attempts()
        if known.last != attempt { (known.last, known.next) = (attempt, 0) }
        defer { attempts[operation] = known }
        let start = max(position ?? known.next, known.next)
        let skipped = start - (position ?? known.next)
        guard skipped < UInt64(bytes.count), start < .max - UInt64(bytes.count) else { return }
        let view = LogView(
            operation: name(of: operation),
            attempt: attempt,
            number: max(1, known.count),
            offset: start,
            bytes: Array(bytes.dropFirst(Int(skipped))),
            missedBytes: start - known.next
        )
        known.next = start + UInt64(view.bytes.count)
        write(text.text(of: view))
    }

    /// Prints the output of an attempt in one piece.
    private func whole(_ log: KeptLog, of operation: OperationID) -> Bool {
        guard log.end > 0 else { return true }
        guard isTerminal else {
            // A pipe gets the bytes as they were, and nothing else.
            output.write(log.head + log.tail)
            if log.missing > 0 {
                let bytes = log.missing == 1 ? "1 byte is" : "\(log.missing) bytes are"
                let count = attempts[operation]?.count ?? 1
                let attempt = count > 1 ? " (attempt \(count))" : ""
                let whose = "“\(name(of: operation).name)”\(attempt)"
                screen.say("\(bytes) missing in the output of \(whose)")
            }
            return !output.isClosed
        }
        let count = attempts[operation]?.count ?? 1
        let lines = TerminalText.tail(String(decoding: log.text, as: UTF8.self), limit: .max).lines
        let heading = LogText.heading(name(of: operation), attempt: count, screen.style)
        screen.show([heading] + lines.map { screen.style.spelled($0) })
        return true
    }

    private func write(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        guard isTerminal else { return output.write(bytes) }
        let lines = bytes.dropLast().split(
            separator: UInt8(ascii: "\n"),
            omittingEmptySubsequences: false
        )
        screen.show(lines.map { String(decoding: $0, as: UTF8.self) })
    }
}
