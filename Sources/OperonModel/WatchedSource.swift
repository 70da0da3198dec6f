/// Something outside of the cluster that fires a trigger whenever it occurs. A coordinator or a
/// worker watches it; messages only a coordinator.
package enum WatchedSource: Hashable, Sendable {
    /// Changes of files.
    case file(FileSource)
    /// The lines of a named pipe, at this absolute path.
    case pipe(String)
    /// The lines that a program prints: its path or name, and its arguments.
    case program([String])
    /// A signal to the process that watches, one of `signals`.
    case signal(String)
    /// The end of a process.
    case process(ProcessTarget)
    /// The messages of a queue of the broker that the cluster does not own.
    case message(String)

    /// The name of the source, as in trigger files. Stable.
    package var kind: String {
        switch self {
        case .file: "file"
        case .pipe, .program: "pipe"
        case .signal: "signal"
        case .process: "process"
        case .message: "message"
        }
    }

    package static let kinds = ["file", "pipe", "signal", "process", "message"]

    /// The signals that have no other meaning for the programs of Operon.
    package static let signals = ["SIGHUP", "SIGUSR1", "SIGUSR2"]

    /// Whether there comes a time after which nothing can occur.
    package var endsByItself: Bool {
        switch self {
        case .process(.number), .process(.identity): true
        case .file, .pipe, .program, .signal, .process(.file), .message: false
        }
    }

    /// How the identities of its occurrences begin.
    package var identityPrefix: String {
        switch self {
        case .file: "file:"
        case .pipe, .program: "line:"
        case .signal: "signal:"
        case .process: "exit:"
        case .message: "message:"
        }
    }

    /// Whether it is on the machine of the process that watches, and not at the broker.
    package var isLocal: Bool {
        if case .message = self { false } else { true }
    }
}

/// Files of one folder, and what may happen to them.
package struct FileSource: Hashable, Sendable {
    /// What may happen to a file.
    package enum Change: String, Hashable, Sendable, CaseIterable {
        case created
        /// Written and closed, or moved here.
        case written
        case deleted
        case renamed
        /// Its rights, its owner, its times or the number of its links changed.
        case attributes
    }

    /// The absolute path of the folder if there is a pattern, else of the file.
    package var path: String
    /// Which files of the folder are meant: `*`, `?` and `[a-z]`, without a slash.
    package var pattern: String?
    /// At least one.
    package var changes: Set<Change>

    package init(path: String, pattern: String? = nil, changes: Set<Change> = [.written]) {
        self.path = path
        self.pattern = pattern
        self.changes = changes
    }

    /// Those that are asked for, in the order of their declaration.
    package var changeNames: [String] {
        Change.allCases.filter { changes.contains($0) }.map(\.rawValue)
    }

    /// Why no file can have this name or match this pattern; `nil`: some can.
    package static func problem(ofName name: String) -> String? {
        if name.isEmpty || name == "." || name == ".." { return "names no file" }
        if name.utf8.contains(UInt8(ascii: "/")) {
            return "contains a slash; only files directly in the folder are watched"
        }
        if name.utf8.contains(0) { return "contains a NUL byte" }
        guard name.utf8.count <= nameBytesMax else {
            return "is longer than \(nameBytesMax) bytes"
        }
        return nil
    }

    /// A file system allows no longer names.
    private static let nameBytesMax = 255
}

/// The process whose end fires a trigger.
package enum ProcessTarget: Hashable, Sendable {
    /// The number of a process that runs when the trigger is added.
    case number(Int32)
    /// One process, told from every other that has its number before or after it, as text.
    case identity(String)
    /// Whichever process the file at this absolute path names.
    case file(String)
}

extension Limits {
    /// Bytes of a path that is watched: PATH_MAX, without the name of a file.
    package static let watchedPathBytes = 3_840
    /// Bytes of the name of a queue (AMQP 0-9-1, short strings).
    package static let queueNameBytes = 255
    /// Bytes of the JSON that describes what a watched source saw. A list of one such event is
    /// still within `triggerDataBytes`.
    package static let watchedEventBytes = triggerDataBytes - 2
    /// Files whose last firing for each change is remembered: as many as are watched. They are
    /// looked at anew at each start, so their identities come again.
    package static let triggerFilesKept = 100_000

    /// Why a path cannot be watched; `nil`: it can.
    package static func problem(ofWatchedPath path: String) -> String? {
        guard path.hasPrefix("/") else { return "is not an absolute path" }
        guard !path.utf8.contains(0) else { return "contains a NUL byte" }
        guard path.utf8.count <= watchedPathBytes else {
            return "is longer than \(watchedPathBytes) bytes"
        }
        return nil
    }
}
