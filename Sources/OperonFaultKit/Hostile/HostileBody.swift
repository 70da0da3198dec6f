/// Bodies that a hostile client sends: graphs with single things wrong, and JSON of every shape.
package struct HostileBody: Sendable {
    /// Names of members that the API's document knows.
    package let members: [String]
    /// Names that must not be written into anything that changes something.
    package let spared: [String]

    package init(members: [String], spared: [String]) {
        self.members = members
        self.spared = spared
    }

    /// A text that names nothing spared.
    package func harmless(_ values: inout HostileValues) -> String {
        let text = values.text()
        return spared.contains(text) || text.hasPrefix("@") ? "hostile" : text
    }

    // MARK: - JSON

    /// - Parameter isChange: whether what it names is changed.
    package func json(
        _ values: inout HostileValues,
        isChange: Bool
    ) -> (kind: String, bytes: [UInt8]) {
        switch values.below(14) {
        case 0: return ("deep JSON", Self.deep(&values))
        case 1: return ("damaged JSON", values.damaged(object(&values, isChange: isChange)))
        case 2: return ("random body", values.bytes())
        case 3:
            let whole = object(&values, isChange: isChange)
            return ("cut JSON", Array(whole.prefix(values.below(whole.count))))
        case 4 where values.isRare(4):
            let count = values.pick([1 << 20, (2 << 20) + 1])
            return ("large JSON", Array("\"\(String(repeating: "x", count: count))\"".utf8))
        case 5:
            let text = values.pick([
                "[]", "null", "\"\"", "0", "{}{}", "{\"a\":1,\"a\":2}", "{\"\\ud800\":1}",
                "{\"wait\":1e999}", "\u{FEFF}{}", "{\"a\":\"\\u0000\"}", "{'a':1}", "{a:1}",
            ])
            return ("odd JSON", Array(text.utf8))
        default: return ("JSON with edges", object(&values, isChange: isChange))
        }
    }

    private func object(_ values: inout HostileValues, isChange: Bool) -> [UInt8] {
        var parts: [String] = []
        for _ in 0..<(1 + values.below(5)) where !members.isEmpty {
            parts.append("\"\(values.pick(members))\":\(value(&values, isChange, depth: 0))")
        }
        return Array("{\(parts.joined(separator: ","))}".utf8)
    }

    private func value(_ values: inout HostileValues, _ isChange: Bool, depth: Int) -> String {
        switch values.below(9) {
        case 0: return "null"
        case 1: return values.flag() ? "true" : "false"
        case 2, 3, 4: return values.numberText()
        case 5 where depth < 4:
            return "[\(value(&values, isChange, depth: depth + 1))]"
        case 6 where depth < 4:
            return "{\"a\":\(value(&values, isChange, depth: depth + 1))}"
        case 7:
            let texts = [
                "2026-11-23T05:00:00Z", "9999-12-31T23:59:59Z", "-1-01-01", "292277026597-01-01",
                "5m", "1e30s", "-5s", "9223372036854775807h", "high", "veryLow", "succeeded",
            ]
            return Self.quoted(values.pick(texts))
        default: return Self.quoted(isChange ? harmless(&values) : values.text())
        }
    }

    private static func deep(_ values: inout HostileValues) -> [UInt8] {
        let depth = values.pick([65, 600, 100_000, 1_000_000])
        let open = values.pick(["[", "{\"a\":"])
        let isClosed = values.flag()
        let end = open == "[" ? "]" : "}"
        let head = String(repeating: open, count: depth)
        return Array((isClosed ? head + "0" + String(repeating: end, count: depth) : head).utf8)
    }

    static func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }

    // MARK: - Graphs

    /// A graph that may well be accepted: small, and in a queue of its own.
    package func soundGraph(_ values: inout HostileValues) -> String {
        let count = 1 + values.below(3)
        let operations = (0..<count).map { number in
            "\"o\(number)\":{\"operation\":\"nobody-knows\",\"queue\":\"hostile\"}"
        }
        return "{\"name\":\"hostile\",\"operations\":{\(operations.joined(separator: ","))}}"
    }

    package func graph(
        _ values: inout HostileValues
    ) -> (kind: String, type: String, bytes: [UInt8]) {
        let json = "application/json"
        let yaml = "application/yaml"
        switch values.below(12) {
        case 0: return ("deep graph", values.pick([json, yaml]), Self.deep(&values))
        case 1: return ("damaged graph", json, values.damaged(Array(soundGraph(&values).utf8)))
        case 2: return ("random graph", values.pick([json, yaml]), values.bytes())
        case 3: return ("aliases of YAML", yaml, Array(Self.aliases(&values).utf8))
        case 4 where values.isRare(10): return ("large graph", json, largeGraph(&values))
        case 5:
            let lines = (0..<values.below(5)).map { _ in operation(&values) }
            let text = lines.joined(separator: "\n")
            return ("graph in lines", "application/jsonl", Array(text.utf8))
        case 6: return ("foreign type", values.text(), Array(soundGraph(&values).utf8))
        default: return ("graph with edges", json, Array(graphWithEdges(&values).utf8))
        }
    }

    private func graphWithEdges(_ values: inout HostileValues) -> String {
        var parts = ["\"name\":\(Self.quoted(harmless(&values)))"]
        if values.isIn(30) {
            let name = Self.quoted(harmless(&values))
            let members = ["maxConcurrentOperationCount", "isSuspended", "priority"]
            let settings = members.map { "\"\($0)\":\(value(&values, true, depth: 3))" }
            parts.append("\"queues\":{\(name):{\(settings.joined(separator: ","))}}")
        }
        if values.isIn(30) {
            let name = Self.quoted(harmless(&values))
            parts.append("\"keys\":{\(name):\(values.numberText())}")
        }
        if values.isIn(10) { parts.append("\"order\":\(value(&values, true, depth: 3))") }
        let operations = (0..<(1 + values.below(3))).map { _ in operation(&values) }
        parts.append("\"operations\":[\(operations.joined(separator: ","))]")
        return "{\(parts.joined(separator: ","))}"
    }

    /// Keys of an operation of a graph file.
    private static let keys = [
        "description", "dependencies", "priority", "timeout", "retry", "environment",
        "inheritEnvironment", "directory", "grace", "expectedDuration", "exclusive", "delay",
        "notBefore", "deadline", "qualityOfService", "input", "wait", "external",
        "inFlight",
    ]

    /// In a queue that only the hostile worker serves, whatever it does.
    private func operation(_ values: inout HostileValues) -> String {
        var parts = [
            "\"name\":\(Self.quoted(values.text()))",
            "\"queue\":\(Self.quoted(values.pick(["hostile", "hostile", "hostile-2"])))",
        ]
        if values.isIn(70) { parts.append("\"operation\":\"nobody-knows\"") }
        for _ in 0..<values.below(4) {
            parts.append("\"\(values.pick(Self.keys))\":\(value(&values, true, depth: 1))")
        }
        if values.isIn(20) {
            let members = ["limit", "delay", "factor", "maxDelay", "jitter"]
            let retry = members.map { "\"\($0)\":\(values.numberText())" }
            parts.append("\"retry\":{\(retry.joined(separator: ","))}")
        }
        if values.isIn(20) {
            let name = values.pick(["\(values.number())/\(values.number())", values.text()])
            parts.append("\"dependencies\":[\(Self.quoted(name))]")
        }
        return "{\(parts.joined(separator: ","))}"
    }

    /// Nine levels, each of which names the one before nine times.
    private static func aliases(_ values: inout HostileValues) -> String {
        var text = "a0: &a0 [x]\n"
        for level in 1...(2 + values.below(9)) {
            let before = String(repeating: "*a\(level - 1),", count: 9)
            text += "a\(level): &a\(level) [\(before)]\n"
        }
        return text + "operations: { o: { input: *a2, operation: nobody-knows } }\n"
    }

    /// More than a limit of graphs allows, in few bytes each.
    private func largeGraph(_ values: inout HostileValues) -> [UInt8] {
        let count = values.pick([10_001, 100_000])
        switch values.below(3) {
        case 0:
            let queues = (0..<count).map { "\"q\($0)\":{}" }.joined(separator: ",")
            return Array("{\"queues\":{\(queues)},\"operations\":{\"o\":{}}}".utf8)
        case 1:
            let names = String(repeating: "\"nobody\",", count: count)
            let operation = "{\"operation\":\"x\",\"dependencies\":[\(names)\"nobody\"]}"
            return Array("{\"operations\":{\"o\":\(operation)}}".utf8)
        default:
            // Each waits for the next one, and the last for the first.
            let operations = (0..<count).map { number in
                "\"o\(number)\":{\"operation\":\"x\",\"queue\":\"hostile\","
                    + "\"dependencies\":[\"o\((number + 1) % count)\"]}"
            }
            return Array("{\"operations\":{\(operations.joined(separator: ","))}}".utf8)
        }
    }
}
