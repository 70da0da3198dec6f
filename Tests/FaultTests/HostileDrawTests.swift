import Glibc
import OperonFaultKit
import OperonModel
import OperonWire
import Testing

/// What the hostile programs draw, without anybody who hears it.
@Suite struct HostileDrawTests {
    private static func speech(seed: UInt64) -> HostileWorkerSpeech {
        var speech = HostileWorkerSpeech(
            values: HostileValues(seed: seed),
            name: "hostile",
            incarnation: 7,
            queue: "hostile"
        )
        speech.reign = 42
        speech.epoch = 3
        speech.take(
            HeldAttempt(
                attempt: AttemptID(epoch: Epoch(rawValue: 3), number: 300),
                operation: OperationID(graph: GraphID(rawValue: 12), index: 70_000)
            )
        )
        return speech
    }

    @Test func `the same seed says the same, and another one something else`() {
        func said(_ seed: UInt64) -> [[UInt8]] {
            var speech = Self.speech(seed: seed)
            return (0..<200).map { _ in speech.next().body }
        }

        #expect(said(1) == said(1))
        #expect(said(1) != said(2))
    }

    /// A generator whose messages are all refused at their first field would try nothing.
    @Test func `a hostile worker says every kind of message so that it can be read`() {
        var speech = Self.speech(seed: 1)
        var kinds: Set<String> = []
        var unreadable = 0
        for _ in 0..<3_000 {
            do throws(WireError) {
                kinds.formUnion(Self.kinds(try Wire.decodeWorker(speech.next().body).body))
            } catch {
                unreadable += 1
            }
        }

        let all = [
            "hello", "beat", "log", "progress", "tick", "fetch", "started", "finished", "returned",
            "added", "yielded", "read", "watched",
        ]
        #expect(kinds == Set(all))
        #expect(unreadable > 500)
    }

    private static func kinds(_ body: WorkerMessage) -> [String] {
        switch body {
        case .hello: ["hello"]
        case .beat: ["beat"]
        case .log: ["log"]
        case .progress: ["progress"]
        case .tick: ["tick"]
        case .fetch: ["fetch"]
        case .watched: ["watched"]
        case .events(let batch):
            batch.events.map { event in
                switch event {
                case .started: "started"
                case .finished: "finished"
                case .returned: "returned"
                case .added: "added"
                case .yielded: "yielded"
                case .read: "read"
                }
            }
        }
    }

    @Test func `a hostile worker never offers to serve a queue of others`() {
        var speech = Self.speech(seed: 2)
        var hellos = 0
        for _ in 0..<4_000 {
            guard let envelope = try? Wire.decodeWorker(speech.next().body),
                case .hello(let hello) = envelope.body
            else { continue }
            hellos += 1
            #expect(hello.queues.contains { $0.hasPrefix("hostile") })
            #expect(!hello.queues.contains("default"))
        }

        #expect(hellos > 50)
    }

    @Test func `a hostile operation asks everything that the socket knows`() throws {
        var requests = HostileRequests(
            values: HostileValues(seed: 1),
            token: "token",
            queue: "default"
        )
        var kinds: Set<String> = []
        var graphs = 0
        for _ in 0..<3_000 {
            let bytes = requests.next().bytes
            guard let length = OperationSocketFormat.length(bytes[...]), length == bytes.count - 4,
                let request = try? OperationSocketFormat.decodeRequest(Array(bytes.dropFirst(4)))
            else { continue }
            switch request.what {
            case .add(let operations):
                kinds.insert("add")
                if (try? StoreFormat.decodeGraph(operations)) != nil { graphs += 1 }
            case .wait: kinds.insert("wait")
            case .read: kinds.insert("read")
            }
        }

        #expect(kinds == ["add", "wait", "read"])
        #expect(graphs > 50)
    }

    /// A document with one address of each sort.
    private static let document = """
        {"paths": {
          "/v1/status": {"get": {}},
          "/v1/graphs": {"post": {"requestBody": {"content": {"application/yaml": {}}}}},
          "/v1/graphs/{graph}/operations/{operation}": {
            "get": {"parameters": [{"name": "wait", "in": "query"}]}},
          "/v1/queues/{queue}": {"patch": {"requestBody": {"content": {"application/json": {}}}}},
          "/v1/workers/{worker}/drain": {"post": {}}
        }, "components": {"schemas": {"A": {"properties": {"limit": {}}}}}}
        """

    private static func calls(seed: UInt64) throws -> HostileCalls {
        var values = HostileValues(seed: seed)
        values.knownNames = ["default", "w1"]
        return HostileCalls(
            values: values,
            document: try HostileDocument(openAPI: Array(document.utf8)),
            tokens: HostileCalls.Tokens(operate: "operating", read: "reading"),
            spared: ["default", "w1"]
        )
    }

    @Test func `a hostile client asks at every address of the document`() throws {
        var calls = try Self.calls(seed: 1)
        let kinds = Set((0..<3_000).map { _ in calls.next().kind })

        for address in [
            "GET /v1/status", "POST /v1/graphs", "GET /v1/graphs/{graph}/operations/{operation}",
            "PATCH /v1/queues/{queue}", "POST /v1/workers/{worker}/drain",
        ] {
            #expect(kinds.contains { $0.hasPrefix(address) }, "\(address)")
        }
        #expect(kinds.isSuperset(of: ["half a head", "random bytes", "stream", "submission"]))
    }

    @Test func `a hostile client changes nothing that is to be spared`() throws {
        var calls = try Self.calls(seed: 2)
        var changes = 0
        for _ in 0..<3_000 {
            let call = calls.next()
            let text = String(decoding: call.bytes.prefix(2_000), as: UTF8.self)
            let isChange = ["PATCH ", "POST "].contains { text.hasPrefix($0) }
            guard isChange, text.contains("Bearer operating") else { continue }
            changes += 1
            let line = text.prefix { $0 != "\r\n" }
            #expect(!line.contains("/default") && !line.contains("/w1"), "\(line)")
            #expect(!text.contains("\"default\":{") && !text.contains("\"queue\":\"default\""))
        }

        #expect(changes > 300)
    }

    /// A coordinator that stops answering is gone by the time at which somebody reads of it.
    @Test func `a diagnosis names the threads of a process and its sockets`() throws {
        let own = ProcessFacts.diagnosis(getpid())
        #expect(own.contains("thread \(getpid()) "), "\(own)")
        #expect(own.contains(", system call "), "\(own)")

        // Three connections that nobody takes tell this socket from those of other tests.
        let port = try LoopbackPort.take()
        let server = try LoopbackListener(at: port)
        let connections = try (0..<3).map { _ in
            try RawConnection(to: .tcp("127.0.0.1", UInt16(port)))
        }
        withExtendedLifetime((server, connections)) {
            let told = ProcessFacts.diagnosis(getpid())
            #expect(told.contains("1 sockets in state 0A, queues 00000000:00000003"), "\(told)")
        }
    }
}
