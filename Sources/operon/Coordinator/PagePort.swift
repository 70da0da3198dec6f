import OperonSystem

/// The port of the last page beside a store, in a file: after a restart, an open page finds the
/// coordinator again.
struct PagePort: Sendable {
    private let path: String

    /// - Parameter store: The path of the store.
    init(besideStore store: String) { path = store + ".page" }

    /// `nil`: there was no page, or the file says nothing of use.
    var last: Int? {
        // Five digits, and the end of the line.
        guard let bytes = try? SecretFile.readOwn(path, bytesMax: 6),
            bytes.last == UInt8(ascii: "\n"),
            let port = Int(String(decoding: bytes.dropLast(), as: UTF8.self)),
            // Those below belong to services of the system.
            (1_024...65_535).contains(port)
        else { return nil }
        return port
    }

    /// Whatever is at the place is replaced, and no link followed: another user may have put it
    /// there if the folder is shared. Where the port cannot be kept, the next page has another one.
    func keep(_ port: Int) {
        guard port != last else { return }
        try? SecretFile.replace(path, with: Array("\(port)\n".utf8))
    }
}
