import FoundationEssentials
import NIOCore
import OperonModel
import OperonPorts

/// JSON in the form that the API writes and reads.
enum JSONBytes {
    /// JSON for people and programs: sorted keys, two spaces per level, a line end at the end.
    static func page(_ value: some Encodable) throws -> ByteBuffer {
        ByteBuffer(bytes: spread(try line(value)) + [UInt8(ascii: "\n")])
    }

    /// Puts each value of JSON without white space on a line of its own. Empty lists and objects
    /// stay on one line.
    static func spread(_ line: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(line.count * 3 / 2)
        var depth = 0
        var isInText = false
        var isEscaped = false
        func endLine() {
            out.append(UInt8(ascii: "\n"))
            for _ in 0..<depth { out += [UInt8(ascii: " "), UInt8(ascii: " ")] }
        }
        for (index, byte) in line.enumerated() {
            if isInText {
                out.append(byte)
                isInText = isEscaped || byte != UInt8(ascii: "\"")
                isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
                continue
            }
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                out.append(byte)
                // In ASCII, a closing bracket is two after its opening bracket.
                guard index + 1 < line.count, line[index + 1] != byte + 2 else { continue }
                depth += 1
                endLine()
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if index > 0, line[index - 1] != byte - 2 {
                    depth -= 1
                    endLine()
                }
                out.append(byte)
            case UInt8(ascii: ","):
                out.append(byte)
                endLine()
            case UInt8(ascii: ":"): out += [byte, UInt8(ascii: " ")]
            default:
                isInText = byte == UInt8(ascii: "\"")
                out.append(byte)
            }
        }
        return out
    }

    /// JSON on one line.
    static func line(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return PrintableJSON.escaped(Array(try encoder.encode(value)))
    }

    static func decode<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]) throws -> Value {
        try JSONDecoder().decode(type, from: Data(bytes))
    }

    /// Reads a client's body.
    /// - Throws: a refusal that names the field.
    static func read<Value: Decodable>(
        _ type: Value.Type,
        _ bytes: [UInt8]
    ) throws(Failure) -> Value {
        do {
            return try decode(type, bytes)
        } catch let error as DecodingError {
            throw refusal(error)
        } catch {
            throw .invalid("body", "it is no JSON")
        }
    }

    private static func refusal(_ error: DecodingError) -> Failure {
        func field(_ path: [any CodingKey], _ last: (any CodingKey)? = nil) -> String {
            var text = ""
            for key in path + (last.map { [$0] } ?? []) {
                if let index = key.intValue {
                    text += "[\(index)]"
                } else {
                    text += text.isEmpty ? key.stringValue : ".\(key.stringValue)"
                }
            }
            return text.isEmpty ? "body" : text
        }
        switch error {
        case .keyNotFound(let key, let context):
            return .invalid(field(context.codingPath, key), "is missing")
        case .typeMismatch(let type, let context):
            return .invalid(field(context.codingPath), "should be \(name(of: type))")
        case .valueNotFound(_, let context):
            return .invalid(field(context.codingPath), "is null, which it cannot be: leave it out")
        case .dataCorrupted(let context):
            if context.codingPath.isEmpty, context.underlyingError != nil {
                return .invalid("body", "it is no JSON")
            }
            return .invalid(field(context.codingPath), context.debugDescription)
        @unknown default:
            return .invalid("body", "it cannot be read")
        }
    }

    private static func name(of type: Any.Type) -> String {
        if type == String.self { return "a text" }
        if type == Bool.self { return "true or false" }
        if type == Double.self { return "a number" }
        if type == Int.self { return "a whole number" }
        if type == [String].self || "\(type)".hasPrefix("Array") { return "a list" }
        return "an object"
    }
}

/// A key with any name.
struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

/// The fields of an object in a body. Unknown fields are refused.
struct StrictFields {
    private let container: KeyedDecodingContainer<AnyKey>

    init(_ decoder: any Decoder, _ names: [String]) throws {
        container = try decoder.container(keyedBy: AnyKey.self)
        let unknown = container.allKeys.map(\.stringValue).filter { !names.contains($0) }
        if let first = unknown.min() {
            let known = names.isEmpty ? "none is" : names.joined(separator: ", ") + " are"
            throw DecodingError.dataCorrupted(
                .init(
                    codingPath: container.codingPath + [AnyKey(stringValue: first)],
                    debugDescription: "is not known here: \(known)"
                )
            )
        }
    }

