/// Opaque bytes with the name of their format: an input or an output.
public struct Payload: Hashable, Sendable, Codable {
    public var contentType: String
    public var bytes: [UInt8]

    public static let json = "application/json"
    public static let empty = Payload(contentType: json, bytes: [])

    public init(contentType: String = Payload.json, bytes: [UInt8]) {
        self.contentType = contentType
        self.bytes = bytes
    }

    public var isEmpty: Bool { bytes.isEmpty }
}
