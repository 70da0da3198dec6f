import Glibc
import OperonModel
import OperonPorts

/// One folder under inotify(7), and the matching files that were in it when it was looked at last.
///
/// `@unchecked Sendable`: its watcher calls it on the thread for files, one call at a time.
final class WatchedFolder: @unchecked Sendable {
    /// What one call found.
    struct Step: Sendable {
        var occurrences: [Occurrence] = []
        var refused: [TriggerSourceError] = []
        /// The descriptor to wait for; `nil`: the folder cannot be watched.
        var descriptor: Int32?
        /// Why it cannot be watched.
        var problem: TriggerSourceError?
        /// Whether `read` has something to do at once.
        var hasMore = false
    }

    /// A file that left its name, until its new name is read.
    private struct Move {
        let cookie: UInt32
        let name: [UInt8]
        let facts: FileFacts
    }

    /// A file that was seen.
    private struct Known {
        var facts: FileFacts
        /// The modification that was reported as `written`.
        var reported: FileFacts.Time?
    }

    private struct Failure: Error {
        let problem: TriggerSourceError
    }

    /// Bytes of events read at once.
    private static let readBytes = 64 << 10

    private let folder: String
    private let names: NamePattern
    private let changes: Set<FileWatcher.Change>
    private let filesMax: Int
    private var inotify: Descriptor?
    private var watch: Int32 = -1
    private var known: [[UInt8]: Known] = [:]
    private var move: Move?
    private var step = Step()
    private var buffer = [UInt8](repeating: 0, count: WatchedFolder.readBytes)

    init(_ configuration: FileWatcher.Configuration, filesMax: Int) {
        folder = configuration.folder
        names = configuration.names
        changes = configuration.changes
        self.filesMax = filesMax
    }

    // MARK: - Steps

    /// Begins to watch, then looks at what is there.
    func begin() -> Step {
        perform { () throws(Failure) in
            try open()
            try look()
        }
    }

    /// Reads what happened.
    func read() -> Step {
        perform { () throws(Failure) in try readEvents() }
    }

    /// Watches the path again if it leads to another folder by now.
    func check() -> Step {
        perform { () throws(Failure) in
            // For a folder that is watched already, this returns the same number.
            guard try addWatch() != watch else { return }
            try open()
            try look()
        }
    }

    private func perform(_ body: () throws(Failure) -> Void) -> Step {
        step = Step()
        do throws(Failure) {
            try body()
            step.descriptor = inotify.number
        } catch {
            step.problem = error.problem
            inotify = nil
        }
        defer { step = Step() }
        return step
    }

    // MARK: - The watch

    private var path: String { folder.isEmpty ? "/" : folder }

    private func open() throws(Failure) {
        let number = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        guard number >= 0 else {
            throw failure(errno, "fs.inotify.max_user_instances limits how many folders")
        }
        inotify = Descriptor(owning: number)
        move = nil
        watch = try addWatch()
    }

    private func addWatch() throws(Failure) -> Int32 {
        var mask =
            IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF
            | IN_ONLYDIR
        if changes.contains(.written) { mask |= IN_CLOSE_WRITE }
        if changes.contains(.attributes) { mask |= IN_ATTRIB }
        guard let inotify = inotify.number else { return -1 }
        let number = unsafe inotify_add_watch(inotify, path, UInt32(bitPattern: mask))
        guard number >= 0 else {
            throw failure(errno, "fs.inotify.max_user_watches limits how many folders")
        }
        return number
    }

    /// - Parameter limit: What is said if the system has no watch left.
    private func failure(_ code: Int32, _ limit: String) -> Failure {
        let why =
            switch code {
            case ENOENT: "the folder “\(path)” does not exist"
            case ENOTDIR: "“\(path)” is not a folder"
            case EACCES, EPERM:
                "the user \(OwnProcess.userName) may not read the folder “\(path)”"
            case ENOSPC, EMFILE:
                "the folder “\(path)” cannot be watched: \(limit) this user may watch"
            default: "the folder “\(path)” cannot be watched: \(SystemError.text(code))"
            }
        return Failure(problem: TriggerSourceError(errno: code, why))
    }

