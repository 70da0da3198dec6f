internal import FoundationEssentials
internal import OperonModel

/// Why some bytes cannot be decoded as a type. The message is a part of a sentence.
struct PayloadError: Error, Hashable {
    let message: String
}

extension CodingUserInfoKey {
    /// The key under which an operation's `init(from:)` finds the version of its input: see
    /// ``Operation/version``.
    public static let operationVersion = CodingUserInfoKey(rawValue: "operon.version").unsafelyKnown
}

extension CodingUserInfoKey? {
    /// The initializer never fails here; it is failable because of other raw values.
    fileprivate var unsafelyKnown: CodingUserInfoKey {
        guard let self else { preconditionFailure("every text is a key") }
        return self
    }
}

extension Payload {
    /// Encodes a value as JSON. The same value gives the same bytes.
    init(encoding value: some Encodable) throws {
        self.init(bytes: Array(try Self.encoder.encode(value)))
    }

    // Created once, because that takes as long as to code a small value.

    private static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }()
    /// For inputs of version 1.
    private static let decoder = decoder(version: 1)

    private static func decoder(version: Int) -> JSONDecoder {
        let decoder = JSONDecoder()
        decoder.userInfo[.operationVersion] = version
        return decoder
    }

    /// Encodes the input of an operation, marked with its version. Version 1 has no mark, like an
    /// input from a graph file.
    init<Op: Operation>(operation: Op) throws {
        try self.init(input: operation, version: Op.version)
    }

    init(input: some Encodable, version: Int) throws {
        try self.init(encoding: input)
        contentType = Self.json(version: version)
    }

    /// Decodes a value. An empty payload is read as `{}`: a type without properties needs no input.
    func decoded<Value: Decodable>(as type: Value.Type) throws(PayloadError) -> Value {
        guard let version else {
            throw PayloadError(message: "its type is \(contentType), and not JSON")
        }
        let decoder = version == 1 ? Self.decoder : Self.decoder(version: version)
        do {
            return try decoder.decode(type, from: isEmpty ? Data("{}".utf8) : Data(bytes))
        } catch let error as DecodingError {
            throw PayloadError(message: error.sentence)
        } catch {
            throw PayloadError(message: "\(error)")
        }
    }

    /// Decodes the output of an operation. An empty payload stands for `Void`, or for `nil` if the
    /// type is an optional.
    func decoded<Output>(output type: Output.Type) throws(PayloadError) -> Output {
        if let nothing = () as? Output { return nothing }
        if isEmpty, let none = Any?.none as? Output { return none }
        guard let decodable = type as? any Decodable.Type else {
            throw PayloadError(message: "\(type) is not Codable")
        }
        guard let output = try decoded(as: decodable) as? Output else {
            throw PayloadError(message: "\(type) decodes as something else")
        }
        return output
    }

    /// Encodes the output of an operation.
    init<Output>(output: Output) throws {
        guard Output.self != Void.self else {
            self = .empty
            return
        }
        guard let encodable = output as? any Encodable else {
            throw PayloadError(message: "\(Output.self) is not Codable")
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

    /// The coding path as text, for example `pixels[3]: `.
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

    /// Drops the full stop: the text becomes a part of a longer sentence.
    private static func clause(_ sentence: String) -> String {
        sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
    }
}

extension OperationError {
    /// Returns the error that was thrown, if its type has this name and its value can be decoded as
    /// this type.
    ///
    /// Types are compared by name, without modules: if two types have the same name, the first one
    /// that can be decoded is used.
    public func thrown<Failure: Error & Decodable>(as type: Failure.Type) -> Failure? {
        guard case .thrown(let name, _, let payload) = self, name == "\(type)" else { return nil }
        return try? Payload(bytes: payload).decoded(as: type)
    }

    /// The most bytes of an error's description: two screens of text.
    private static let messageBytes = 16 << 10

    /// Creates the error for what an operation's code threw.
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
    /// The beginning of the text, in whole Unicode scalars.
    func cut(to bytes: Int) -> String {
        guard utf8.count > bytes else { return self }
        var end = utf8.index(startIndex, offsetBy: bytes)
        while end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
        return String(self[..<end])
    }
}
