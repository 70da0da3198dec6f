import Foundation

/// One address of the API, as its own document tells it.
package struct HostileRoute: Hashable, Sendable {
    package var method: String
    /// `/v1/graphs/{graph}`.
    package var path: String
    package var query: [String]
    package var takesGraph: Bool
    package var takesBody: Bool

    /// Whether asking changes something.
    package var isChange: Bool { method != "GET" }
}

/// What a client learns from the API's document before it begins.
package struct HostileDocument: Sendable {
    package var routes: [HostileRoute] = []
    /// Names of members of every object.
    package var members: [String] = []

    /// - Throws: `CommandFailure` if it is no document of an API.
    package init(openAPI: [UInt8]) throws {
        guard let root = try JSONSerialization.jsonObject(with: Data(openAPI)) as? [String: Any],
            let paths = root["paths"] as? [String: [String: Any]]
        else { throw CommandFailure("the API's document has no paths") }
        let methods = ["get", "put", "post", "delete", "patch"]
        for path in paths.keys.sorted() {
            let shared = paths[path]?["parameters"]
            for method in methods {
                guard let operation = paths[path]?[method] as? [String: Any] else { continue }
                let body = operation["requestBody"] as? [String: Any]
                let content = body?["content"] as? [String: Any]
                routes.append(
                    HostileRoute(
                        method: method.uppercased(),
                        path: path,
                        query: Self.query(shared) + Self.query(operation["parameters"]),
                        takesGraph: content?["application/yaml"] != nil,
                        takesBody: body != nil
                    )
                )
            }
        }
        var found: Set<String> = []
        Self.collect(root, into: &found)
        members = found.sorted()
    }

    private static func query(_ parameters: Any?) -> [String] {
        let list = parameters as? [[String: Any]] ?? []
        return list.filter { $0["in"] as? String == "query" }.compactMap { $0["name"] as? String }
    }

    private static func collect(_ value: Any, into found: inout Set<String>) {
        if let object = value as? [String: Any] {
            if let properties = object["properties"] as? [String: Any] {
                found.formUnion(properties.keys)
            }
            for name in object.keys.sorted() { collect(object[name] ?? 0, into: &found) }
        } else if let list = value as? [Any] {
            for element in list { collect(element, into: &found) }
        }
    }
}
