import COperonProcess
import Glibc
import Synchronization

/// A small process beside the worker that outlives it by a moment. When the worker has ended, for
/// whatever reason, it kills what the worker's operations left behind and removes their files.
///
/// The death signal of the spawn thread ends the direct children, but not their descendants.
final class ProcessGuard: Sendable {
    private let process: pid_t
    /// The worker closes it, or the worker's death does; the guard notices either.
    private let lifeline: Mutex<Int32?>

    /// Starts the guard, preferably before any thread.
    ///
    /// - Parameters:
    ///   - files: The guard removes their directory, and recognises the worker's processes by their
    ///     paths in the environment.
    ///   - controlGroup: The folder of the worker's own control group; `nil`: it has none.
    init(of files: ProcessFiles, controlGroup: String?) throws(SystemError) {
        var lifeline: Int32 = -1
        if let controlGroup {
            process = unsafe operon_process_guard(
                files.marker,
                files.directory,
                controlGroup,
                &lifeline
            )
        } else {
            process = unsafe operon_process_guard(files.marker, files.directory, nil, &lifeline)
        }
        guard process > 0 else { throw .current("starting the guard process") }
        self.lifeline = Mutex(lifeline)
    }

    /// Makes the guard do its work now and waits for it: blocks.
    func release() {
        let lifeline = self.lifeline.withLock { lifeline in
            defer { lifeline = nil }
            return lifeline
        }
        guard let lifeline else { return }
        close(lifeline)
        operon_process_join(process)
    }

    deinit { release() }
}
