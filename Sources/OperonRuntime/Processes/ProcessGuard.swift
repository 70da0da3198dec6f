import COperonProcess
import Glibc
import NIOConcurrencyHelpers

/// A small process beside the worker that outlives it by a moment: when the worker is gone, in
/// whatever way, it kills what the worker's operations left behind and removes their files.
///
/// The death signal of the spawn thread already ends the direct children; it does not end theirs.
final class ProcessGuard: Sendable {
    private let process: pid_t
    /// Closed by us or by our death: either way the guard sees it.
    private let lifeline: NIOLockedValueBox<Int32?>

    /// Starts it; best before any thread. `files`: whose directory it removes, and whose paths in
    /// the environment tell it which processes are ours.
    init(of files: ProcessFiles) throws(SystemError) {
        var lifeline: Int32 = -1
        process = unsafe operon_process_guard(files.marker, files.directory, &lifeline)
        guard process > 0 else { throw .current("starting the guard process") }
        self.lifeline = NIOLockedValueBox(lifeline)
    }

    /// Lets it do its work now, and waits for it: blocks.
    func release() {
        let lifeline = self.lifeline.withLockedValue { lifeline in
            defer { lifeline = nil }
            return lifeline
        }
        guard let lifeline else { return }
        close(lifeline)
        operon_process_join(process)
    }

    deinit { release() }
}
