import COperonSQLite
import OperonPorts

/// The version of the SQLite library that this process uses. It is the system's library, which may
/// be older than the one that the program was built with.
///
/// The WAL-reset corruption (https://www.sqlite.org/changes.html, fixed in 3.51.3) needs a
/// checkpoint on one connection while another one writes. A store has one connection and an
/// exclusive lock, so earlier versions are safe here.
struct SQLiteVersion: Hashable, Comparable, CustomStringConvertible {
    /// Every table of a store is STRICT, which SQLite supports since 3.37 (2021).
    static let oldest = SQLiteVersion(major: 3, minor: 37)

    let major: Int
    let minor: Int

    init(major: Int, minor: Int) {
        self.major = major
        self.minor = minor
    }

    /// Reads the form of `sqlite_version()`, such as `3.40.1`.
    init?(_ text: String) {
        let parts = text.split(separator: ".").map { Int($0) }
        guard parts.count >= 2, let major = parts[0], let minor = parts[1] else { return nil }
        self.init(major: major, minor: minor)
    }

    var description: String { "\(major).\(minor)" }

    static func < (one: SQLiteVersion, other: SQLiteVersion) -> Bool {
        (one.major, one.minor) < (other.major, other.minor)
    }

    /// - Throws: `StoreError`, before any file is touched.
    func check() throws(StoreError) {
        guard self < Self.oldest else { return }
        throw StoreError(
            .failed,
            "This machine’s SQLite is \(self), and stores need \(Self.oldest) or later."
        )
    }

    /// The version that this process uses.
    static func current() throws(StoreError) -> SQLiteVersion {
        guard let version = unsafe SQLiteVersion(String(cString: sqlite3_libversion())) else {
            throw StoreError(.failed, "SQLite does not tell its version.")
        }
        return version
    }
}
