import FoundationEssentials
import OperonModel
import OperonSystem
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Why the audit cannot be kept or read.
package struct AuditError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence without its full stop.
    package let description: String
}

/// How much of the audit is kept, and in which parts.
package struct AuditBounds: Sendable {
    /// A segment that has reached this size gets no further entry.
    package var segmentBytes = 8 << 20
    /// The most bytes of all segments. With more, the oldest go, and an entry says so.
    package var bytes = 1 << 30
    /// A segment that is older than this gets no further entry, so that old entries can go.
    package var segmentTime = Duration.seconds(86_400)
    /// How long entries are kept at least, and at most a segment's time longer; `nil`: until there
    /// are too many.
    package var keep: Duration?

    package init() {}
}

/// The files of the audit, to which entries are only ever appended: a folder of segments, each
/// called by the number of its first entry. All methods block.
final class AuditFiles: Sendable {
    struct Segment {
        let path: String
        let first: UInt64
        var last: UInt64
        var firstAt: WallTime
        var lastAt: WallTime
        var lastHash: String
        var bytes: Int
    }

    private struct State {
        var segments: [Segment]
        var chain: AuditChain
        /// The last segment, open for appending; -1: there is none.
        var file: Int32 = -1
        /// Whether what the disk has is unknown: nothing more is written.
        var failure: AuditError?
    }

    let folder: String
    let bounds: AuditBounds
    private let state: Mutex<State>
    /// What was noticed when the files were opened, as sentences for the log.
    let remarks: [String]
    /// The bytes of a last line that was not whole.
    let tornBytes: Int

    /// More than any line has: a path, a sentence and a name are bounded.
    static let lineBytesMax = 32 << 10

    /// Opens the audit in a folder, which is created if there is none. A last line that is not
    /// whole is removed.
    init(folder: String, bounds: AuditBounds) throws(AuditError) {
        self.folder = folder
        self.bounds = bounds
        if unsafe mkdir(folder, 0o700) != 0 {
            guard errno == EEXIST else {
                throw Self.error("The audit \(folder) cannot be created")
            }
            try Self.checkOwner(of: folder)
        }
        var names = try Self.names(in: folder)
        let newest = names.popLast().map { folder + "/" + $0 }
        var segments: [Segment] = []
        for name in names {
            if let segment = try Self.ended(folder + "/" + name) { segments.append(segment) }
        }
        let endedCount = segments.count
        let before = segments.last.map { AuditChain(number: $0.last, hash: $0.lastHash) }
        var opened = try newest.map { path throws(AuditError) in
            try Self.opened(path, before)
        }
        if let segment = opened?.segment { segments.append(segment) }
        if endedCount < names.count {
            opened?.remarks.append("The audit \(folder) has segments without entries.")
        }
        remarks = Array((opened?.remarks ?? []).prefix(AuditCheckView.problemsMax))
        tornBytes = opened?.torn ?? 0
        let chain = opened?.chain ?? before ?? AuditChain()
        state = Mutex(State(segments: segments, chain: chain))
    }

    deinit { state.withLock { if $0.file >= 0 { _ = close($0.file) } } }

    // MARK: - Writing

    /// Appends entries, in one piece, and gives them their numbers.
    ///
    /// - Parameter isSynced: Whether they must be on the disk when this returns.
    func append(
        _ entries: [AuditEntry],
        at now: WallTime,
        isSynced: Bool
    ) -> Result<[UInt64], AuditError> {
        state.withLock { state in
            Result { () throws(AuditError) in
                if let failure = state.failure { throw failure }
                try prepare(&state, now)
                let numbers = try write(entries, &state, now, isSynced: isSynced)
                try drop(&state, now)
                return numbers
            }
        }
    }

    /// Opens the last segment, or begins another one.
    private func prepare(_ state: inout State, _ now: WallTime) throws(AuditError) {
        if let last = state.segments.last {
            if state.file < 0 { state.file = try Self.open(last.path) }
            let isFull = last.bytes >= bounds.segmentBytes
            if !isFull, now - last.firstAt < bounds.segmentTime { return }
        }
        let first = state.chain.number + 1
        let digits = String(first)
        let name = String(repeating: "0", count: Self.nameDigits - digits.count) + digits
        let path = folder + "/" + name + Self.suffix
        if state.file >= 0 {
            // The next segment is synced for itself, and its hashes follow from these entries.
            guard fdatasync(state.file) == 0 else {
                let problem = Self.error("The audit \(folder) cannot be synced to the disk")
                state.failure = problem
                throw problem
            }
        }
        let file = try Self.open(path)
        if state.file >= 0 { _ = close(state.file) }
        state.file = file
        let segment = Segment(
            path: path,
            first: first,
            last: first - 1,
            firstAt: now,
            lastAt: now,
            lastHash: state.chain.hash,
            bytes: 0
        )
        // An empty one of the same name is left over from a start that wrote nothing.
        state.segments.removeAll { $0.path == path }
        state.segments.append(segment)
        try Self.sync(folder: folder)
    }

