/// A type whose cases are written by name in JSON.
public protocol NamedCase: CaseIterable, Codable {
    /// The name of the case. Stable, because it is part of file formats and of the HTTP API.
    var name: String { get }
}

extension NamedCase {
    /// The case of this name; `nil` if there is none.
    public init?(name: some StringProtocol) {
        guard let found = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = found
    }

    fileprivate init(named decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let found = Self(name: text) else {
            let names = Self.allCases.map(\.name).joined(separator: ", ")
            throw DecodingError.dataCorruptedError(
                in: container,
                debugDescription: "“\(text)” is none of \(names)"
            )
        }
        self = found
    }

    fileprivate func encode(named encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(name)
    }
}

// The synthesized coding of these types would write their raw values, which are numbers.

extension OperationState: NamedCase {
    /// The name of the case.
    public var name: String { "\(self)" }
    /// Reads a name.
    public init(from decoder: any Decoder) throws { try self.init(named: decoder) }
    /// Writes the name.
    public func encode(to encoder: any Encoder) throws { try encode(named: encoder) }
}

extension OutcomeKind: NamedCase {
    /// The name of the case.
    public var name: String { "\(self)" }
    /// Reads a name.
    public init(from decoder: any Decoder) throws { try self.init(named: decoder) }
    /// Writes the name.
    public func encode(to encoder: any Encoder) throws { try encode(named: encoder) }
}

extension QueuePriority: NamedCase {
    /// Reads a name.
    public init(from decoder: any Decoder) throws { try self.init(named: decoder) }
    /// Writes the name.
    public func encode(to encoder: any Encoder) throws { try encode(named: encoder) }
}

extension OperationOrder: NamedCase {
    /// The name of the case.
    public var name: String { "\(self)" }
    /// Reads a name.
    public init(from decoder: any Decoder) throws { try self.init(named: decoder) }
    /// Writes the name.
    public func encode(to encoder: any Encoder) throws { try encode(named: encoder) }
}

extension DependencyCondition: NamedCase {
    /// Reads a name.
    public init(from decoder: any Decoder) throws { try self.init(named: decoder) }
    /// Writes the name.
    public func encode(to encoder: any Encoder) throws { try encode(named: encoder) }
}
