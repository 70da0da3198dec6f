internal import FoundationEssentials
internal import OperonModel

/// Why some bytes are not a value of a type: a part of a sentence.
struct PayloadError: Error, Hashable {
    let message: String
}

extension Payload {
    /// As JSON. The same value gives the same bytes.
    init(encoding value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        self.init(bytes: Array(try encoder.encode(value)))
    }

    /// No bytes at all are read as `{}`: a type without properties needs no input.
    func decoded<Value: Decodable>(as type: Value.Type) throws(PayloadError) -> Value {
        guard contentType == Payload.json else {
            throw PayloadError(message: "its type is \(contentType), and not JSON")
        }
        do {
            return try JSONDecoder().decode(type, from: isEmpty ? Data("{}".utf8) : Data(bytes))
        } catch let error as DecodingError {
            throw PayloadError(message: error.sentence)
        } catch {
            throw PayloadError(message: "\(error)")
        }
    }
}

extension DecodingError {
    fileprivate var sentence: String {
        switch self {
        case .typeMismatch(_, let context), .valueNotFound(_, let context),
            .dataCorrupted(let context):
            Self.place(context.codingPath) + Self.clause(context.debugDescription)
        case .keyNotFound(let key, let context):
            Self.place(context.codingPath) + "“\(key.stringValue)” is missing"
        @unknown default: "\(self)"
        }
    }

    /// `pixels[3]: `
    private static func place(_ path: [any CodingKey]) -> String {
        guard !path.isEmpty else { return "" }
        var place = ""
        for key in path {
            if let index = key.intValue {
                place += "[\(index)]"
            } else {
                place += (place.isEmpty ? "" : ".") + key.stringValue
            }
        }
        return place + ": "
    }

    /// Its words are sentences; ours go on.
    private static func clause(_ sentence: String) -> String {
        sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
    }
}

extension OperationError {
    /// Bytes of an error's description: a screen full of it, twice.
    private static let messageBytes = 16 << 10

    /// What the code of an operation threw.
    init(thrown error: any Error) {
        let limits = Limits()
        var payload: [UInt8] = []
        if let encodable = error as? any Encodable,
            let encoded = try? Payload(encoding: encodable),
            encoded.bytes.count <= limits.payloadBytes
        {
            payload = encoded.bytes
        }
        self = .thrown(
            type: Self.cut("\(type(of: error))", to: limits.nameBytes),
            message: Self.cut("\(error)", to: Self.messageBytes),
            payload: payload
        )
    }

    /// The beginning, whole characters only.
    private static func cut(_ text: String, to bytes: Int) -> String {
        guard text.utf8.count > bytes else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: bytes)
        while end.samePosition(in: text.unicodeScalars) == nil {
            end = text.utf8.index(before: end)
        }
        return String(text[..<end])
    }
}