    /// `nil` if the field is missing. It must not be `null`, which would be ambiguous.
    func optional<Value: Decodable>(_ type: Value.Type, _ name: String) throws -> Value? {
        let key = AnyKey(stringValue: name)
        return container.contains(key) ? try container.decode(type, forKey: key) : nil
    }

    func required<Value: Decodable>(_ type: Value.Type, _ name: String) throws -> Value {
        try container.decode(type, forKey: AnyKey(stringValue: name))
    }
}

// Bodies that clients send. Every field with a default may be left out.

struct CancelBody: Decodable {
    let request: CancelRequest

    init(from decoder: any Decoder) throws {
        let fields = try StrictFields(decoder, ["reason", "cascade", "wait"])
        var request = CancelRequest()
        request.reason = try fields.optional(String.self, "reason") ?? ""
        request.cascade = try fields.optional(Bool.self, "cascade") ?? false
        request.wait = try fields.optional(Double.self, "wait")
        self.request = request
    }
}

struct SuspendBody: Decodable {
    let request: SuspendRequest

    init(from decoder: any Decoder) throws {
        let fields = try StrictFields(decoder, ["reason", "until", "wait"])
        var request = SuspendRequest()
        request.reason = try fields.optional(String.self, "reason") ?? ""
        request.until = try fields.optional(TimeText.self, "until")
        request.wait = try fields.optional(Double.self, "wait")
        self.request = request
    }
}

struct RetryBody: Decodable {
    let request: RetryRequest

    init(from decoder: any Decoder) throws {
        let fields = try StrictFields(decoder, ["operations", "cancelled"])
        var request = RetryRequest()
        request.operations = try fields.optional([String].self, "operations") ?? []
        request.cancelled = try fields.optional(Bool.self, "cancelled") ?? false
        self.request = request
    }
}

struct RerunBody: Decodable {
    let request: RerunRequest

    init(from decoder: any Decoder) throws {
        let fields = try StrictFields(decoder, ["operations", "dryRun"])
        var request = RerunRequest(try fields.required([String].self, "operations"))
        request.isDryRun = try fields.optional(Bool.self, "dryRun") ?? false
        self.request = request
    }
}

struct PriorityBody: Decodable {
    let priority: QueuePriority

    init(from decoder: any Decoder) throws {
        let fields = try StrictFields(decoder, ["priority"])
        priority = try fields.required(QueuePriority.self, "priority")
    }
}

struct QueueBody: Decodable {
    let change: QueueChange

    init(from decoder: any Decoder) throws {
        let names = [
            "maxConcurrentOperationCount", "isUnlimited", "priority", "rate", "burst", "hasNoRate",
        ]
        let fields = try StrictFields(decoder, names)
        var change = QueueChange()
        change.maxConcurrentOperationCount = try fields.optional(Int.self, names[0])
        change.isUnlimited = try fields.optional(Bool.self, names[1])
        change.priority = try fields.optional(QueuePriority.self, names[2])
        change.rate = try fields.optional(String.self, names[3])
        change.burst = try fields.optional(Int.self, names[4])
        change.hasNoRate = try fields.optional(Bool.self, names[5])
        self.change = change
    }
}

struct KeyBody: Codable {
    let limit: Int
    let rate: String?
    let burst: Int?

    init(_ settings: KeySettings) {
        limit = settings.limit
        rate = settings.rate?.text
        burst = settings.rate?.burst
    }

    init(from decoder: any Decoder) throws {
        let fields = try StrictFields(decoder, ["limit", "rate", "burst"])
        limit = try fields.required(Int.self, "limit")
        rate = try fields.optional(String.self, "rate")
        burst = try fields.optional(Int.self, "burst")
    }

    func settings(of name: String) throws(ClientError) -> KeySettings {
        if rate == nil, burst != nil { throw ClientError(.invalid, "A burst needs a rate.") }
        let rate = try rate.map { text throws(ClientError) in
            try StartRate.read(text, burst: burst)
        }
        return KeySettings(name: name, limit: limit, rate: rate)
    }
}

/// Queues, keys, workers and logs as one object each, so that later versions can add fields.
struct QueuesBody: Codable { let queues: [QueueView] }
struct KeysBody: Codable { let keys: [KeyView] }
struct WorkersBody: Codable { let workers: [WorkerView] }
struct LogsBody: Codable { let logs: [LogView] }
struct GapBody: Codable {
    let first: UInt64
    let last: UInt64
}
