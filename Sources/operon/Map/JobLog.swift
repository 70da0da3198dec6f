import FoundationEssentials
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

    private let file: UserFile
    private let output: FileOutput

    private static let header =
        "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand"
    private static let columnCount = 9
    /// Larger than the log of as many operations as a graph may have, with short commands.
    private static let bytesMax = 256 << 20

    /// Opens the file: after what `read` has found in it, or else a new one.
    init(path: String, after done: Done?) throws(Failure) {
        let byteCount = done?.byteCount ?? 0
        do {
            // The end of a log that was being written when its run was killed is left out.
            file = try UserFile(writing: path, keeping: byteCount)
        } catch {
            throw Failure(MapExit.other, "\(path): \(error)")
        }
        output = FileOutput(descriptor: file.descriptor)
        if byteCount == 0 { output.print(Self.header) }
    }

    /// Appends a line, at once: a run may be killed at any time.
    func write(_ entry: Entry) {
        let start = Self.seconds(.nanoseconds(entry.start.nanosecondsSince1970))
        let duration = Self.seconds(entry.duration)
        let padding = String(repeating: " ", count: max(0, 10 - duration.count))
        // Without newlines, which would end the line.
        let command = Self.replacing("\n", with: "\0", in: entry.command)
        output.print(
            "\(entry.number)\t\(entry.host)\t\(start)\t\(padding)\(duration)\t0\t\(entry.bytes)"
                + "\t\(entry.end.columns)\t\(command)"
        )
    }

    /// With three decimals.
    private static func seconds(_ duration: Duration) -> String {
        let milliseconds = max(0, Int64((duration.seconds * 1e3).rounded()))
        let rest = String(milliseconds % 1_000)
        return "\(milliseconds / 1_000)." + String(repeating: "0", count: 3 - rest.count) + rest
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
    var failure: String? { output.failure }

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
        let read: [UInt8]?
        do {
            read = try UserFile(reading: path).readAll(bytesMax: bytesMax)
        } catch {
            throw Failure(MapExit.other, "\(path): \(error)")
        }
        guard let bytes = read else {
            throw Failure(MapExit.other, "\(path) has more than \(bytesMax) bytes.")
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
            throw Failure(MapExit.other, "\(path) is no joblog; to begin one, remove the file.")
        }
        done.byteCount = bytes.count - rest.count
        return done
    }
}