    // MARK: - Looking at all files

    /// Compares the files that are there with those that are known.
    private func look() throws(Failure) {
        let found = try list()
        // The order in which they came, as far as it can be known.
        let present = found.sorted {
            $0.value.written == $1.value.written
                ? $0.key.lexicographicallyPrecedes($1.key) : $0.value.written < $1.value.written
        }
        let gone = known.filter { found[$0.key] == nil }.sorted {
            $0.key.lexicographicallyPrecedes($1.key)
        }
        for (name, file) in gone {
            known[name] = nil
            report(.deleted, name, file.facts)
        }
        for (name, facts) in present {
            let before = known[name]?.facts
            if let before, before.isSame(as: facts), before.written == facts.written,
                before.changed != facts.changed
            {
                report(.attributes, name, facts)
            }
            try appeared(name, facts, isWritten: true)
        }
    }

    private func list() throws(Failure) -> [[UInt8]: FileFacts] {
        guard let stream = unsafe opendir(path) else { throw failure(errno, "") }
        defer { unsafe closedir(stream) }
        var found: [[UInt8]: FileFacts] = [:]
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { start in
                unsafe start.withMemoryRebound(to: UInt8.self, capacity: 256) { start in
                    unsafe Array(UnsafeBufferPointer(start: start, count: 256).prefix { $0 != 0 })
                }
            }
            guard names.matches(name), let facts = facts(name) else { continue }
            found[name] = facts
            try check(count: found.count)
        }
        return found
    }

    private func check(count: Int) throws(Failure) {
        guard count > filesMax else { return }
        throw Failure(
            problem: TriggerSourceError(
                .limitExceeded,
                "the folder “\(path)” has more than \(filesMax) files that match;"
                    + " move those away that are done with"
            )
        )
    }

    /// The facts of a regular file; `nil`: there is none of this name any more.
    private func facts(_ name: [UInt8]) -> FileFacts? {
        do throws(SystemError) {
            let facts = try FileFacts(whole(name))
            return facts.isRegular ? facts : nil
        } catch {
            // It is gone, or the folder lets this user read names only.
            if error.code != ENOENT {
                step.refused.append(
                    TriggerSourceError(error, "a file in “\(path)” cannot be looked at")
                )
            }
            return nil
        }
    }

    private func whole(_ name: [UInt8]) -> [UInt8] { Array(folder.utf8) + [0x2F] + name }
}

// MARK: - Events

extension WatchedFolder {
    /// One `inotify_event`.
    private struct Event {
        static let headBytes = 16

        let mask: UInt32
        let cookie: UInt32
        let name: [UInt8]

        /// Reads an event from its bytes, which the kernel never splits.
        init?(_ bytes: ArraySlice<UInt8>) {
            guard bytes.count >= Self.headBytes else { return nil }
            func word(_ offset: Int) -> UInt32 {
                unsafe bytes.withUnsafeBytes { bytes in
                    unsafe bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
                }
            }
            mask = word(4)
            cookie = word(8)
            // Filled up with NUL bytes.
            nameBytes = Int(word(12))
            name = Array(bytes.dropFirst(Self.headBytes).prefix(nameBytes).prefix { $0 != 0 })
        }

        private let nameBytes: Int

        var bytes: Int { Self.headBytes + nameBytes }

        func has(_ flag: Int32) -> Bool { mask & UInt32(bitPattern: flag) != 0 }
    }

    private func readEvents() throws(Failure) {
        guard let number = inotify.number else { return }
        let count = unsafe buffer.withUnsafeMutableBytes { bytes in
            unsafe Glibc.read(number, bytes.baseAddress, bytes.count)
        }
        // Another call has read it, or a signal came first.
        guard count > 0 else { return }
        step.hasMore = true
        var rest = buffer[..<count]
        var isOverflown = false
        var isLost = false
        while let event = Event(rest) {
            rest = rest.dropFirst(event.bytes)
            if event.has(IN_Q_OVERFLOW) {
                isOverflown = true
            } else if event.has(IN_DELETE_SELF) || event.has(IN_MOVE_SELF)
                || event.has(IN_UNMOUNT) || event.has(IN_IGNORED)
            {
                isLost = true
            } else {
                try handle(event)
            }
        }
        endMove(to: nil)
        if isLost {
            // The path may lead to another folder already.
            try open()
            try look()
        } else if isOverflown {
            try look()
        }
    }