    private func write(
        _ entries: [AuditEntry],
        _ state: inout State,
        _ now: WallTime,
        isSynced: Bool
    ) throws(AuditError) -> [UInt64] {
        var chain = state.chain
        var bytes: [UInt8] = []
        var numbers: [UInt64] = []
        for entry in entries {
            var entry = entry
            do {
                bytes += try chain.append(&entry)
            } catch {
                throw AuditError(description: "An entry of the audit is no JSON: \(error)")
            }
            numbers.append(entry.number)
        }
        let place = state.segments.count - 1
        let before = state.segments[place].bytes
        if let problem = Self.write(bytes, to: state.file) {
            // Half a line must not stay in front of later ones.
            if ftruncate(state.file, off_t(before)) != 0 { state.failure = problem }
            throw problem
        }
        state.chain = chain
        state.segments[place].bytes = before + bytes.count
        state.segments[place].last = chain.number
        state.segments[place].lastHash = chain.hash
        state.segments[place].lastAt = now
        if isSynced, fdatasync(state.file) != 0 {
            let problem = Self.error("The audit \(folder) cannot be synced to the disk")
            // After a failed sync, a later one that succeeds proves nothing.
            state.failure = problem
            throw problem
        }
        return numbers
    }

    /// Removes the oldest segments, once an entry on the disk says so.
    private func drop(_ state: inout State, _ now: WallTime) throws(AuditError) {
        var count = 0
        var bytes = state.segments.reduce(0) { $0 + $1.bytes }
        for segment in state.segments.dropLast() {
            let isOld = bounds.keep.map { now - segment.lastAt > $0 } ?? false
            guard isOld || bytes > bounds.bytes else { break }
            bytes -= segment.bytes
            count += 1
        }
        guard count > 0 else { return }
        var entry = AuditEntry(.dropped, at: now)
        entry.through = state.segments[count - 1].last
        entry.hash = state.segments[count - 1].lastHash
        _ = try write([entry], &state, now, isSynced: true)
        for segment in state.segments.prefix(count) { _ = unsafe unlink(segment.path) }
        state.segments.removeFirst(count)
    }

    // MARK: - Reading

    /// Segments that one page may read.
    private static let segmentsPerPage = 4

    func page(_ query: AuditQuery) throws(AuditError) -> AuditPage {
        let segments = state.withLock { $0.segments }
        var found: [AuditEntry] = []
        var looked = 0
        for segment in segments.reversed() {
            if let before = query.before, segment.first >= before { continue }
            if let since = query.since, segment.lastAt < since { break }
            guard looked < Self.segmentsPerPage else {
                return AuditPage(entries: found.reversed(), next: segment.last + 1)
            }
            looked += 1
            let lines = try Self.read(segment.path, atMost: segment.bytes)
                .split(separator: UInt8(ascii: "\n"))
            for line in lines.reversed() {
                guard let (_, json) = AuditChain.parts(of: line),
                    let entry = AuditChain.entry(json)
                else { continue }
                if let before = query.before, entry.number >= before { continue }
                if let since = query.since, entry.at.time < since { continue }
                if let by = query.by, entry.by != by { continue }
                guard found.count < query.limit else {
                    return AuditPage(entries: found.reversed(), next: found.last?.number)
                }
                found.append(entry)
            }
        }
        return AuditPage(entries: found.reversed(), next: nil)
    }

    /// Reads everything, and checks each entry.
    func check() throws(AuditError) -> AuditCheckView {
        let (segments, head) = state.withLock { ($0.segments, $0.chain) }
        var check = Check()
        for segment in segments {
            check.add(try Self.read(segment.path, atMost: segment.bytes), of: segment)
        }
        return check.view(head)
    }

    /// The check of all segments, the oldest first.
    struct Check {
        private var chain = AuditChain()
        private var firstNumber: UInt64 = 0
        private var firstLine: ArraySlice<UInt8> = []
        private var dropped: [UInt64: String] = [:]
        private(set) var problems: [String] = []

        mutating func add(_ bytes: [UInt8], of segment: Segment) {
            let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            if let last = lines.last, !last.isEmpty {
                problem("The last entry of \(segment.path) is not whole.")
            }
            if bytes.count < segment.bytes {
                problem("\(segment.path) has \(bytes.count) bytes, and had \(segment.bytes).")
            }
            for line in lines.dropLast() {
                if firstNumber == 0 {
                    if let before = AuditChain(before: line) {
                        chain = before
                        firstLine = line
                    }
                    firstNumber = chain.number + 1
                }
                do throws(AuditChain.Problem) {
                    let entry = try chain.check(line)
                    if let through = entry.through { dropped[through] = entry.hash }
                } catch {
                    problem("In \(segment.path), \(error.text).")
                }
            }
        }

        private mutating func problem(_ text: String) {
            guard problems.count < AuditCheckView.problemsMax else { return }
            problems.append(text)
        }

        mutating func view(_ head: AuditChain) -> AuditCheckView {
            if firstNumber > 1 {
                let hash = dropped[firstNumber - 1]
                let (stated, json) = AuditChain.parts(of: firstLine) ?? ("", [])
                if hash == nil || AuditChain.hash(after: hash ?? "", json) != stated {
                    problem("No entry says that those before \(firstNumber) were dropped.")
                }
            }
            if chain.number != head.number || chain.hash != head.hash {
                problem(
                    "The last entry that was written is \(head.number), and the last one in the "
                        + "files is \(chain.number), or another one of this number."
                )
            }
            return AuditCheckView(
                first: firstNumber,
                last: chain.number,
                hash: chain.hash,
                problems: problems
            )
        }
    }
}
