import COperonAPI
import HTTPTypes
import NIOCore
import OperonModel
import OperonPorts

// Routes for queues, keys, workers and the coordinator itself.

extension HTTPServer {
    static let queueRoutes: [Route] = [
        Route("GET", "/v1/queues", .view) { call in
            .json(QueuesBody(queues: try await call.client.queues()))
        },
        Route("GET", "/v1/queues/{queue}", .view, query: ["wait"]) { call in
            guard let seconds = try call.seconds("wait") else {
                return .json(try await call.client.queue(call.queue))
            }
            return .json(
                try await call.client.waitUntilEmpty(queue: call.queue, within: seconds)
            )
        },
        Route(
            "GET",
            "/v1/queues/{queue}/operations",
            .view,
            query: ["state", "outcome", "namePrefix", "after", "limit"]
        ) { call in
            var query = QueueOperationQuery()
            query.state = try call.named("state")
            query.outcome = try call.named("outcome")
            query.namePrefix = call.query["namePrefix"]
            query.after = call.query["after"]
            if let after = query.after, OperationID(after) == nil {
                throw ClientError(.invalid, "“\(after)” is not the `next` of a page.")
            }
            query.limit = try call.limit(query.limit)
            return .json(try await call.client.operations(ofQueue: call.queue, query))
        },
        Route("PATCH", "/v1/queues/{queue}", .operate, body: .options) { call in
            let change = try call.json(QueueBody.self).change
            return .json(try await call.client.setQueue(call.queue, change))
        },
        Route("POST", "/v1/queues/{queue}/reset", .operate) { call in
            .json(try await call.client.resetQueue(call.queue))
        },
        Route("POST", "/v1/queues/{queue}/suspend", .operate, body: .options) { call in
            .json(try await call.suspend(.queue(call.queue)))
        },
        Route("POST", "/v1/queues/{queue}/resume", .operate) { call in
            .json(try await call.client.resume(.queue(call.queue)))
        },
        Route("POST", "/v1/queues/{queue}/cancel", .operate, body: .options) { call in
            .json(try await call.cancel(.queue(call.queue)))
        },
    ]

    static let keyRoutes: [Route] = [
        Route("GET", "/v1/keys", .view) { call in
            .json(KeysBody(keys: try await call.client.keys()))
        },
        Route("GET", "/v1/keys/{key}", .view) { call in
            .json(try await call.client.key(call.key))
        },
        Route("PUT", "/v1/keys/{key}", .operate, body: .json(isRequired: true)) { call in
            let settings = try call.json(KeyBody.self).settings(of: call.key)
            return .json(try await call.client.setKey(settings))
        },
        Route("POST", "/v1/keys/{key}/reset", .operate) { call in
            .json(try await call.client.resetKey(call.key))
        },
    ]

    static let clusterRoutes: [Route] = [
        Route("GET", "/v1/workers", .view) { call in
            .json(WorkersBody(workers: try await call.client.workers()))
        },
        Route("POST", "/v1/workers/{worker}/drain", .operate) { call in
            .json(try await call.client.drain(worker: call.names["worker"] ?? ""))
        },
        Route("GET", "/v1/status", .view) { call in .json(try await call.client.status()) },
        Route("GET", "/v1/progress", .view) { call in
            let updates = try await call.client.statusUpdates()
            return .stream { writer in
                for try await status in updates { try await writer.send("status", status) }
            }
        },
        // Not for read access: a copy contains more than a reader may see, and it takes disk space
        // of the coordinator.
        Route("POST", "/v1/backup", .operate) { call in
            .file(try await call.client.backup(), type: "application/vnd.sqlite3")
        },
        Route("GET", "/v1/events", .view, query: ["after", "graph", "kind", "outcome"]) { call in
            // Same form as everywhere in JSON: without a sign, in 63 bits.
            var after = try call.number("after", Int64.self).map { UInt64($0) }
            // The field that a browser sends when it reconnects is newer than the URL.
            if let text = call.headers[.lastEventID], !text.isEmpty {
                guard text.utf8.allSatisfy({ (48...57).contains($0) }),
                    let number = Int64(text)
                else {
                    throw Failure.invalid("Last-Event-ID", "is the number of an event")
                }
                after = UInt64(number)
            }
            let graph = call.query["graph"]
            guard graph?.isEmpty != true else {
                throw Failure.invalid("graph", "is the name or the number of a graph")
            }
            var query = EventQuery(after: after, graph: graph)
            query.kinds = try call.kinds
            query.outcomes = try call.outcomes
            let batches = try await call.client.events(query)
            return .stream { writer in
                for try await batch in batches { try await writer.send(batch) }
            }
        },
        Route("GET", "/v1/openapi.json", .view) { _ in
            .bytes(openAPIDocument, type: "application/json")
        },
    ]

    static let healthRoutes: [Route] = [
        Route("GET", "/healthz", .open) { call in
            .health(await call.server.health.healthz(), call)
        },
        Route("GET", "/readyz", .open) { call in
            .health(await call.server.health.readyz(), call)
        },
        Route("GET", "/metrics", .view) { call in
            .bytes(
                ByteBuffer(string: await call.server.health.metrics()),
                type: "text/plain; version=0.0.4; charset=utf-8"
            )
        },
    ]

    /// All routes.
    package static let routes: [Route] =
        graphRoutes + pictureRoutes + operationRoutes + queueRoutes + keyRoutes + triggerRoutes
        + clusterRoutes + tokenRoutes + auditRoutes
        + healthRoutes + pageRoutes
}

/// The health of the coordinator, as the executable knows it.
package struct HTTPHealth: Sendable {
    /// Whether it works; if not, it should be restarted.
    package var healthz: @Sendable () async -> HealthAnswer
    /// Whether it accepts commands now.
    package var readyz: @Sendable () async -> HealthAnswer
    /// Metrics in Prometheus' text format.
    package var metrics: @Sendable () async -> String

    package init(
        healthz: @escaping @Sendable () async -> HealthAnswer,
        readyz: @escaping @Sendable () async -> HealthAnswer,
        metrics: @escaping @Sendable () async -> String
    ) {
        self.healthz = healthz
        self.readyz = readyz
        self.metrics = metrics
    }
}

package struct HealthAnswer: Hashable, Sendable {
    package var isGood: Bool
    /// `ok`, or what is wrong. Only shown to callers with read access.
    package var text: String

    package init(isGood: Bool, text: String) {
        self.isGood = isGood
        self.text = text
    }
}

extension Answer {
    fileprivate static func health(_ health: HealthAnswer, _ call: Call) -> Answer {
        let text = call.isTrusted ? health.text : health.isGood ? "ok" : "not ready"
        return .bytes(
            ByteBuffer(string: text + "\n"),
            type: "text/plain; charset=utf-8",
            status: health.isGood ? 200 : 503
        )
    }
}

extension HTTPField.Name {
    /// The number of the last event that the reader of a stream has seen.
    static let lastEventID = HTTPField.Name("Last-Event-ID") ?? .eTag
}

/// The OpenAPI document. The compiler puts it into the program, so that an installed program needs
/// no file beside it.
private let openAPIDocument: ByteBuffer = {
    var count = 0
    let first = unsafe operon_api_document(&count)
    return unsafe ByteBuffer(bytes: UnsafeBufferPointer(start: first, count: count))
}()
