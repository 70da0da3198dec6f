import FoundationEssentials
import OperonArguments
import OperonModel
import OperonReport
import OperonTerminal

/// The timeline of a run in Chrome's trace event format, for https://ui.perfetto.dev: a process for
/// each worker, a thread for each slot, a slice for each attempt.
///
/// The format: “Trace Event Format” of the Chromium project.
struct TraceFile {
    /// An attempt, as a complete event.
    private struct Slice: Encodable {
        struct Arguments: Encodable {
            let attempt: Int
            let error: String?
        }

        let name: String
        let cat: String
        let ph = "X"
        /// Microseconds.
        let ts: Double
        let dur: Double
        let pid: Int
        let tid: Int
        let args: Arguments
    }

    /// The name of a process or of a thread.
    private struct Name: Encodable {
        struct Arguments: Encodable { let name: String }

        let name: String
        let ph = "M"
        let pid: Int
        let tid: Int?
        let args: Arguments
    }

    private struct Worker {
        var free = FreeSlots<Duration>()
        var slots = 0
    }

    /// Above the number of any slot: a thread with the number of its process is shown as the main
    /// thread.
    private static let firstProcess = 1_000_001

    private let report: RunReport

    init(_ report: RunReport) { self.report = report }

    static func output(at path: String) -> OutputFile { OutputFile(path, "The timeline") }

    func write(to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var lines: [String] = []
        func add(_ event: some Encodable) throws {
            lines.append(String(decoding: try encoder.encode(event), as: UTF8.self))
        }
        var workers: [Worker] = []
        var places: [String: Int] = [:]
        for run in runs {
            let place = places[run.attempt.worker] ?? workers.count
            let process = Self.firstProcess + place
            if place == workers.count {
                places[run.attempt.worker] = place
                workers.append(Worker())
                let title = run.attempt.worker.isEmpty ? "outside" : run.attempt.worker
                try add(
                    Name(name: "process_name", pid: process, tid: nil, args: .init(name: title))
                )
            }
            let slot = workers[place].free.take(run.start, run.end) + 1
            if slot > workers[place].slots {
                workers[place].slots = slot
                let title = Name.Arguments(name: "slot \(slot)")
                try add(Name(name: "thread_name", pid: process, tid: slot, args: title))
            }
            try add(
                Slice(
                    name: run.name,
                    cat: run.attempt.ended.rawValue,
                    ts: run.start.seconds * 1e6,
                    dur: (run.end - run.start).seconds * 1e6,
                    pid: process,
                    tid: slot,
                    args: .init(
                        attempt: run.attempt.number,
                        error: run.attempt.error.map { "\($0)" }
                    )
                )
            )
        }
        let text = "[\n" + lines.joined(separator: ",\n") + "\n]\n"
        try Self.output(at: path).write(Array(text.utf8))
    }

    private struct Run {
        let name: String
        let attempt: AttemptReport
        let start: Duration
        let end: Duration
    }

    /// The attempts that have run, in the order of their starts.
    private var runs: [Run] {
        var runs: [Run] = []
        for operation in report.operations {
            for attempt in operation.attempts {
                guard let start = attempt.start, let end = attempt.end else { continue }
                runs.append(Run(name: operation.name, attempt: attempt, start: start, end: end))
            }
        }
        runs.sort { $0.start < $1.start }
        return runs
    }
}
