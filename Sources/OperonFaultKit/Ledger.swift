import Foundation

/// What operations themselves wrote down about their starts and ends, in the order of writing.
///
/// Each appends one short line with one write to a file opened with `O_APPEND`, outside of
/// everything that is tested. So the order of the lines is the order of what happened, and the
/// times (of one host's clock since its start) are for measuring.
package struct Ledger: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable {
        case start
        case end
    }

    package struct Entry: Hashable, Sendable {
        package var kind: Kind
        /// Since the start of the host, to a hundredth of a second.
        package var time: Duration
        package var operation: String
        package var attempt: Int
        package var process: Int32
        /// The worker that ran it, if the graph inherits `workerVariable`.
        package var worker: String?

        package init(
            _ kind: Kind,
            _ operation: String,
            attempt: Int = 1,
            time: Duration = .zero,
            process: Int32 = 2,
            worker: String? = nil
        ) {
            self.kind = kind
            self.time = time
            self.operation = operation
            self.attempt = attempt
            self.process = process
            self.worker = worker
        }

        package var run: Run { Run(operation, attempt) }
    }

    /// One attempt of an operation.
    package struct Run: Hashable, Sendable {
        package let operation: String
        package let attempt: Int

        package init(_ operation: String, _ attempt: Int) {
            self.operation = operation
            self.attempt = attempt
        }
    }

    /// The variable in which a workspace gives each worker its name.
    package static let workerVariable = "LEDGER_WORKER"

    package var entries: [Entry]
    /// Lines that no operation of ours wrote like that.
    package var unreadable: [String]

    package init(_ entries: [Entry]) {
        self.entries = entries
        unreadable = []
    }

    /// `kind seconds operation attempt process [worker]` on each line.
    package init(text: String) {
        entries = []
        unreadable = []
        for line in text.split(separator: "\n") {
            if let entry = Entry(line: line) {
                entries.append(entry)
            } else {
                unreadable.append(String(line))
            }
        }
    }

    /// Nothing has been written if there is no such file.
    package init(path: String) throws {
        guard FileManager.default.fileExists(atPath: path) else {
            self.init([])
            return
        }
        self.init(text: try String(contentsOfFile: path, encoding: .utf8))
    }

    /// A shell script that does this work between two entries. Names of operations and the path
    /// have no spaces.
    package static func script(_ work: String, in path: String) -> String {
        """
        note() { read -r now rest < /proc/uptime
        set -- "$1" "$now" "$OPERON_OPERATION" "$OPERON_ATTEMPT" $$ $\(workerVariable)
        echo "$*" >> \(path); }
        note start
        \(work)
        note end
        """
    }

    /// Now, on the clock of the entries.
    package static func now() throws -> Duration {
        let text = try String(contentsOfFile: "/proc/uptime", encoding: .utf8)
        guard let seconds = text.split(separator: " ").first.flatMap({ Double($0) }) else {
            throw CommandFailure("/proc/uptime says “\(text)”")
        }
        return .seconds(seconds)
    }

    package func starts(of operation: String) -> [Entry] {
        entries.filter { $0.kind == .start && $0.operation == operation }
    }
}

extension Ledger.Entry {
    init?(line: Substring) {
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        guard 5...6 ~= words.count, let kind = Ledger.Kind(rawValue: String(words[0])),
            let seconds = Double(words[1]), let attempt = Int(words[3]),
            let process = Int32(words[4])
        else { return nil }
        self.init(
            kind,
            String(words[2]),
            attempt: attempt,
            time: .seconds(seconds),
            process: process,
            worker: words.count == 6 ? String(words[5]) : nil
        )
    }
}