    private func handle(_ event: Event) throws(Failure) {
        if let move {
            let isMate = event.has(IN_MOVED_TO) && event.cookie == move.cookie
            endMove(to: isMate ? event.name : nil)
        }
        guard !event.has(IN_ISDIR), names.matches(event.name) else { return }
        let name = event.name
        if event.has(IN_MOVED_FROM) {
            guard let file = known.removeValue(forKey: name) else { return }
            move = Move(cookie: event.cookie, name: name, facts: file.facts)
        } else if event.has(IN_DELETE) {
            guard let file = known.removeValue(forKey: name) else { return }
            report(.deleted, name, file.facts)
        } else if let facts = facts(name) {
            if event.has(IN_ATTRIB), let before = known[name]?.facts,
                before.isSame(as: facts), before.changed != facts.changed
            {
                report(.attributes, name, facts)
            }
            // A hard link is complete when it appears, and nothing is closed then.
            let isLinked = event.has(IN_CREATE) && facts.links > 1
            let isWritten = isLinked || event.has(IN_CLOSE_WRITE) || event.has(IN_MOVED_TO)
            try appeared(name, facts, isWritten: isWritten)
        }
    }

    /// Notes a file as it is now, and reports it if it is new or newly written.
    private func appeared(
        _ name: [UInt8],
        _ facts: FileFacts,
        isWritten: Bool
    ) throws(Failure) {
        var file = Known(facts: facts)
        if let before = known[name], before.facts.isSame(as: facts) {
            file.reported = before.reported
        } else {
            report(.created, name, facts)
        }
        if isWritten, file.reported != facts.written {
            file.reported = facts.written
            report(.written, name, facts)
        }
        known[name] = file
        try check(count: known.count)
    }

    private func endMove(to name: [UInt8]?) {
        guard let move else { return }
        self.move = nil
        report(.renamed, move.name, move.facts, to: name)
    }

    private func report(
        _ change: FileWatcher.Change,
        _ name: [UInt8],
        _ facts: FileFacts,
        to newName: [UInt8]? = nil
    ) {
        guard changes.contains(change) else { return }
        guard let text = String(validating: name, as: UTF8.self) else {
            let shown = PrintableName.escaped(name)
            return step.refused.append(
                TriggerSourceError(
                    .unreadable,
                    "the name of the file \(shown) in “\(path)” is not UTF-8: rename it"
                )
            )
        }
        let stamp =
            switch change {
            case .created: facts.born?.description ?? "-"
            case .written: facts.written.description
            case .deleted, .renamed, .attributes: facts.changed.description
            }
        let hash = ContentHash(of: whole(name)).text.prefix(32)
        let target = newName.map { "\(folder)/\(String(decoding: $0, as: UTF8.self))" }
        do throws(TriggerSourceError) {
            let occurrence = try Occurrence(
                identity: "file:\(change.rawValue):\(facts.inode):\(stamp):\(hash)",
                event: [
                    "change": .text(change.rawValue),
                    "path": .text("\(folder)/\(text)"),
                    "name": .text(text),
                    "to": target.map { .text($0) },
                    "bytes": .number(Int64(clamping: facts.bytes)),
                    "modified": .number(facts.written.seconds),
                ]
            )
            step.occurrences.append(occurrence)
        } catch {
            step.refused.append(error)
        }
    }
}

/// A name in messages.
enum PrintableName {
    /// A name of any bytes, in quotation marks, with `\xNN` for what is not printable ASCII.
    static func escaped(_ name: [UInt8]) -> String {
        let digits = Array("0123456789abcdef")
        var text = "“"
        for byte in name {
            if (0x20..<0x7F).contains(byte) {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                text += "\\x\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            }
        }
        return text + "”"
    }
}

extension ContentHash {
    /// In hexadecimal digits.
    var text: String {
        let digits = Array("0123456789abcdef".utf8)
        let characters = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return String(decoding: characters, as: UTF8.self)
    }
}
