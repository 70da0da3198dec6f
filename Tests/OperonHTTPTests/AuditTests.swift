import ClusterKit
import Foundation
import Glibc
import OperonHTTP
import OperonModel
import OperonPorts
import OperonTesting
import Testing

/// The chain of the audit, and what breaks it.
@Suite(.timeLimit(.minutes(5))) struct AuditChainTests {
    private static let start = WallTime(nanosecondsSince1970: 1_767_225_600_000_000_000)

    private static func open(
        _ folder: String,
        _ bounds: AuditBounds = AuditBounds(),
        at time: WallTime = start
    ) throws -> AuditLog {
        try AuditLog(folder: folder, bounds, version: "1", wall: { time })
    }

    private static func record(
        _ audit: AuditLog,
        _ names: String...,
        at time: WallTime = start
    ) async throws {
        for name in names {
            var entry = AuditEntry(.asked, at: time)
            entry.by = name
            _ = try await audit.record(entry, isSynced: true)
        }
    }

    private static func files(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
            .map { folder + "/" + $0 }
    }

    private static func bytes(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    /// Writes into the file itself, as an attacker would.
    private static func write(_ bytes: [UInt8], _ path: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    @Test func `a changed byte is found, whichever it is, and before a restart and after`()
        async throws
    {
        let folder = try Scratch.folder().path + "/audit"
        let audit = try Self.open(folder)
        try await Self.record(audit, "ann", "bob", "eve")
        #expect(try await audit.check().problems == [])
        let file = try #require(try Self.files(folder).first)
        let whole = try Self.bytes(file)
        for place in whole.indices {
            var changed = whole
            changed[place] ^= 1
            try Self.write(changed, file)
            #expect(try await audit.check().problems != [], "byte \(place)")
            // The hash of the last entry is known from the files alone.
            let isLineEnd = place == whole.count - 1
            let again = try Self.open(folder)
            let remarks = again.remarks
            #expect(remarks != [] && (isLineEnd || remarks[0].contains("broken")), "\(place)")
            try Self.write(whole, file)
        }
        #expect(try await audit.check().problems == [])
    }

    @Test func `only their owner may read the folder and its files`()
        async throws
    {
        let folder = try Scratch.folder().path + "/audit"
        // A few entries for each file.
        var bounds = AuditBounds()
        bounds.segmentBytes = 256
        let audit = try Self.open(folder, bounds)
        try await Self.record(audit, "ann", "bob", "eve", "ann", "bob", "eve", "ann", "bob", "eve")
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        #expect(try mode(folder) == 0o700)
        let files = try Self.files(folder)
        #expect(files.count > 2)
        for file in files { #expect(try mode(file) == 0o600, "\(file)") }
    }

    @Test func `the check says at which entry the chain is broken`() async throws {
        let folder = try Scratch.folder().path + "/audit"
        let audit = try Self.open(folder)
        try await Self.record(audit, "ann", "bob", "eve", "ann")
        let file = try #require(try Self.files(folder).first)
        let lines = try Self.bytes(file).split(separator: UInt8(ascii: "\n"))
        func check(_ lines: [ArraySlice<UInt8>]) async throws -> [String] {
            try Self.write(lines.flatMap { $0 + [UInt8(ascii: "\n")] }, file)
            return try await audit.check().problems
        }
        #expect(try await check(lines) == [])
        let changed = String(decoding: lines[2], as: UTF8.self).replacing("bob", with: "bot")
        let other = [lines[0], lines[1], Array(changed.utf8)[...], lines[3], lines[4]]
        let found = try await check(other)
        #expect(found.count == 1 && found[0].contains("entry 3"), "\(found)")
        // One is missing, two are exchanged, one is there twice, the last ones are gone.
        let missing = try await check([lines[0], lines[1], lines[3], lines[4]])
        #expect(missing.contains { $0.contains("entry 3") }, "\(missing)")
        let exchanged = try await check([lines[0], lines[2], lines[1], lines[3], lines[4]])
        #expect(exchanged.contains { $0.contains("entry 2") }, "\(exchanged)")
        let twice = try await check([lines[0], lines[1], lines[1], lines[2], lines[3], lines[4]])
        #expect(twice.contains { $0.contains("entry 3") }, "\(twice)")
        let short = try await check(Array(lines[..<3]))
        #expect(short.contains { $0.contains("that was written is 5") }, "\(short)")
        let beheaded = try await check(Array(lines[1...]))
        #expect(beheaded.contains { $0.contains("those before 2") }, "\(beheaded)")
    }

    @Test func `a number that no audit reaches is a broken entry, and ends nothing`() async throws {
        let folder = try Scratch.folder().path + "/audit"
        let audit = try Self.open(folder)
        try await Self.record(audit, "ann", "bob")
        let file = try #require(try Self.files(folder).first)
        let text = String(decoding: try Self.bytes(file), as: UTF8.self)
        let number = "\"number\":\(UInt64.max)"
        let changed = text.replacing("\"number\":2", with: number)
        #expect(changed.contains(number))
        try Self.write(Array(changed.utf8), file)
        #expect(try await !audit.check().problems.isEmpty)
        let again = try Self.open(folder)
        #expect(!again.remarks.isEmpty)
        try await Self.record(again, "eve")
    }

    @Test func `half a line at the end of an ended segment hides none before it`() async throws {
        let folder = try Scratch.folder().path + "/audit"
        var bounds = AuditBounds()
        bounds.segmentBytes = 400
        let audit = try Self.open(folder, bounds)
        for name in 0..<8 { try await Self.record(audit, "n\(name)") }
        let file = try #require(try Self.files(folder).first)
        let whole = try Self.bytes(file)
        let lines = whole.split(separator: UInt8(ascii: "\n")).count
        #expect(lines > 1)
        try Self.write(whole.dropLast(20), file)
        let again = try Self.open(folder, bounds)
        let numbers = try await again.page(AuditQuery()).entries.map(\.number)
        #expect(numbers.prefix(lines - 1) == ArraySlice((1..<UInt64(lines)).map(\.self)))
        let problems = try await again.check().problems
        #expect(problems.contains { $0.contains("is not whole") }, "\(problems)")
    }

    @Test func `a folder that somebody else has put there is not used`() throws {
        let folder = try Scratch.folder().path
        let open = folder + "/open"
        try FileManager.default.createDirectory(atPath: open, withIntermediateDirectories: false)
        #expect(chmod(open, 0o777) == 0)
        let own = folder + "/own"
        #expect(mkdir(own, 0o700) == 0)
        let link = folder + "/link"
        #expect(symlink(own, link) == 0)
        for path in [open, link] {
            let error = #expect(throws: AuditError.self) { _ = try Self.open(path) }
            let text = error.map { "\($0)" } ?? ""
            #expect(text.contains("not a folder of this user"), "\(text)")
        }
        _ = try Self.open(own)
    }

    @Test func `an entry that was not whole is dropped at the next start, which says so`()
        async throws
    {
        let folder = try Scratch.folder().path + "/audit"
        try await Self.record(try Self.open(folder), "ann", "bob")
        let file = try #require(try Self.files(folder).first)
        let whole = try Self.bytes(file)
        let last = whole.split(separator: UInt8(ascii: "\n")).last?.count ?? 0
        for kept in [1, last / 2, last] {
            try Self.write(whole.dropLast(last + 1 - kept), file)
            let audit = try Self.open(folder)
            #expect(audit.remarks.count == 1)
            #expect(audit.remarks[0].contains("its \(kept) bytes were removed"))
            try await Self.record(audit, "eve")
            let entries = try await audit.page(AuditQuery()).entries
            #expect(entries.map(\.kind) == [.started, .asked, .torn, .started, .asked])
            #expect(entries[2].count == kept)
            #expect(entries.map(\.number) == [1, 2, 3, 4, 5])
            #expect(try await audit.check().problems == [])
        }
    }

    @Test func `too many and too old entries go, and what stays says so`() async throws {
        let folder = try Scratch.folder().path + "/audit"
        var bounds = AuditBounds()
        bounds.segmentBytes = 400
        bounds.bytes = 1_500
        let audit = try Self.open(folder, bounds)
        for name in 0..<40 { try await Self.record(audit, "n\(name)") }
        var files = try Self.files(folder)
        let sizes = try files.map { try Self.bytes($0).count }
        #expect(files.count > 1 && sizes.dropLast().reduce(0, +) <= bounds.bytes, "\(sizes)")
        let check = try await audit.check()
        #expect(check.problems == [] && check.first > 10, "\(check)")
        let entries = try await audit.page(AuditQuery()).entries
        #expect(entries.last { $0.kind == .dropped }?.through == check.first - 1)
        // After a restart the chain is still whole, and nobody else may remove a segment.
        #expect(try Self.open(folder, bounds).remarks == [])
        try FileManager.default.removeItem(atPath: files[0])
        let again = try Self.open(folder, bounds)
        let broken = try await again.check().problems
        #expect(broken.contains { $0.hasPrefix("No entry says") }, "\(broken)")

        let old = try Scratch.folder().path + "/audit"
        bounds = AuditBounds()
        bounds.keep = .seconds(90 * 86_400)
        try await Self.record(try Self.open(old, bounds), "ann")
        let later = Self.start + .seconds(91 * 86_400)
        let kept = try Self.open(old, bounds, at: later)
        try await Self.record(kept, "bob", at: later)
        files = try Self.files(old)
        #expect(files.count == 1)
        #expect(try await kept.check().problems == [])
        let names = try await kept.page(AuditQuery()).entries.compactMap(\.by)
        #expect(names == ["bob"])
    }

    @Test func `a page has what was asked for, and the way to the earlier ones`() async throws {
        let folder = try Scratch.folder().path + "/audit"
        var bounds = AuditBounds()
        bounds.segmentBytes = 400
        let audit = try Self.open(folder, bounds)
        for name in 0..<30 { try await Self.record(audit, name % 3 == 0 ? "ann" : "bob") }
        var query = AuditQuery()
        query.by = "ann"
        query.limit = 4
        var found: [UInt64] = []
        repeat {
            let page = try await audit.page(query)
            #expect(page.entries.count <= 4)
            found = page.entries.map(\.number) + found
            query.before = page.next
        } while query.before != nil
        // The first entry is that of the start.
        let expected = Array(stride(from: UInt64(2), to: 32, by: 3))
        #expect(found == expected)
        query = AuditQuery()
        query.since = Self.start + .seconds(1)
        #expect(try await audit.page(query).entries == [])
    }
}

/// What the server writes into the audit.
@Suite(.timeLimit(.minutes(5))) struct AuditTests {
    static func run(
        _ bounds: AuditBounds = AuditBounds(),
        _ body: @Sendable @escaping (ServedCluster, AuditLog, String) async throws -> Void
    ) async throws {
        let folder = try Scratch.folder().path + "/audit"
        let file = try Scratch.file("tokens", RoleTests.tokens, mode: 0o600)
        var api = try TestAPI.configuration(tokens: try AccessTokens(file: file))
        let start = ManualClock().now
        let audit = try AuditLog(folder: folder, bounds, version: "1", wall: { start })
        api.audit = audit
        try await ServedCluster.run(api, scheme: "http") { served in
            try await body(served, audit, folder)
        }
    }

    private static func bearer(_ name: String) -> [String: String] {
        [
            "Authorization": "Bearer \(RoleTests.token(name))",
            "Content-Type": "application/json",
        ]
    }

    @Test func `every route that changes something has its entries, and no other has`()
        async throws
    {
        try await Self.run { served, audit, _ in
            var last = try await audit.page(AuditQuery()).entries.last?.number ?? 0
            for route in HTTPServer.routes {
                // A stream has no end.
                guard !["/v1/events", "/v1/progress"].contains(route.pattern) else { continue }
                let path = AccessTests.path(route)
                let answer = try await served.raw(route.method, path, Self.bearer("root"))
                var query = AuditQuery()
                query.limit = 10
                let entries = try await audit.page(query).entries.filter { $0.number > last }
                last = entries.last?.number ?? last
                let name = "\(route.method) \(route.pattern)"
                if route.access == .signed {
                    #expect(entries.map(\.kind) == [.refused], "\(name)")
                } else if route.isAudited, answer.status != 400 || !entries.isEmpty {
                    #expect(entries.map(\.kind) == [.asked, .done], "\(name) \(answer.status)")
                    try #require(entries.count == 2)
                    #expect(entries[0].by == "root" && entries[0].from == "127.0.0.1")
                    #expect(entries[0].method == route.method && entries[0].path == path)
                    #expect(entries[1].of == entries[0].number)
                    #expect(entries[1].status == answer.status, "\(name)")
                } else {
                    // What is not read is not asked for.
                    #expect(entries.isEmpty, "\(name) \(answer.status)")
                }
            }
            #expect(try await audit.check().problems == [])
        }
    }

    @Test func `a change that cannot be recorded is not made`() async throws {
        var bounds = AuditBounds()
        bounds.segmentBytes = 1
        try await Self.run(bounds) { served, audit, folder in
            let first = try await served.client(token: RoleTests.token("ann")) { client in
                try await client.submit(Submission(graph: .diamond))
            }
            let entries = try await audit.page(AuditQuery()).entries
            #expect(entries.map(\.kind) == [.started, .asked, .done])
            #expect(entries[1].by == "ann" && entries[1].path == "/v1/graphs")
            #expect(entries[2].status == 201 && entries[2].target == "graph \(first.id)")
            try FileManager.default.removeItem(atPath: folder)
            try await served.client(token: RoleTests.token("ann")) { client in
                let error = await #expect(throws: ClientError.self) {
                    _ = try await client.submit(Submission(graph: .diamond))
                }
                #expect(error?.code == .unavailable)
                #expect(error?.message.hasSuffix("So nothing is changed.") == true)
                let graphs = try await client.graphs(GraphQuery()).graphs
                #expect(graphs.count == 1)
            }
        }
    }

    @Test func `refusals are recorded with their reason, but only so many a minute`() async throws {
        try await Self.run { served, audit, _ in
            let most = AuditLog.refusalsPerMinute
            for _ in 0..<most + 5 { _ = try await served.raw("GET", "/v1/status") }
            _ = try await served.raw("POST", "/v1/graphs/0/resume?x=secret", Self.bearer("seer"))
            _ = try await served.raw("GET", "/v1/status", Self.bearer("gone"))
            let entries = try await audit.page(AuditQuery()).entries.dropFirst()
            #expect(entries.allSatisfy { $0.kind == .refused })
            #expect(entries.count == most + 1)
            let unknown = try #require(entries.first)
            #expect(unknown.by == nil && unknown.status == 401 && unknown.path == "/v1/status")
            let named = try #require(entries.last)
            #expect(named.by == "seer" && named.status == 403)
            #expect(named.path == "/v1/graphs/0/resume")
            #expect(named.detail?.contains("needs the role “operate”") == true)
        }
        let folder = try Scratch.folder().path + "/audit"
        let clock = ManualClock()
        let audit = try AuditLog(folder: folder, keep: nil, version: "1", wall: { clock.now })
        for _ in 0..<AuditLog.refusalsPerMinute + 5 {
            try await audit.refuse(AuditEntry(.refused, at: clock.now))
        }
        clock.advance(by: .seconds(60))
        let last = try await audit.page(AuditQuery()).entries.last
        #expect(last?.kind == .refusals && last?.count == 5)
    }

    @Test func `the audit is for those who administer`() async throws {
        try await Self.run { served, _, _ in
            try await served.client(token: RoleTests.token("root")) { client in
                _ = try await client.setQueue("q", QueueChange())
                var query = AuditQuery()
                query.by = "root"
                let entries = try await client.audit(query).entries
                #expect(entries.map(\.path) == ["/v1/queues/q", nil])
                let check = try await client.checkAudit()
                #expect(check.problems == [] && check.first == 1 && check.last == 3)
                #expect(check.hash.utf8.count == 64)
            }
            try await served.client(token: RoleTests.token("operator")) { client in
                let error = await #expect(throws: ClientError.self) {
                    _ = try await client.audit(AuditQuery())
                }
                #expect(error?.code == .forbidden)
            }
        }
    }
}
