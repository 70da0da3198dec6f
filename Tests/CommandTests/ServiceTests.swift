import Foundation
import Glibc
import Testing

/// The worker as a service of systemd: what its manager is told.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ServiceTests {
    @Test func `a service is ready without a coordinator, and says how it is until its end`()
        async throws
    {
        try await Workspace.run { workspace in
            let manager = try ManagerSocket(path: workspace.path("notify"))
            var words = manager.words.makeAsyncIterator()
            let environment: [String: String?] = ["NOTIFY_SOCKET": workspace.path("notify")]
            let options = ["--drain-timeout", "90"]
            let worker = try workspace.startWorkers(1, slots: 1, environment: environment, options)[
                0
            ]

            #expect(
                await words.next()
                    == "READY=1\nSTATUS=connected, no coordinator has been there yet\n"
            )
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { run: touch started; until test -e go; do sleep 0.01; done } }"
            )
            let run = try workspace.startRun(file, on: .broker)
            #expect(await words.next() == "STATUS=connected, waiting for the coordinator\n")
            #expect(await words.next() == "STATUS=serving the coordinator\n")
            try await workspace.waitForFile("started")
            worker.signal(SIGTERM)
            // The drain and what may follow it: more than the unit's own TimeoutStopSec.
            #expect(
                await words.next()
                    == "STOPPING=1\nEXTEND_TIMEOUT_USEC=120000000\nSTATUS=draining\n"
            )
            #expect(!worker.hasEnded)
            _ = try workspace.write("go", "")

            #expect(try await worker.end().end == .exit(0))
            #expect(try await run.end().end == .exit(0))
        }
    }

    @Test func `a manager that is gone does not keep a worker from its work`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", "operations: { a: { run: \"true\" } }")
            let environment: [String: String?] = ["NOTIFY_SOCKET": workspace.path("nobody")]
            let worker = try workspace.startWorkers(1, slots: 1, environment: environment)[0]
            let ended = try await workspace.run(file, on: .broker)

            #expect(ended.end == .exit(0))
            try await worker.says("the service manager was not told")
        }
    }

    @Test func `operations are not told where the manager listens`() async throws {
        try await Workspace.run { workspace in
            let manager = try ManagerSocket(path: workspace.path("notify"))
            let file = try workspace.write("graph.yaml", "operations: { a: { run: env > found } }")
            let environment: [String: String?] = ["NOTIFY_SOCKET": workspace.path("notify")]
            try workspace.startWorkers(1, slots: 1, environment: environment)
            let ended = try await workspace.run(file, on: .broker)

            #expect(ended.end == .exit(0))
            #expect(try !workspace.read("found").contains("NOTIFY_SOCKET"))
            _ = manager
        }
    }
}

/// A service manager's end of the socket: every datagram in turn.
private final class ManagerSocket {
    let words: AsyncStream<String>
    private let socket: Int32

    init(path: String) throws {
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        try #require(socket >= 0)
        self.socket = socket
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        try #require(path.utf8.count < MemoryLayout.size(ofValue: address.sun_path))
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, size) }
        }
        try #require(status == 0)
        let (words, continuation) = AsyncStream<String>.makeStream()
        self.words = words
        Thread.detachNewThread {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = recv(socket, &buffer, buffer.count, 0)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                continuation.yield(String(decoding: buffer[..<count], as: UTF8.self))
            }
            close(socket)
            continuation.finish()
        }
    }

    /// Ends the thread, which closes.
    deinit { shutdown(socket, Int32(SHUT_RD)) }
}
