import Glibc
import OperonModel
import OperonRuntime
import Testing

/// What the tests of processes have in common: a runner with a known environment, short ways to
/// write commands, and awaiting what a process does.
enum ProcessSupport {
    /// What the runner's worker has in its environment.
    static let environment = [
        "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/", "SECRET": "canary",
    ]

    /// A runner for the time of `body`.
    static func withRunner<Value>(
        _ body: (ProcessRunner) async throws -> Value
    ) async throws -> Value {
        let runner = try ProcessRunner(ProcessRunner.Configuration(environment: environment))
        do {
            let value = try await body(runner)
            await runner.shutdown()
            return value
        } catch {
            await runner.shutdown()
            throw error
        }
    }

    static func context(
        inputs: [NamedInput] = [],
        niceness: Int32 = 0,
        timeout: Duration? = nil,
        limits: Limits = Limits()
    ) -> ProcessContext {
        ProcessContext(
            graph: "tests",
            operation: "probe",
            ordinal: 3,
            inputs: inputs,
            niceness: niceness,
            timeout: timeout,
            limits: limits
        )
    }

    /// A new directory, which the caller removes.
    static func temporaryFolder() -> String {
        var template = "/tmp/operon-test-XXXXXX".utf8CString.map(UInt8.init(bitPattern:))
        let made = template.withUnsafeMutableBytes { bytes in
            mkdtemp(bytes.baseAddress!.assumingMemoryBound(to: CChar.self)) != nil
        }
        #expect(made)
        return String(decoding: template.dropLast(), as: UTF8.self)
    }

    static func shell(_ line: String, grace: Duration = .seconds(10)) -> CommandDescription {
        CommandDescription(arguments: CommandDescription.shell(line), grace: grace)
    }
}

extension ProcessRunner {
    /// Runs a shell line with the tests' context.
    func shell(_ line: String) async -> ProcessResult {
        await run(ProcessSupport.shell(line), attempt: ProcessSupport.context())
    }
}

extension ProcessResult {
    /// What it printed, as text.
    var text: String { String(decoding: attempt.log.text, as: UTF8.self) }

    /// What it printed, line by line.
    var lines: [String] { text.split(separator: "\n").map(String.init) }
}

/// Waits for what a process prints while it runs.
final class LogWaiter: Sendable {
    let chunks: AsyncStream<String>
    private let continuation: AsyncStream<String>.Continuation

    init() {
        (chunks, continuation) = AsyncStream.makeStream()
    }

    var handler: ProcessOutputHandler {
        let continuation = continuation
        return { continuation.yield(String(decoding: $0.bytes, as: UTF8.self)) }
    }

    /// Returns everything printed so far, as soon as it contains `text`.
    func wait(for text: String) async -> String {
        var printed = ""
        for await chunk in chunks {
            printed += chunk
            if printed.contains(text) { break }
        }
        return printed
    }
}

/// Whether a process of this number exists and is not a zombie.
func isAlive(_ process: pid_t) -> Bool {
    guard let status = try? readProc("\(process)/stat") else { return false }
    // "pid (name) state …"; the name may contain anything.
    guard let end = status.lastIndex(of: ")") else { return false }
    return !status[end...].hasPrefix(") Z")
}

/// A file under /proc as text.
func readProc(_ path: String) throws -> String {
    struct Missing: Error {}
    guard let file = fopen("/proc/\(path)", "r") else { throw Missing() }
    defer { fclose(file) }
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
        let count = fread(&buffer, 1, buffer.count, file)
        guard count > 0 else { break }
        text += buffer[..<count]
    }
    return String(decoding: text, as: UTF8.self)
}

/// Waits until `condition` holds, at most a minute; returns whether it did.
func eventually(_ condition: () -> Bool) async -> Bool {
    let deadline = SystemClock.now() + .seconds(60)
    while !condition() {
        guard SystemClock.now() < deadline else { return false }
        // The only thing that ends is another process, which sends no signal to us.
        try? await Task.sleep(for: .milliseconds(5))
    }
    return true
}
