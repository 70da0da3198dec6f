import Foundation
import OperonArguments
import OperonModel
import OperonRuntime
import OperonTerminal

/// The file of `--joblog`, with a line for each operation that has ended: the columns of GNU
/// parallel, which can also read it.
struct JobLog: Sendable {
    /// How an operation ended.
    struct Entry: Sendable {
        /// The number of its row, from 1.
        var number: Int
        var host: String
        var start: WallTime
        var duration: Duration
        /// How many bytes it printed to its standard output.
        var bytes: Int
        var end: End
        var command: String
    }

    enum End: Hashable, Sendable {
        case exit(Int32)
        case signal(Int32)

        /// `nil`: it was cancelled or skipped, and will run when the work is resumed.
        init?(_ outcome: Outcome) {
            switch outcome {
            case .succeeded: self = .exit(0)
            case .failed(.exit(let code)): self = .exit(code)
            case .failed(.signal(let name)): self = .signal(SignalName.number(of: name) ?? 0)
            // As GNU parallel: stopped by SIGTERM.
            case .failed(.timeout): self = .exit(-1)
            case .failed: self = .exit(Self.notRun)
            case .cancelled, .skipped: return nil
            }
        }

        /// The code of a command that could not run, as a shell has it.
        private static let notRun: Int32 = 127

        var columns: String {
            switch self {
            case .exit(-1): "-1\t15"
            case .exit(let code): "\(code)\t0"
            case .signal(let number): "0\t\(number)"
            }
        }
    }

    private let handle: FileHandle
    private let file: FileOutput

    private static let header =
        "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand"
    private static let columnCount = 9
    /// Larger than the log of as many operations as a graph may have, with short commands.
    private static let bytesMax = 256 << 20

    /// Opens the file: after what `read` has found in it, or else a new one.
    init(path: String, after done: Done?) throws(Failure) {
        do {
            if done == nil || !FileManager.default.fileExists(atPath: path) {
                try Data().write(to: URL(fileURLWithPath: path))
            }
            handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            // The end of a log that was being written when its run was killed is left out.
            if let done { try handle.truncate(atOffset: UInt64(done.byteCount)) }
            try handle.seekToEnd()
        } catch {
            throw Failure(MapExit.other, "\(path): \(error.localizedDescription)")
        }
        file = FileOutput(descriptor: handle.fileDescriptor)
        if (done?.byteCount ?? 0) == 0 { file.print(Self.header) }
    }

    /// Appends a line, at once: a run may be killed at any time.
    func write(_ entry: Entry) {
        let start = String(format: "%.3f", Double(entry.start.nanosecondsSince1970) / 1e9)
        let duration = String(format: "%10.3f", entry.duration.seconds)
        // Without newlines, which would end the line.
        let command = Self.replacing("\n", with: "\0", in: entry.command)
        file.print(
            "\(entry.number)\t\(entry.host)\t\(start)\t\(duration)\t0\t\(entry.bytes)"
                + "\t\(entry.end.columns)\t\(command)"
        )
    }

    /// In Unicode scalars: as a character, a newline that follows a carriage return is another one.
    private static func replacing(
        _ scalar: Unicode.Scalar,
        with other: Unicode.Scalar,
        in text: String
    ) -> String {
        var replaced = String.UnicodeScalarView()
        replaced.append(contentsOf: text.unicodeScalars.map { $0 == scalar ? other : $0 })
        return String(replaced)
    }

    /// Why the log is not complete; `nil` if it is.
    var failure: String? { file.failure }

    // MARK: - Resuming

    /// What an earlier run has done.
    struct Done: Sendable {
        /// The commands by the numbers of their rows. Only looked up.
        fileprivate(set) var commands: [Int: (text: String, hasSucceeded: Bool)] = [:]
        /// The bytes of whole lines.
        fileprivate(set) var byteCount = 0
    }

    /// Reads the log of an earlier run; `nil`: there is none.
    ///
    /// - Throws: if it cannot be read, or is no such log.
    static func read(_ path: String) throws(Failure) -> Done? {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        let bytes: Data
        do {
            let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            bytes = try handle.read(upToCount: bytesMax + 1) ?? Data()
        } catch {
            throw Failure(MapExit.other, "\(path): \(error.localizedDescription)")
        }
        guard bytes.count <= bytesMax else {
            throw Failure(MapExit.other, "\(path) has more than \(bytesMax) bytes")
        }
        var done = Done()
        var rest = bytes[...]
        var number = 0
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            let line = String(decoding: rest[..<end], as: UTF8.self)
            rest = rest[(end + 1)...]
            number += 1
            if number == 1, line == header { continue }
            let columns: [Substring] = line.split(
                separator: Character("\t"),
                maxSplits: columnCount - 1,
                omittingEmptySubsequences: false
            )
            guard columns.count == columnCount, let row = Int(columns[0]), row > 0,
                let code = Int(columns[6]), let signal = Int(columns[7])
            else {
                throw Failure(
                    MapExit.other,
                    "\(path):\(number): this is no line of a joblog; to begin anew, remove the file"
                )
            }
            let text = replacing("\0", with: "\n", in: String(columns[8]))
            done.commands[row] = (text, code == 0 && signal == 0)
        }
        // A header that was being written when its run was killed.
        guard number > 0 || header.utf8.starts(with: rest) else {
            throw Failure(MapExit.other, "\(path) is no joblog; to begin one, remove the file")
        }
        done.byteCount = bytes.count - rest.count
        return done
    }
}
