import FoundationEssentials
import OperonModel

/// The completion of an external operation as JSON. People write the output as JSON; programs send
/// its bytes.
struct CompletionBody: Codable {
    let completion: Completion
    let attempt: AttemptID?

    private enum Key {
        static let outcome = "outcome"
        static let output = "output"
        static let payload = "payload"
        static let error = "error"
        static let reason = "reason"
        static let attempt = "attempt"
        static let all = [outcome, output, payload, error, reason, attempt]
    }

    init(_ completion: Completion, attempt: AttemptID?) {
        self.completion = completion
        self.attempt = attempt
    }

    /// Reads a client's body. The bytes of `output` are kept as they were written, so that no
    /// number loses a digit.
    init(json bytes: [UInt8]) throws(Failure) {
        let body = try JSONBytes.read(CompletionBody.self, bytes)
        attempt = body.attempt
        guard let output = JSONMembers.value(of: Key.output, in: bytes) else {
            completion = body.completion
            return
        }
        completion = .succeeded(Payload(bytes: Array(output)))
    }

    init(from decoder: any Decoder) throws {
        let fields = try StrictFields(decoder, Key.all)
        let outcome = try fields.required(String.self, Key.outcome)
        let output = try fields.optional(AnyJSON.self, Key.output)
        let payload = try fields.optional(PayloadBody.self, Key.payload)
        let error = try fields.optional(CompletionError.self, Key.error)
        let reason = try fields.optional(String.self, Key.reason)
        if let text = try fields.optional(String.self, Key.attempt) {
            guard let id = AttemptID(text) else {
                throw Self.invalid(decoder, Key.attempt, "is no attempt, such as 2.1041")
            }
            attempt = id
        } else {
            attempt = nil
        }
        let given: [(name: String, isGiven: Bool, of: String)] = [
            (Key.output, output != nil, "succeeded"), (Key.payload, payload != nil, "succeeded"),
            (Key.error, error != nil, "failed"), (Key.reason, reason != nil, "cancelled"),
        ]
        for field in given where field.isGiven && field.of != outcome {
            throw Self.invalid(decoder, field.name, "belongs to the outcome \(field.of)")
        }
        switch outcome {
        case "succeeded":
            guard output == nil || payload == nil else {
                throw Self.invalid(decoder, Key.payload, "is there beside `output`")
            }
            completion = .succeeded(payload?.payload ?? .empty)
        case "failed":
            guard let error else {
                throw Self.invalid(decoder, Key.error, "is missing: say why it failed")
            }
            completion = .failed(error.error)
        case "cancelled": completion = .cancelled(reason: reason ?? "")
        case _:
            let why = "is succeeded, failed or cancelled"
            throw Self.invalid(decoder, Key.outcome, why)
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: AnyKey.self)
        func key(_ name: String) -> AnyKey { AnyKey(stringValue: name) }
        if let attempt { try container.encode(attempt.description, forKey: key(Key.attempt)) }
        switch completion {
        case .succeeded(let payload):
            try container.encode("succeeded", forKey: key(Key.outcome))
            if !payload.isEmpty {
                try container.encode(PayloadBody(payload), forKey: key(Key.payload))
            }
        case .failed(let error):
            try container.encode("failed", forKey: key(Key.outcome))
            try container.encode(CompletionError(error), forKey: key(Key.error))
        case .cancelled(let reason):
            try container.encode("cancelled", forKey: key(Key.outcome))
            if !reason.isEmpty { try container.encode(reason, forKey: key(Key.reason)) }
        }
    }

    static func invalid(_ decoder: any Decoder, _ field: String, _ why: String) -> DecodingError {
        DecodingError.dataCorrupted(
            .init(
                codingPath: decoder.codingPath + [AnyKey(stringValue: field)],
                debugDescription: why
            )
        )
    }
}

/// Bytes of any type.
private struct PayloadBody: Codable {
    let payload: Payload

    init(_ payload: Payload) { self.payload = payload }

    init(from decoder: any Decoder) throws {
        let fields = try StrictFields(decoder, ["contentType", "base64"])
        let type = try fields.optional(String.self, "contentType") ?? Payload.json
        let bytes = try fields.required(Base64.self, "base64").bytes
        guard (1...Limits().nameBytes).contains(type.utf8.count) else {
            let why = "has 1 to \(Limits().nameBytes) bytes"
            throw CompletionBody.invalid(decoder, "contentType", why)
        }
        payload = Payload(contentType: type, bytes: bytes)
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: AnyKey.self)
        try container.encode(payload.contentType, forKey: AnyKey(stringValue: "contentType"))
        let text = Data(payload.bytes).base64EncodedString()
        try container.encode(text, forKey: AnyKey(stringValue: "base64"))
    }
}

