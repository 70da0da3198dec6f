import OperonModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension SecretFile {
    /// Writes a file that only this user can read, as a whole: a reader finds the old contents or
    /// the new ones, also after a power cut.
    package static func replace(_ path: String, with bytes: [UInt8]) throws(Problem) {
        let new = try writeNew(bytes, beside: path)
        guard unsafe rename(new, path) == 0 else { throw failed(removing: new) }
        try syncFolder(of: path)
    }

    /// Makes a file that only this user can read, as a whole.
    ///
    /// - Returns: `false` if there is one already, which stays as it is.
    package static func create(_ path: String, with bytes: [UInt8]) throws(Problem) -> Bool {
        let new = try writeNew(bytes, beside: path)
        // Fails if somebody else has made the file meanwhile.
        guard unsafe link(new, path) == 0 else {
            guard errno == EEXIST else { throw failed(removing: new) }
            _ = unsafe unlink(new)
            return false
        }
        _ = unsafe unlink(new)
        try syncFolder(of: path)
        return true
    }

    /// Makes a folder that only this user can use, and the missing ones above it.
    package static func makeFolder(_ path: String) throws(Problem) {
        var end = path.startIndex
        while end < path.endIndex {
            end = path[path.index(after: end)...].firstIndex(of: "/") ?? path.endIndex
            guard
                unsafe mkdir(String(path[..<end]), 0o700) == 0 || errno == EEXIST
                    || errno == EISDIR
            else { throw .unwritable(SystemWords.lastError()) }
        }
        guard let rights = FileRights(path) else { throw .unwritable(SystemWords.lastError()) }
        guard !rights.isWritableByOthers else { throw .readableByOthers(rights) }
    }

    private static func writeNew(
        _ bytes: [UInt8],
        beside path: String
    ) throws(Problem) -> String {
        let new = "\(path).\(getpid()).\(UInt32.random(in: .min ... .max)).new"
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(new, flags, 0o600)
        guard number >= 0 else { throw .unwritable(SystemWords.lastError()) }
        defer { close(number) }
        var place = 0
        while place < bytes.count {
            let written = unsafe bytes.withUnsafeBytes { buffer in
                unsafe write(
                    number,
                    buffer.baseAddress.map { unsafe $0 + place },
                    bytes.count - place
                )
            }
            guard written > 0 else { throw failed(removing: new) }
            place += written
        }
        guard fsync(number) == 0 else { throw failed(removing: new) }
        return new
    }

    private static func failed(removing path: String) -> Problem {
        let why = SystemWords.lastError()
        _ = unsafe unlink(path)
        return .unwritable(why)
    }

    /// If this fails, a power cut may bring the old file back, so that nobody may be told that the
    /// new one is kept.
    private static func syncFolder(of path: String) throws(Problem) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let number = unsafe open(folder.isEmpty ? "/" : folder, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw .unwritable(SystemWords.lastError()) }
        defer { close(number) }
        guard fsync(number) == 0 else { throw .unwritable(SystemWords.lastError()) }
    }
}
