/// Opaque bytes with the name of their format: an input or an output.
public struct Payload: Hashable, Sendable, Codable {
    /// The MIME type of the bytes.
    public var contentType: String
    /// What is carried; never looked into.
    public var bytes: [UInt8]

    /// The type of what is not said to be anything else.
    public static let json = "application/json"
    /// No bytes at all.
    public static let empty = Payload(contentType: json, bytes: [])

    /// Wraps bytes that were encoded elsewhere.
    public init(contentType: String = Payload.json, bytes: [UInt8]) {
        self.contentType = contentType
        self.bytes = bytes
    }

    /// The type of JSON in this form: the first form says nothing.
    package static func json(version: Int) -> String {
        version == 1 ? json : "\(json); version=\(version)"
    }

    /// Which form an input has; `nil`: it is no JSON.
    package var version: Int? {
        if contentType == Self.json { return 1 }
        let prefix = "\(Self.json); version="
        return contentType.hasPrefix(prefix) ? Int(contentType.dropFirst(prefix.count)) : nil
    }

    /// Whether there are no bytes, whatever their type.
    public var isEmpty: Bool { bytes.isEmpty }
}
