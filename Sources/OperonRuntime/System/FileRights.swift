import Glibc
package import OperonModel

extension FileRights {
    /// Of what a path leads to; `nil`: that cannot be looked at.
    package init?(_ path: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        self.init(mode: status.st_mode, owner: status.st_uid, user: geteuid())
    }
}
