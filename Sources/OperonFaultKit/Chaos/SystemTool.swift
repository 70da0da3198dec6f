import Foundation

/// A program of the system, run to its end.
package enum SystemTool {
    /// - Returns: what it printed.
    /// - Throws: `CommandFailure` with what it said, if it fails or is not there.
    @discardableResult
    package static func run(_ arguments: String...) async throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        // What it prints fits into the pipes: it never waits for a reader.
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        let status = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        let said = try errors.fileHandleForReading.readToEnd() ?? Data()
        guard status == 0 else {
            throw CommandFailure(
                "\(arguments.joined(separator: " ")) ended with \(status): "
                    + String(decoding: said, as: UTF8.self)
            )
        }
        let printed = try output.fileHandleForReading.readToEnd() ?? Data()
        return String(decoding: printed, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
