import Foundation
import OperonHTTP
import OperonModel
import Testing

/// The document says what the server does, and the server does what the document says.
@Suite(.timeLimit(.minutes(5))) struct DocumentTests {
    @Test func `every route is documented, and nothing else is`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let answer = try await served.raw("GET", "/v1/openapi.json")
            #expect(answer.fields["content-type"] == "application/json")
            let document = try #require(
                try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
            )
            #expect(document["openapi"] as? String == "3.1.0")
            let components = document["components"] as? [String: Any]
            let schemas = components?["schemas"] as? [String: [String: Any]]
            let properties = schemas?["Event"]?["properties"] as? [String: [String: Any]]
            let kinds = try #require(properties?["kind"]?["description"] as? String)
            #expect(
                Set(kinds.matches(of: #/`(\w+)`/#).map { String($0.1) })
                    == Set(ClusterEvent.Kind.allCases.map(\.name))
            )
            let paths = try #require(document["paths"] as? [String: [String: Any]])
            var documented: Set<String> = []
            var roles: [String: String] = [:]
            var queries: [String: Set<String>] = [:]
            var bodies: [String: Bool] = [:]
            for (path, methods) in paths {
                for (method, value) in methods where method != "parameters" {
                    guard let operation = value as? [String: Any] else { continue }
                    let key = "\(method.uppercased()) \(path)"
                    documented.insert(key)
                    roles[key] = operation["x-operon-role"] as? String
                    let parameters = operation["parameters"] as? [[String: Any]] ?? []
                    queries[key] = Set(
                        parameters.filter { $0["in"] as? String == "query" }
                            .compactMap { $0["name"] as? String }
                    )
                    let body = operation["requestBody"] as? [String: Any]
                    bodies[key] = body.map { $0["required"] as? Bool ?? false }
                }
            }
            #expect(documented == Set(HTTPServer.routes.map { "\($0.method) \($0.pattern)" }))
            for route in HTTPServer.routes {
                let key = "\(route.method) \(route.pattern)"
                #expect(roles[key] == "\(route.access)", "\(key)")
                #expect(queries[key] == Set(route.query), "\(key)")
                switch route.body {
                case .none: #expect(bodies[key] == nil, "\(key)")
                case .json(let isRequired): #expect(bodies[key] == isRequired, "\(key)")
                case .graph, .bytes: #expect(bodies[key] == true, "\(key)")
                }
            }
        }
    }
}
