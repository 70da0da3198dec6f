#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The system's words for its errors.
package enum SystemWords {
    /// For the last error of this thread.
    package static func lastError() -> String { text(of: errno) }

    package static func text(of code: Int32) -> String {
        // glibc's strerror answers per thread since 2.32.
        guard let text = unsafe strerror(code) else { return "error \(code)" }
        return unsafe String(cString: text)
    }
}
