import Foundation
import Glibc

/// A RabbitMQ of a test's own, which the test may kill, freeze and start again. Only
/// `scripts/lib/broker.sh` knows how.
package final class BrokerFixture: Sendable {
    /// The broker of the suite that is running.
    @TaskLocal package static var current: BrokerFixture?

    /// Without a path: the default virtual host. As `guest`, for what a test does to the broker;
    /// `BrokerUsers` makes those of the two sides of it.
    package let url: String
    private let directory: URL

    private init(url: String, directory: URL) {
        self.url = url
        self.directory = directory
    }

    /// Starts a broker, and ends it when `body` returns or throws.
    package static func withBroker<Result>(
        extraConfiguration: String = "",
        plugins: [String] = [],
        isolation: isolated (any Actor)? = #isolation,
        _ body: (BrokerFixture) async throws -> Result
    ) async throws -> Result {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-broker-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: directory,
            withIntermediateDirectories: true
        )
        try extraConfiguration.write(
            to: directory.appendingPathComponent("extra.conf"),
            atomically: true,
            encoding: .utf8
        )
        try plugins.joined(separator: ",").write(
            to: directory.appendingPathComponent("extra.plugins"),
            atomically: true,
            encoding: .utf8
        )
        do {
            _ = try await script("start", directory)
            let fixture = BrokerFixture(
                url: try await script("url", directory),
                directory: directory
            )
            let result = try await body(fixture)
            try await remove(directory)
            return result
        } catch {
            try await remove(directory)
            throw error
        }
    }

    /// The same, and it is `current` meanwhile.
    package static func withCurrent(
        extraConfiguration: String = "",
        _ body: @Sendable () async throws -> Void
    ) async throws {
        try await withBroker(extraConfiguration: extraConfiguration) { broker in
            try await $current.withValue(broker) { try await body() }
        }
    }

    /// The broker's files that contain this text.
    package func files(with text: String) -> [String] {
        let all = FileManager.default.enumerator(atPath: directory.path)
        return (all?.allObjects as? [String] ?? []).filter { name in
            let path = directory.appendingPathComponent(name).path
            let bytes = FileManager.default.contents(atPath: path) ?? Data()
            return bytes.range(of: Data(text.utf8)) != nil
        }
    }

    /// The broker dies at once, with all that it had in memory.
    package func kill9() async throws { _ = try await Self.script("kill9", directory) }

    /// Starts it again where it was, and returns when it takes logins.
    package func restart() async throws { _ = try await Self.script("restart", directory) }

    /// The broker dies at once, and its disk with it.
    package func wipe() async throws { _ = try await Self.script("wipe", directory) }

    /// While there is an alarm the broker reads nothing from whoever publishes.
    package func setMemoryAlarm(_ isOn: Bool) async throws {
        // The share of the machine's memory that it may use: none, or the default.
        let share = isOn ? "0.0000001" : "0.4"
        try await evaluate("vm_memory_monitor:set_vm_memory_high_watermark(\(share)).")
    }

    /// The names of all queues that begin with a prefix.
    package func queues(prefix: String) async throws -> [String] {
        // A list of characters is printed as text, and an empty one as a list.
        let text = try await evaluate(
            "[$| | lists:flatten([[binary_to_list(element(4, Q)), $|] "
                + "|| Q <- rabbit_amqqueue:list_names()])]."
        )
        return text.split(separator: "|").map(String.init).filter { $0.hasPrefix(prefix) }.sorted()
    }

    /// How many messages all queues hold, those included that were delivered and not acknowledged.
    package func messageCount() async throws -> Int {
        let text = try await evaluate(
            "lists:sum([N || Q <- rabbit_amqqueue:list(), "
                + "{messages, N} <- rabbit_amqqueue:info(Q, [messages])])."
        )
        guard let count = Int(text) else {
            throw BrokerFixtureError("the broker counts “\(text)”")
        }
        return count
    }

    /// Stops and resumes the broker's process: a frozen host.
    package func freeze() async throws { try await signal(SIGSTOP) }

    package func thaw() async throws { try await signal(SIGCONT) }

    /// `rabbitmqctl` against this broker.
    @discardableResult
    package func control(_ arguments: String...) async throws -> String {
        try await Self.script("ctl", directory, arguments)
    }

    /// The value of an Erlang expression in this broker.
    @discardableResult
    package func evaluate(_ expression: String) async throws -> String {
        try await Self.script("eval", directory, [expression])
    }

    private func signal(_ signal: Int32) async throws {
        let text = try await Self.script("pid", directory)
        guard let pid = Int32(text) else { throw BrokerFixtureError("no broker: “\(text)”") }
        kill(pid, signal)
    }

    private static func remove(_ directory: URL) async throws {
        _ = try await script("stop", directory)
        try FileManager.default.removeItem(at: directory)
    }

    private static func script(
        _ command: String,
        _ directory: URL,
        _ arguments: [String] = []
    ) async throws -> String {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let process = Process()
        process.executableURL = root.appendingPathComponent("scripts/lib/broker.sh")
        process.arguments = [command, directory.path] + arguments
        // A file, not a pipe: a full pipe would stop the script, and a broker that keeps it open
        // would never let it end.
        let output = directory.appendingPathComponent("script-\(UUID().uuidString)")
        _ = FileManager.default.createFile(atPath: output.path, contents: nil)
        let handle = try FileHandle(forWritingTo: output)
        process.standardOutput = handle
        process.standardError = handle
        let status = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = {
                continuation.resume(returning: $0.terminationStatus)
            }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        try handle.close()
        let text = try String(contentsOf: output, encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        guard status == 0 else {
            throw BrokerFixtureError("broker.sh \(command) ended with \(status): \(text)")
        }
        return text
    }
}

/// What went wrong with a test's broker.
package struct BrokerFixtureError: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
