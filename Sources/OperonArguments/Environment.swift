import Foundation
import OperonRuntime

/// The variables of this process and what the system says of it. Read here, for programs, and in
/// no target below.
package enum Environment {
    package static var current: [String: String] {
        var variables = ProcessInfo.processInfo.environment
        for name in secrets { variables[name] = OwnProcess.secret(name) }
        return variables
    }

    /// Variables that have a password.
    private static let secrets = [OwnProcess.brokerVariable]

    /// Keeps what this process was given from others that the same user runs, operations among
    /// them: they could read it in /proc.
    package static func conceal() {
        OwnProcess.conceal()
        for name in secrets { _ = OwnProcess.secret(name) }
    }

    package static var hostName: String { ProcessInfo.processInfo.hostName }

    package static var processID: Int32 { ProcessInfo.processInfo.processIdentifier }

    package static var processorCount: Int { ProcessInfo.processInfo.activeProcessorCount }

    /// The trace that this program is a part of, if the variable is what a header may hold.
    package static func traceParent(in environment: [String: String]) -> String? {
        guard let text = environment["TRACEPARENT"], (1...256).contains(text.utf8.count),
            text.utf8.allSatisfy({ (33...126).contains($0) })
        else { return nil }
        return text
    }

    /// Where this program is, to start it again: what lies there now, which may be a newer version,
    /// else the very file that runs.
    package static var ownPaths: [String] {
        let running = "/proc/self/exe"
        let path = try? FileManager.default.destinationOfSymbolicLink(atPath: running)
        guard let path else { return [running] }
        // How the kernel shows a file that was replaced (proc(5)).
        let deleted = " (deleted)"
        return [path.hasSuffix(deleted) ? String(path.dropLast(deleted.count)) : path, running]
    }
}
