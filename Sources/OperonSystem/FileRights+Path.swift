package import OperonModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension FileRights {
    /// The rights of the file that a path leads to; `nil`: they cannot be read.
    package init?(_ path: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    init(_ status: stat) {
        self.init(
            mode: UInt32(status.st_mode),
            owner: UInt32(status.st_uid),
            user: UInt32(geteuid())
        )
    }
}
