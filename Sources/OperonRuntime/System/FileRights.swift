import Glibc
package import OperonModel

extension FileRights {
    /// The rights of the file that a path leads to; `nil`: they cannot be read.
    package init?(_ path: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        self.init(mode: status.st_mode, owner: status.st_uid, user: geteuid())
    }
}
