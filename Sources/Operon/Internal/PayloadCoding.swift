internal import FoundationEssentials
internal import OperonModel

/// Why some bytes are not a value of a type: a part of a sentence.
struct PayloadError: Error, Hashable {
    let message: String
}

extension CodingUserInfoKey {
    /// Where an operation's `init(from:)` finds which form its input has: see
    /// ``Operation/version``.
    public static let operationVersion = CodingUserInfoKey(rawValue: "operon.version").unsafelyKnown
}

extension CodingUserInfoKey? {
    /// The initializer fails for nothing: it is failable for the sake of other raw values.
    fileprivate var unsafelyKnown: CodingUserInfoKey {
        guard let self else { preconditionFailure("every text is a key") }
        return self
    }
}

extension Payload {
    /// As JSON. The same value gives the same bytes.
    init(encoding value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        self.init(bytes: Array(try encoder.encode(value)))
    }

    /// An operation's input, which says which form it has. The first form says nothing, as what a
    /// graph file has.
    init<Op: Operation>(operation: Op) throws {
        try self.init(input: operation, version: Op.version)
    }

    init(input: some Encodable, version: Int) throws {
        try self.init(encoding: input)
        contentType = Self.json(version: version)
    }

    /// No bytes at all are read as `{}`: a type without properties needs no input.
    func decoded<Value: Decodable>(as type: Value.Type) throws(PayloadError) -> Value {
        guard let version else {
            throw PayloadError(message: "its type is \(contentType), and not JSON")
        }
        let decoder = JSONDecoder()
        decoder.userInfo[.operationVersion] = version
        do {
            return try decoder.decode(type, from: isEmpty ? Data("{}".utf8) : Data(bytes))
        } catch let error as DecodingError {
            throw PayloadError(message: error.sentence)
        } catch {
            throw PayloadError(message: "\(error)")
        }
    }

    /// What an operation returned. Nothing stands for `Void`, and for what is optional.
    func decoded<Output>(output type: Output.Type) throws(PayloadError) -> Output {
        if let nothing = () as? Output { return nothing }
        if isEmpty, let none = Any?.none as? Output { return none }
        guard let decodable = type as? any Decodable.Type else {
            throw PayloadError(message: "\(type) is not Decodable")
        }
        guard let output = try decoded(as: decodable) as? Output else {
            throw PayloadError(message: "\(type) decodes as something else")
        }
        return output
    }

    /// What an operation returned, on its way.
    init<Output>(output: Output) throws {
        guard Output.self != Void.self else {
            self = .empty
            return
        }
        guard let encodable = output as? any Encodable else {
            throw PayloadError(message: "\(Output.self) is not Encodable")
        }
        try self.init(encoding: encodable)
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
    /// The error that was thrown, if its type has this name and its value can be read as this type.
    ///
    /// Types are told apart by their names without modules: of two types with one name, the first
    /// that can be read is taken.
    public func thrown<Failure: Error & Decodable>(as type: Failure.Type) -> Failure? {
        guard case .thrown(let name, _, let payload) = self, name == "\(type)" else { return nil }
        return try? Payload(bytes: payload).decoded(as: type)
    }

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
            type: "\(type(of: error))".cut(to: limits.nameBytes),
            message: "\(error)".cut(to: Self.messageBytes),
            payload: payload
        )
    }

}

extension String {
    /// The beginning, whole characters only.
    func cut(to bytes: Int) -> String {
        guard utf8.count > bytes else { return self }
        var end = utf8.index(startIndex, offsetBy: bytes)
        while end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
        return String(self[..<end])
    }
}
