import Glibc
package import OperonCore
import OperonSystem

/// The time zones of the machine: the files of the IANA database in one directory.
package struct TimeZoneDirectory: Sendable {
    /// Why a time zone cannot be read: a sentence.
    package struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        package let description: String
    }

    package static let defaultPath = "/usr/share/zoneinfo"

    private let path: String

    /// - Parameter path: Usually the variable `TZDIR`, or `defaultPath`.
    package init(path: String = defaultPath) { self.path = path }

    /// Blocks while a small file is read.
    ///
    /// - Throws: `Problem` for a name that is none, a zone that is not there, or a file that is
    ///   damaged.
    package func zone(_ name: String) throws(Problem) -> TimeZoneRules {
        if name == "UTC" { return .utc }
        guard Self.isName(name) else {
            throw Problem(
                description: "“\(name)” is no name of a time zone, such as Europe/Berlin or UTC"
            )
        }
        let file = path + "/" + name
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try Self.read(file)
        } catch {
            guard unsafe access(path + "/UTC", R_OK) == 0 || access(path, R_OK) == 0 else {
                throw Problem(
                    description: "the time zones of this machine are missing in \(path): install "
                        + "the package tzdata, or set TZDIR"
                )
            }
            throw Problem(
                description: error.code == ENOENT
                    ? "there is no time zone “\(name)” in \(path)"
                    : "the time zone “\(name)” cannot be read: \(SystemWords.text(of: error.code))"
            )
        }
        do throws(TimeZoneRules.Problem) {
            return try TimeZoneRules(tzif: bytes)
        } catch {
            throw Problem(description: "the time zone “\(name)” in \(file) is damaged: \(error)")
        }
    }

    /// Relative names without `..`, in the letters that the database uses.
    static func isName(_ name: String) -> Bool {
        guard (1...128).contains(name.utf8.count), let first = name.utf8.first,
            (65...90).contains(first & 0xDF)
        else { return false }
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        return parts.allSatisfy { part in
            !part.isEmpty
                && part.utf8.allSatisfy { byte in
                    (65...90).contains(byte & 0xDF) || (48...57).contains(byte)
                        || byte == 0x5F || byte == 0x2B || byte == 0x2D
                }
        }
    }

    private static func read(_ file: String) throws(SystemError) -> [UInt8] {
        // A FIFO in its place must not block.
        let number = unsafe open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard number >= 0 else { throw .current("opening \(file)") }
        let descriptor = Descriptor(owning: number)
        var status = stat()
        guard unsafe fstat(descriptor.number, &status) == 0, status.st_mode & S_IFMT == S_IFREG
        else { throw SystemError(doing: "reading \(file)", code: ENOENT) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16 << 10)
        while bytes.count <= TimeZoneRules.bytesMax {
            let count = unsafe piece.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(number, buffer.baseAddress, buffer.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .current("reading \(file)") }
            if count == 0 { break }
            bytes += piece[..<count]
        }
        return bytes
    }
}
