import Foundation
import Glibc
import Logging
import NIOCore
import OperonGraphFile
import OperonHTTP
import OperonModel
import OperonPorts
import Testing

/// A server on a socket of its user.
@Suite(.timeLimit(.minutes(5))) struct SocketTests {
    @Test
    func `a socket is its user's alone, answers the user's clients, and goes with its server`()
        async throws
    {
        let folder = try Scratch.folder().path
        let path = folder + "/operon.sock"
        try await ServedCluster.run(HTTPServerConfiguration(socket: path)) {
            (served: ServedCluster) async throws in
            #expect(served.address == .socket(path))
            #expect(try mode(of: path) == 0o600)
            _ = try await served.coordinator.submit(Submission(graph: .diamond))
            try await ServedCluster.client(.init(url: "unix:\(path)")) {
                (client: HTTPCoordinatorClient) async throws in
                #expect(try await client.graph("diamond").name == "diamond")
                let stream = try await client.events(after: nil, graph: nil)
                await served.tap.waitForWatchers(1)
                _ = try await client.setQueue("q", QueueChange())
                var iterator = stream.makeAsyncIterator()
                #expect(try await iterator.next() != nil)
            }
        }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `over a socket, another host's name and another site's page are refused`()
        async throws
    {
        let path = try Scratch.folder().path + "/operon.sock"
        try await ServedCluster.run(HTTPServerConfiguration(socket: path)) {
            (served: ServedCluster) async throws in
            func status(_ method: String, _ target: String, _ field: String) async throws -> Int {
                let head = "\(method) \(target) HTTP/1.1\r\nConnection: close\r\n\(field)\r\n\r\n"
                return RawAnswer(try await RawSocket.ask(path, head)).status
            }
            for host in ["localhost", "127.0.0.1", "localhost:8080", "[::1]:1"] {
                #expect(try await status("GET", "/v1/status", "Host: \(host)") == 200, "\(host)")
            }
            for host in ["evil.example", "127.0.0.1.evil.example", ""] {
                #expect(try await status("GET", "/v1/status", "Host: \(host)") == 403, "\(host)")
            }
            for origin in ["https://evil.example", "null", "http://evil.localhost"] {
                let fields = "Host: localhost\r\nOrigin: \(origin)"
                #expect(try await status("POST", "/v1/queues/q/cancel", fields) == 403, "\(origin)")
            }
            let site = "Host: localhost\r\nSec-Fetch-Site: cross-site"
            #expect(try await status("POST", "/v1/queues/q/cancel", site) == 403)
            #expect(await served.tap.calls.contains { $0.name == "cancel" } == false)
        }
    }

    @Test func `whoever fills the page takes no connection of the socket`() async throws {
        let path = try Scratch.folder().path + "/operon.sock"
        var api = HTTPServerConfiguration(socket: path)
        api.hasPage = true
        (api.limits.connections, api.limits.pageConnections) = (2, 2)
        try await ServedCluster.run(api) { (served: ServedCluster) async throws in
            let port = try #require(served.server.page?.tcp?.port)
            // The server reads its body, which never comes.
            let login = ByteBuffer(
                string: "POST /v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
                    + "Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n"
            )
            try await RawSocket.open(port) { first, firstOut in
                try await firstOut.write(login)
                for try await _ in first { break }
                try await RawSocket.open(port) { second, secondOut in
                    try await secondOut.write(login)
                    for try await _ in second { break }
                    let head = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close"
                    let answer = RawAnswer(try await RawSocket.ask(path, head + "\r\n\r\n"))
                    #expect(answer.status == 200, "\(answer.text)")
                }
            }
        }
    }

    @Test func `the socket of a dead server is replaced, and that of a live one is not`()
        async throws
    {
        let path = try Scratch.folder().path + "/operon.sock"
        // Bound, and never removed: as a killed server leaves it.
        let dead = try LocalConnection.listen(path)
        close(dead)
        #expect(FileManager.default.fileExists(atPath: path))
        try await ServedCluster.run(HTTPServerConfiguration(socket: path)) {
            (_: ServedCluster) async throws in
            // With a page, which ends as well.
            var other = HTTPServerConfiguration(socket: path)
            other.hasPage = true
            let second = await #expect(throws: HTTPServerError.self) {
                try await ServedCluster.run(other) { _ in }
            }
            #expect(second?.code == .addressInUse)
            #expect(second?.message.contains("--listen unix:PATH") == true)
            try await ServedCluster.client(.init(url: "unix:\(path)")) {
                (client: HTTPCoordinatorClient) async throws in
                #expect(try await client.status().epoch == 1)
            }
        }
        // A server that is none of ours holds no lock.
        let other = try LocalConnection.listen(path)
        defer { close(other) }
        let third = await #expect(throws: HTTPServerError.self) {
            try await ServedCluster.run(HTTPServerConfiguration(socket: path)) { _ in }
        }
        #expect(third?.code == .addressInUse)
    }

    @Test func `a path that is not fit for a socket is refused and left as it was`() async throws {
        let folder = try Scratch.folder().path
        let file = folder + "/operon.sock"
        try "mine".write(toFile: file, atomically: true, encoding: .utf8)
        let long = folder + "/" + String(repeating: "a", count: 120)
        for (path, word) in [(file, "is not a socket"), (long, "is longer than the 107 bytes")] {
            let error = await #expect(throws: HTTPServerError.self) {
                try await ServedCluster.run(HTTPServerConfiguration(socket: path)) { _ in }
            }
            #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
        }
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "mine")

        #expect(chmod(folder, 0o777) == 0)
        let shared = folder + "/shared.sock"
        let error = await #expect(throws: HTTPServerError.self) {
            try await ServedCluster.run(HTTPServerConfiguration(socket: shared)) { _ in }
        }
        #expect(error?.code == .unsafe)
        #expect(error?.message.contains("chmod go-w") == true)
    }

    @Test func `a client asks no socket that another user can put in the coordinator's place`()
        async throws
    {
        let folder = try Scratch.folder().path
        let path = folder + "/operon.sock"
        let impostor = try LocalConnection.listen(path)
        defer { close(impostor) }
        #expect(chmod(folder, 0o777) == 0)
        try await ServedCluster.client(.init(url: "unix:\(path)")) {
            (client: HTTPCoordinatorClient) async throws in
            let error = await #expect(throws: ClientError.self) { _ = try await client.status() }
            #expect(error?.code == .forbidden)
            #expect(error?.message.contains("Others may write to") == true)
        }
    }

    @Test func `a token is made once, for its user alone, and found by the user's clients`() throws
    {
        let state = try Scratch.folder().path
        let environment = ["XDG_STATE_HOME": state, "HOME": "/nowhere"]
        let file = try #require(StateFolder.token(environment))
        #expect(file == state + "/operon/token")
        func token(_ url: String?) throws -> String? {
            try HTTPCoordinatorClient.Configuration(url: url, token: nil, environment: environment)
                .ownToken()
        }
        #expect(try token("http://127.0.0.1:7350") == nil)

        let made = try OwnToken.loadOrMake(file)
        #expect(made.count == 64)
        #expect(try OwnToken.loadOrMake(file) == made)
        #expect(try mode(of: file) == 0o600)
        #expect(try mode(of: state + "/operon") == 0o700)
        #expect(try FileManager.default.contentsOfDirectory(atPath: state + "/operon") == ["token"])
        #expect(try token("http://127.0.0.1:7350") == made)
        #expect(try token("http://localhost") == made)
        // It is shown to nobody else, and needed by no socket.
        #expect(try token("http://operon.example:7350") == nil)
        #expect(try token("https://operon.example") == nil)
        #expect(try token(nil) == nil)

        #expect(chmod(file, 0o644) == 0)
        let error = #expect(throws: ClientError.self) { _ = try token("http://127.0.0.1:7350") }
        #expect(error?.message.contains("Others can read your token") == true)
        #expect(throws: HTTPServerError.self) { _ = try OwnToken.loadOrMake(file) }
    }

    @Test func `the socket and the token are where XDG_STATE_HOME says, else at home`() throws {
        #expect(
            StateFolder.socket(["HOME": "/home/ann"])
                == "/home/ann/.local/state/operon/operon.sock"
        )
        let both = ["HOME": "/home/ann", "XDG_STATE_HOME": "/var/state"]
        #expect(StateFolder.socket(both) == "/var/state/operon/operon.sock")
        // Relative paths are to be ignored (XDG Base Directory Specification).
        let relative = ["HOME": "/home/ann", "XDG_STATE_HOME": "state"]
        #expect(StateFolder.token(relative) == "/home/ann/.local/state/operon/token")
        let error = #expect(throws: ClientError.self) {
            _ = try HTTPCoordinatorClient.Configuration(url: nil, token: nil, environment: [:])
        }
        #expect(error?.message.contains("Neither XDG_STATE_HOME nor HOME") == true)
    }

    private func mode(of path: String) throws -> Int? {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return (attributes[.posixPermissions] as? NSNumber)?.intValue
    }
}

/// A connection to a socket that is a file, by the system's own calls.
enum LocalConnection {
    struct Failure: Error { let number = errno }

    static func listen(_ path: String) throws -> Int32 {
        let number = try make(path) { bind($0, $1, $2) }
        guard Glibc.listen(number, 8) == 0 else { throw Failure() }
        return number
    }

    private static func make(
        _ path: String,
        _ use: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws -> Int32 {
        let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let status = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                use(number, address, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else { throw Failure() }
        return number
    }
}
