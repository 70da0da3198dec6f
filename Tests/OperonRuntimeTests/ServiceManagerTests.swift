import Glibc
import NIOConcurrencyHelpers
import OperonCore
import OperonModel
import OperonPorts
import OperonRuntime
import Testing

/// What a service manager is told, heard on a real datagram socket.
@Suite struct ServiceManagerTests {
    @Test(arguments: [false, true])
    func `every word arrives at a path and at an abstract name`(isAbstract: Bool) throws {
        let listener = try Listener(isAbstract: isAbstract)
        let manager = try #require(ServiceManager(socket: listener.name))

        try manager.tell([.ready, .status("serving\nall")])
        try manager.tell([.stopping(within: .milliseconds(1_500))])
        try manager.tell([.stopping(within: .seconds(Int64.max))])

        #expect(try listener.next() == "READY=1\nSTATUS=serving all\n")
        #expect(try listener.next() == "STOPPING=1\nEXTEND_TIMEOUT_USEC=1500000\n")
        #expect(try listener.next() == "STOPPING=1\nEXTEND_TIMEOUT_USEC=31536000000000\n")
    }

    @Test(arguments: [nil, "", "/", "@", "vsock:2:1234", "relative"])
    func `nobody is told without an address that is known`(socket: String?) {
        #expect(ServiceManager(socket: socket) == nil)
    }

    @Test func `what cannot be told is an error that says why`() throws {
        let nobody = try #require(ServiceManager(socket: "/nowhere/notify"))
        let tooLong = "/" + String(repeating: "x", count: 108)
        let long = try #require(ServiceManager(socket: tooLong))

        let first = #expect(throws: PortError.self) { try nobody.tell([.ready]) }
        let second = #expect(throws: PortError.self) { try long.tell([.ready]) }

        #expect(first?.message.contains("No such file") == true)
        #expect(second?.message.contains("too long") == true)
    }

    @Test func `a worker is ready once, when the broker has taken its login`() throws {
        let listener = try Listener(isAbstract: false)
        let status = Self.status(listener)

        status.note(.noCoordinator)
        status.note(.up(connection: 1))
        status.note(.message([1]))
        status.note(.welcomed(Reign(rawValue: 1), Epoch(rawValue: 1)))
        status.note(.down(reason: "gone"))
        status.stopping(within: .seconds(60))

        #expect(
            try listener.next() == "READY=1\nSTATUS=connected, no coordinator has been there yet\n"
        )
        #expect(try listener.next() == "STATUS=connected, waiting for the coordinator\n")
        #expect(try listener.next() == "STATUS=serving the coordinator\n")
        #expect(try listener.next() == "STATUS=not connected: gone\n")
        let end = "STOPPING=1\nEXTEND_TIMEOUT_USEC=60000000\nSTATUS=draining\n"
        #expect(try listener.next() == end)
    }

    @Test func `a worker whose broker does not answer is ready after its patience`() async throws {
        let listener = try Listener(isAbstract: false)
        let status = Self.status(listener, patience: .milliseconds(1))

        await status.waitForReadiness()
        status.note(.up(connection: 1))

        let first = "READY=1\nSTATUS=not connected: the broker does not answer\n"
        #expect(try listener.next() == first)
        #expect(try listener.next() == "STATUS=connected, waiting for the coordinator\n")
    }

    @Test func `a worker that was ready in time stays as it said`() async throws {
        let listener = try Listener(isAbstract: false)
        let status = Self.status(listener, patience: .milliseconds(1))

        status.note(.up(connection: 1))
        await status.waitForReadiness()
        status.stopping(within: .zero)

        #expect(try listener.next() == "READY=1\nSTATUS=connected, waiting for the coordinator\n")
        #expect(try listener.next().hasPrefix("STOPPING=1\n"))
    }

    @Test func `a process reports while it works, and not while something is wrong`() async throws {
        let listener = try Listener(isAbstract: false)
        let environment = [
            "NOTIFY_SOCKET": listener.name, "WATCHDOG_USEC": "6000", "WATCHDOG_PID": "7",
        ]
        let watchdog = try #require(ServiceWatchdog(environment: environment, process: 7))
        let answers = NIOLockedValueBox(["stuck", "stuck", nil])
        let isAsked = Latch()

        #expect(watchdog.interval == .milliseconds(1))
        await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await watchdog.run {
                    answers.withLockedValue { answers in
                        guard let answer = answers.first else {
                            isAsked.open()
                            return "stuck"
                        }
                        answers.removeFirst()
                        return answer
                    }
                }
            }
            await isAsked.wait()
            group.cancelAll()
        }
        try ServiceManager(socket: listener.name)?.tell([.ready])

        #expect(try listener.next() == "WATCHDOG=1\n")
        #expect(try listener.next() == "READY=1\n")
    }

    @Test(arguments: [
        [String: String](), ["WATCHDOG_USEC": "1000"], ["NOTIFY_SOCKET": "/notify"],
        ["NOTIFY_SOCKET": "/notify", "WATCHDOG_USEC": "0"],
        ["NOTIFY_SOCKET": "/notify", "WATCHDOG_USEC": "soon"],
        ["NOTIFY_SOCKET": "/notify", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "8"],
    ])
    func `nobody waits for reports that were not asked for`(environment: [String: String]) {
        #expect(ServiceWatchdog(environment: environment, process: 7) == nil)
    }

    private static func status(_ listener: Listener, patience: Duration = .seconds(60))
        -> ServiceStatus
    {
        ServiceStatus(manager: ServiceManager(socket: listener.name), patience: patience) {
            Issue.record("\($0)")
        }
    }
}

/// A service manager's end of the socket.
private final class Listener {
    let name: String
    private let socket: Int32
    private let folder: String?

    init(isAbstract: Bool) throws {
        socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        try #require(socket >= 0)
        let folder = isAbstract ? nil : ProcessSupport.temporaryFolder()
        self.folder = folder
        name = folder.map { $0 + "/notify" } ?? "@operon-test-\(getpid())-\(socket)"
        let path = isAbstract ? [0] + Array(name.utf8.dropFirst()) : Array(name.utf8)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, length) }
        }
        try #require(status == 0)
        // Everything was sent before it is read: a minute is for a machine that is stuck.
        var patience = timeval(tv_sec: 60, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, size)
    }

    deinit {
        close(socket)
        if let folder {
            unlink(name)
            rmdir(folder)
        }
    }

    /// The next datagram.
    func next() throws -> String {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = recv(socket, &buffer, buffer.count, 0)
        try #require(count > 0)
        return String(decoding: buffer[..<count], as: UTF8.self)
    }
}
