package import OperonModel
import OperonPorts

/// Watches one file, or the files of one folder that match a pattern, with inotify(7).
///
/// When it starts it looks at the files that are there, the oldest first, and reports each as
/// `created` and as `written`. The identity of a file that has not changed since an earlier run is
/// that of the earlier report, so whoever keeps identities acts on it once.
///
/// **Identities** consist of the change, the inode, a time and a hash of the path:
/// - `created`: the time when the file was made (birth time), where the file system knows it.
///   Writing to the file does not change it.
/// - `written`: the time of its last modification in nanoseconds. A file that is closed without
///   having been written to is not reported again.
/// - `deleted`, `renamed`, `attributes`: the time of the last change of the inode (ctime).
///
/// They do not contain the number of the device: many file systems have another one after a reboot
/// or the next mount, and every file would occur again.
///
/// **What cannot be seen:**
/// - What was deleted, renamed or given other attributes while nobody watched. Only names and times
///   of files that are there could be compared, and nothing is remembered between two runs. In one
///   run, what was missed because the kernel's queue overflowed is found by another look; two
///   changes of one file may then be one.
/// - A file that is gone again before it was looked at: it has no identity.
/// - The end of writing, for a file that another program has open when the watcher looks at what
///   is there. Such a file is reported as it is then, and again when it is closed. Programs that
///   write under another name and rename the file when it is complete avoid this.
/// - That a file was moved away and back: it is the same file, and occurred before.
/// - Changes that other machines make on a network file system. Linux does not report them.
///
/// **Names.** Only regular files count: links are not followed, folders and devices are left out.
/// The path of the folder may contain links. A name may contain control characters, which JSON
/// escapes; a file whose name is not UTF-8 is refused, since JSON cannot hold it.
///
/// A hard link that appears, and a file that is moved into the folder, is `created` and `written`
/// at once. A file that is moved away is `renamed`; `to` is its new path if that is in the same
/// folder. A name that a file gets by renaming is `created` and `written`, whatever its name was.
package struct FileWatcher: TriggerSource {
    package typealias Change = FileSource.Change

    package struct Configuration: Hashable, Sendable {
        /// Absolute, without a slash at the end; `/` is empty.
        let folder: String
        let names: NamePattern
        let changes: Set<Change>

        /// - Parameters:
        ///   - path: An absolute path: of the folder if there is a pattern, else of the file. A
        ///     path without a pattern is never a folder whose files are meant.
        ///   - pattern: Which files of the folder are watched.
        ///   - changes: What is reported; at least one.
        /// - Throws: `invalid`.
        package init(
            path: String,
            pattern: String? = nil,
            changes: Set<Change> = [.written]
        ) throws(TriggerSourceError) {
            if let problem = Limits.problem(ofWatchedPath: path) {
                throw TriggerSourceError(.invalid, "“\(path)” \(problem)")
            }
            guard !changes.isEmpty else {
                throw TriggerSourceError(.invalid, "no change of “\(path)” is asked for")
            }
            let parts = path.split(separator: "/").map(String.init)
            if let pattern {
                names = try NamePattern(pattern: pattern)
                folder = parts.map { "/" + $0 }.joined()
            } else {
                names = try NamePattern(name: parts.last ?? "")
                folder = parts.dropLast().map { "/" + $0 }.joined()
            }
            self.changes = changes
        }
    }

    /// How many matching files a folder may have: about 20 MiB of memory.
    package static let filesMax = Limits.triggerFilesKept

    private let configuration: Configuration
    private let threads: SourceThreads
    private let time: TimeSource
    private let filesMax: Int

    /// How long it waits before it tries again to watch a folder.
    static let retryPause = Duration.seconds(1)
    /// How often it checks that the path still leads to the folder that it watches. The kernel does
    /// not tell when a folder further up is renamed.
    static let checkInterval = Duration.seconds(10)

    package init(
        _ configuration: Configuration,
        threads: SourceThreads,
        time: TimeSource = .system,
        filesMax: Int = FileWatcher.filesMax
    ) {
        self.configuration = configuration
        self.threads = threads
        self.time = time
        self.filesMax = filesMax
    }

    package func run(
        _ report: @escaping @Sendable (Occurrence) async throws -> Void,
        status: @escaping @Sendable (TriggerSourceStatus) -> Void
    ) async throws {
        var tell = StatusTeller(status)
        let folder = WatchedFolder(configuration, filesMax: filesMax)
        while true {
            var step = await threads.files.perform { folder.begin() }
            while true {
                for error in step.refused { tell.refused(error) }
                for occurrence in step.occurrences { try await report(occurrence) }
                try Task.checkCancellation()
                guard let descriptor = step.descriptor else { break }
                var isReadable = true
                if !step.hasMore {
                    tell(.observing)
                    isReadable = try await threads.readiness.readable(
                        descriptor,
                        within: Self.checkInterval,
                        by: time
                    )
                }
                step = await threads.files.perform { [isReadable] in
                    isReadable ? folder.read() : folder.check()
                }
            }
            if let problem = step.problem { tell(.waiting(problem)) }
            try await time.sleep(time.now() + Self.retryPause)
        }
    }
}
