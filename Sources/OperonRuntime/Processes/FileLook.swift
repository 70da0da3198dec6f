import Glibc
import OperonCore

/// Looks at the files that a command produces and consumes. Every call blocks and belongs on the
/// files thread.
enum FileLook {
    /// Looks at these paths in their order. Links are followed, as the process would follow them.
    ///
    /// - Parameter directory: where a relative path begins; `nil`: where this process started.
    static func look(at paths: [String], in directory: String?) -> [ObservedFile] {
        paths.map { path in
            let isAbsolute = path.utf8.first == UInt8(ascii: "/")
            let whole = isAbsolute ? path : directory.map { "\($0)/\(path)" } ?? path
            return ObservedFile(path, finding(whole))
        }
    }

    private static func finding(_ path: String) -> ObservedFile.Finding {
        var status = stat()
        guard unsafe fstatat(AT_FDCWD, path, &status, 0) == 0 else {
            let code = errno
            // What is no directory has no files.
            guard code != ENOENT, code != ENOTDIR else { return .missing }
            return .unknown(why: SystemError.text(code))
        }
        return .exists(
            modified: ModificationTime(
                seconds: Int64(status.st_mtim.tv_sec),
                nanoseconds: Int64(status.st_mtim.tv_nsec)
            )
        )
    }
}
