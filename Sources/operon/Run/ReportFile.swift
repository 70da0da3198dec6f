import OperonArguments
import OperonModel
import OperonReport
import OperonRuntime
import OperonTerminal

/// The report of a run as an HTML file.
struct ReportFile {
    private let page: ReportPage

    init(_ report: RunReport, _ graph: LoadedGraph, place: String) {
        let facts = [
            // Without the command: it may have a password in it.
            ("operon", Version.full), ("machine", OwnProcess.hostName),
            ("system", OwnProcess.system), ("processors", "\(Environment.processorCount)"),
            ("workers", place),
        ]
        page = ReportPage(report, of: graph.description, facts: facts)
    }

    static func output(at path: String) -> OutputFile { OutputFile(path, "The report") }

    func write(to path: String) throws(Failure) { try Self.output(at: path).write(page.html()) }
}

/// A file that a run writes when it ends.
struct OutputFile {
    private let path: String
    private let name: String

    /// - Parameter name: Such as “The report”.
    init(_ path: String, _ name: String) {
        self.path = path
        self.name = name
    }

    /// Refuses a path that cannot be written, before the run.
    func check() throws(Failure) {
        guard path != "-" else {
            throw Failure(
                ExitStatus.usage,
                "\(name) goes to a file, not to standard output. A file of the name “-” is ./-."
            )
        }
        do throws(UserFile.Problem) {
            try UserFile.checkWritable(path)
        } catch {
            throw failure(error)
        }
    }

    func write(_ bytes: [UInt8]) throws(Failure) {
        do {
            try UserFile.write(bytes, to: path)
        } catch {
            throw failure(error)
        }
    }

    private func failure(_ error: any Error) -> Failure {
        Failure(ExitStatus.usage, "\(name) cannot be written to \(path): \(error).")
    }
}
