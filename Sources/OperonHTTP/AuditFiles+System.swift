import FoundationEssentials
import OperonModel
import OperonSystem

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

// How the audit's files are opened, read and written.

extension AuditFiles {
    static let suffix = ".audit"
    /// As many as the largest number has, so that names sort like numbers.
    static let nameDigits = 20

    static func error(_ what: String) -> AuditError {
        AuditError(description: "\(what): \(SystemWords.lastError())")
    }

    /// The segments, the oldest first.
    static func names(in folder: String) throws(AuditError) -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder).filter { name in
                let digits = name.dropLast(suffix.count)
                return name.hasSuffix(suffix) && digits.utf8.count == nameDigits
                    && digits.utf8.allSatisfy { (48...57).contains($0) }
            }.sorted()
        } catch {
            throw AuditError(description: "The audit \(folder) cannot be read: \(error)")
        }
    }

    /// A segment that gets no further entry; `nil`: it has none.
    static func ended(_ path: String) throws(AuditError) -> Segment? {
        let head = try read(path, atMost: lineBytesMax)
        guard let end = head.firstIndex(of: UInt8(ascii: "\n")), let first = entry(head[..<end])
        else { return nil }
        let size = try size(of: path)
        let tail = try read(path, from: max(0, size - lineBytesMax), atMost: lineBytesMax)
        // A last line that is not whole is told by a check, and hides none before it.
        guard let end = tail.lastIndex(of: UInt8(ascii: "\n")),
            let line = tail[..<end].split(separator: UInt8(ascii: "\n")).last,
            let last = entry(line)
        else { return nil }
        return Segment(
            path: path,
            first: first.entry.number,
            last: last.entry.number,
            firstAt: first.entry.at.time,
            lastAt: last.entry.at.time,
            lastHash: last.hash,
            bytes: size
        )
    }

    struct Opened {
        /// `nil`: it has no entry.
        var segment: Segment?
        var chain: AuditChain
        /// The bytes of a last line that was not whole, and that is gone now.
        var torn: Int
        var remarks: [String] = []
    }

    /// The segment that gets the next entries. Removes a last line that is not whole.
    ///
    /// - Parameter before: The chain of the segments before; `nil`: there are none.
    static func opened(_ path: String, _ before: AuditChain?) throws(AuditError) -> Opened {
        let bytes = try read(path, atMost: .max)
        let end = bytes.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        var opened = Opened(chain: before ?? AuditChain(), torn: bytes.count - end)
        if opened.torn > 0 {
            guard unsafe truncate(path, off_t(end)) == 0 else {
                throw error("The audit \(path) cannot be mended")
            }
            opened.remarks.append(
                "The last entry of the audit was not whole: its \(opened.torn) bytes were removed."
            )
        }
        for line in bytes[..<end].split(separator: UInt8(ascii: "\n")) {
            if before == nil, opened.segment == nil, opened.chain.number == 0 {
                opened.chain = AuditChain(before: line) ?? opened.chain
            }
            do throws(AuditChain.Problem) {
                let entry = try opened.chain.check(line)
                if opened.segment == nil {
                    opened.segment = Segment(
                        path: path,
                        first: entry.number,
                        last: entry.number,
                        firstAt: entry.at.time,
                        lastAt: entry.at.time,
                        lastHash: opened.chain.hash,
                        bytes: end
                    )
                }
                opened.segment?.last = entry.number
                opened.segment?.lastAt = entry.at.time
                opened.segment?.lastHash = opened.chain.hash
            } catch {
                opened.remarks.append("The audit is broken: in \(path), \(error.text).")
            }
        }
        return opened
    }

    private static func entry(_ line: ArraySlice<UInt8>) -> (entry: AuditEntry, hash: String)? {
        guard let (hash, json) = AuditChain.parts(of: line), let entry = AuditChain.entry(json)
        else { return nil }
        return (entry, hash)
    }

    // MARK: - Calls of the system

    /// Whoever has made the folder can replace what is in it.
    static func checkOwner(of folder: String) throws(AuditError) {
        var status = stat()
        guard unsafe lstat(folder, &status) == 0 else {
            throw error("The audit \(folder) cannot be read")
        }
        guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(),
            status.st_mode & 0o022 == 0
        else {
            throw AuditError(
                description: "The audit \(folder) is not a folder of this user in which nobody "
                    + "else may write"
            )
        }
    }

    static func open(_ path: String) throws(AuditError) -> Int32 {
        let flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW
        let file = unsafe Glibc.open(path, flags, 0o600)
        guard file >= 0 else { throw error("The audit \(path) cannot be opened") }
        return file
    }

    static func size(of path: String) throws(AuditError) -> Int {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            throw error("The audit \(path) cannot be read")
        }
        return Int(status.st_size)
    }

    static func read(
        _ path: String,
        from start: Int = 0,
        atMost bytesMax: Int
    ) throws(AuditError) -> [UInt8] {
        let file = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { throw error("The audit \(path) cannot be read") }
        defer { _ = close(file) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 256 << 10)
        while bytes.count < bytesMax {
            let wanted = min(piece.count, bytesMax - bytes.count)
            let place = off_t(start + bytes.count)
            let count = unsafe piece.withUnsafeMutableBytes { buffer in
                unsafe pread(file, buffer.baseAddress, wanted, place)
            }
            guard count >= 0 else { throw error("The audit \(path) cannot be read") }
            if count == 0 { break }
            bytes += piece[..<count]
        }
        return bytes
    }

    /// Writes all bytes. Returns what went wrong.
    static func write(_ bytes: [UInt8], to file: Int32) -> AuditError? {
        var done = 0
        while done < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.write(file, buffer.baseAddress?.advanced(by: done), bytes.count - done)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return error("The audit cannot be written") }
            done += count
        }
        return nil
    }

    /// Puts the names of new files on the disk.
    static func sync(folder: String) throws(AuditError) {
        let file = unsafe Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard file >= 0 else { throw error("The audit \(folder) cannot be opened") }
        defer { _ = close(file) }
        guard fsync(file) == 0 else { throw error("The audit \(folder) cannot be synced") }
    }
}