private struct Base64: Decodable {
    let bytes: [UInt8]

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let data = Data(base64Encoded: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "is no base 64")
        }
        bytes = Array(data)
    }
}

/// Any value; it is not decoded.
private struct AnyJSON: Decodable {
    init(from decoder: any Decoder) throws {}
}

/// Why an operation failed, field by field; `code` is that of `OperationError`.
private struct CompletionError: Codable {
    let error: OperationError

    init(_ error: OperationError) { self.error = error }

    private static let names = [
        "code", "type", "message", "payload", "exitCode", "name", "bytes", "limit",
    ]

    init(from decoder: any Decoder) throws {
        let fields = try StrictFields(decoder, Self.names)
        func text(_ name: String) throws -> String { try fields.required(String.self, name) }
        func number(_ name: String) throws -> Int { try fields.required(Int.self, name) }
        let code = try fields.optional(String.self, "code") ?? "thrown"
        switch code {
        case "thrown":
            error = .thrown(
                type: try fields.optional(String.self, "type") ?? "Error",
                message: try text("message"),
                payload: try fields.optional(Base64.self, "payload")?.bytes ?? []
            )
        case "exit": error = .exit(code: try fields.required(Int32.self, "exitCode"))
        case "signal": error = .signal(name: try text("name"))
        case "timeout": error = .timeout
        case "conditionFailed": error = .conditionFailed(name: try text("name"))
        case "kindUnknown": error = .kindUnknown(try text("name"))
        case "versionUnsupported": error = .versionUnsupported(try text("name"))
        case "undecodable": error = .undecodable(try text("message"))
        case "inputTooLarge":
            error = .inputTooLarge(bytes: try number("bytes"), limit: try number("limit"))
        case "outputTooLarge":
            error = .outputTooLarge(bytes: try number("bytes"), limit: try number("limit"))
        case _: throw CompletionBody.invalid(decoder, "code", "“\(code)” is none of a completion")
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: AnyKey.self)
        func put(_ value: some Encodable, _ name: String) throws {
            try container.encode(value, forKey: AnyKey(stringValue: name))
        }
        try put(error.code, "code")
        switch error {
        case .thrown(let type, let message, let payload):
            try put(type, "type")
            try put(message, "message")
            if !payload.isEmpty { try put(Data(payload).base64EncodedString(), "payload") }
        case .exit(let code): try put(code, "exitCode")
        case .signal(let name), .conditionFailed(let name), .kindUnknown(let name),
            .versionUnsupported(let name):
            try put(name, "name")
        case .undecodable(let why): try put(why, "message")
        case .inputTooLarge(let bytes, let limit), .outputTooLarge(let bytes, let limit):
            try put(bytes, "bytes")
            try put(limit, "limit")
        case .timeout, .deadline, .workerLost: break
        }
    }
}

/// Finds the bytes of a member in a JSON object that is known to be valid.
enum JSONMembers {
    /// The bytes of a member's value; `nil` if no member has this name.
    static func value(of name: String, in bytes: [UInt8]) -> ArraySlice<UInt8>? {
        var found: ArraySlice<UInt8>?
        var depth = 0
        var key: String?
        var start: Int?
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                let end = endOfText(bytes, from: index)
                if depth == 1, start == nil {
                    let text = Array(bytes[index...end])
                    key = try? JSONBytes.decode(String.self, text)
                }
                index = end
            case UInt8(ascii: ":") where depth == 1 && start == nil: start = index + 1
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"), UInt8(ascii: ","):
                if depth == 1, let first = start {
                    if key == name { found = trimmed(bytes[first..<index]) }
                    start = nil
                }
                if bytes[index] != UInt8(ascii: ",") { depth -= 1 }
            case _: break
            }
            index += 1
        }
        return found
    }

    /// The index of the quotation mark that ends the text that begins at `start`.
    private static func endOfText(_ bytes: [UInt8], from start: Int) -> Int {
        var index = start + 1
        while index < bytes.count - 1, bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(index, bytes.count - 1)
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }
        let start = bytes.firstIndex { !isSpace($0) } ?? bytes.endIndex
        let end = bytes.lastIndex { !isSpace($0) } ?? start
        return start < bytes.endIndex ? bytes[start...end] : []
    }
}
