import FoundationEssentials
import OperonArguments
import OperonModel
import OperonTerminal

/// The timeline of a run in Chrome's trace event format (chrome://tracing,
/// https://ui.perfetto.dev): a process for each worker, a thread for each slot.
struct TraceFile {
    private struct Event: Encodable {
        let name: String
        let cat: String
        let ph: String
        let ts: Double
        let dur: Double
        let pid: Int
        let tid: Int
    }

    private struct NameEvent: Encodable {
        struct Arguments: Encodable { let name: String }
        let name = "process_name"
        let ph = "M"
        let pid: Int
        let args: Arguments
    }

    private let report: RunReport

    init(_ report: RunReport) { self.report = report }

    static func output(at path: String) -> OutputFile { OutputFile(path, "the timeline") }

    func write(to path: String) throws {
        var runs: [(name: String, attempt: AttemptReport)] = []
        for operation in report.operations {
            for attempt in operation.attempts where attempt.start != nil && attempt.end != nil {
                runs.append((operation.name, attempt))
            }
        }
        runs.sort { ($0.attempt.start ?? .zero) < ($1.attempt.start ?? .zero) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var lines: [String] = []
        var workers: [String: Int] = [:]
        var busyUntil: [Int: [Duration]] = [:]
        for (name, attempt) in runs {
            guard let start = attempt.start, let end = attempt.end else { continue }
            let process: Int
            if let known = workers[attempt.worker] {
                process = known
            } else {
                process = workers.count + 1
                workers[attempt.worker] = process
                let worker = attempt.worker.isEmpty ? "outside" : attempt.worker
                let event = NameEvent(pid: process, args: .init(name: worker))
                lines.append(String(decoding: try encoder.encode(event), as: UTF8.self))
            }
            // The first slot that is free again.
            var slots = busyUntil[process] ?? []
            let slot = slots.firstIndex { $0 <= start } ?? slots.count
            if slot == slots.count { slots.append(end) } else { slots[slot] = end }
            busyUntil[process] = slots
            let event = Event(
                name: name,
                cat: attempt.ended.rawValue,
                ph: "X",
                ts: start.seconds * 1e6,
                dur: (end - start).seconds * 1e6,
                pid: process,
                tid: slot + 1
            )
            lines.append(String(decoding: try encoder.encode(event), as: UTF8.self))
        }
        let text = "[\n" + lines.joined(separator: ",\n") + "\n]\n"
        try Self.output(at: path).write(Array(text.utf8))
    }
}
