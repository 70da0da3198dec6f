import FoundationEssentials
import OperonRuntime

/// The environment variables of this process, and facts that the system reports about it. Only
/// programs read them, no library target does.
package enum Environment {
    package static var current: [String: String] {
        var variables = ProcessInfo.processInfo.environment
        for name in secrets { variables[name] = OwnProcess.secret(name) }
        return variables
    }

    /// Variables that hold a password or a token.
    private static let secrets = [OwnProcess.brokerVariable, TrustChoice.variable]

    /// Hides the environment of this process from other processes of the same user, among them
    /// operations, which could read it in /proc.
    package static func conceal() {
        OwnProcess.conceal()
        for name in secrets { _ = OwnProcess.secret(name) }
    }

    package static var processorCount: Int { ProcessInfo.processInfo.activeProcessorCount }

    /// The trace that this program is a part of; `nil` if the variable is not set or is not valid
    /// in a header.
    package static func traceParent(in environment: [String: String]) -> String? {
        guard let text = environment["TRACEPARENT"], (1...256).contains(text.utf8.count),
            text.utf8.allSatisfy({ (33...126).contains($0) })
        else { return nil }
        return text
    }

    /// The paths from which to start this program again: first its original path, where a newer
    /// version may have been installed, then the file that is running.
    package static var ownPaths: [String] {
        let running = "/proc/self/exe"
        let path = try? FileManager.default.destinationOfSymbolicLink(atPath: running)
        guard let path else { return [running] }
        // The suffix with which the kernel marks a file that was replaced (proc(5)).
        let deleted = " (deleted)"
        return [path.hasSuffix(deleted) ? String(path.dropLast(deleted.count)) : path, running]
    }
}
