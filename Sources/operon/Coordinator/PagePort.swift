/// The port of the last page beside a store, in a file: after a restart, an open page finds the
/// coordinator again.
struct PagePort: Sendable {
    private let path: String

    /// - Parameter store: The path of the store.
    init(besideStore store: String) { path = store + ".page" }

    /// `nil`: there was no page, or the file says nothing of use.
    var last: Int? {
        let digitsMax = 5
        guard let bytes = try? UserFile(reading: path).readAll(bytesMax: digitsMax + 1),
            bytes.last == UInt8(ascii: "\n"),
            let port = Int(String(decoding: bytes.dropLast(), as: UTF8.self)),
            // Those below belong to services of the system.
            (1_024...65_535).contains(port)
        else { return nil }
        return port
    }

    /// Where it cannot be kept, the next page has another port.
    func keep(_ port: Int) { try? UserFile.write(Array("\(port)\n".utf8), to: path) }
}
