import OperonModel
import OperonPorts

// Routes of the audit.

extension HTTPServer {
    static let auditRoutes: [Route] = [
        Route(
            "GET",
            "/v1/audit",
            .administer,
            query: ["before", "since", "by", "limit"]
        ) { call in
            var query = AuditQuery()
            query.before = try call.number("before", Int64.self).map { UInt64($0) }
            query.since = try call.moment("since")
            query.by = call.query["by"]
            query.limit = try call.limit(query.limit)
            return .json(try await call.audit { try await $0.page(query) })
        },
        Route("GET", "/v1/audit/check", .administer) { call in
            .json(try await call.audit { try await $0.check() })
        },
    ]
}

extension Call {
    fileprivate func audit<Value>(
        _ body: (AuditLog) async throws -> Value
    ) async throws -> Value {
        guard let audit = server.configuration.audit else {
            throw ClientError(.notFound, "This coordinator keeps no audit.")
        }
        do {
            return try await body(audit)
        } catch let error as AuditError {
            throw ClientError(.unavailable, "\(error).")
        }
    }
}
