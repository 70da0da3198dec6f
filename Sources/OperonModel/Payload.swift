/// Opaque bytes with the name of their format: an input or an output.
public struct Payload: Hashable, Sendable, Codable {
    /// The MIME type of the bytes.
    public var contentType: String
    /// The content. Operon never interprets it.
    public var bytes: [UInt8]

    /// The default content type.
    public static let json = "application/json"
    /// A payload of zero bytes.
    public static let empty = Payload(contentType: json, bytes: [])

    /// Wraps bytes that were encoded elsewhere.
    public init(contentType: String = Payload.json, bytes: [UInt8]) {
        self.contentType = contentType
        self.bytes = bytes
    }

    /// The content type of JSON in this version; version 1 is not mentioned.
    package static func json(version: Int) -> String {
        version == 1 ? json : "\(json); version=\(version)"
    }

    /// The version of an input in JSON; `nil`: the input is not JSON.
    package var version: Int? {
        if contentType == Self.json { return 1 }
        let prefix = "\(Self.json); version="
        return contentType.hasPrefix(prefix) ? Int(contentType.dropFirst(prefix.count)) : nil
    }

    /// Whether there are no bytes, whatever the content type.
    public var isEmpty: Bool { bytes.isEmpty }
}
