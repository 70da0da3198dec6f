import FoundationEssentials
import OperonArguments
import OperonTerminal

/// The files with the output of each operation of `operon map`, until it is shown. They are in a
/// directory of their own in the directory for temporary files, which only this user can read.
struct MapFiles: Sendable {
    let directory: String

    /// Makes the directory.
    init(environment: [String: String]) throws(Failure) {
        let parent = environment["TMPDIR"].flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
        do {
            directory = try UserFile.makeUniqueDirectory("\(parent)/operon-map-")
        } catch {
            throw Failure(
                MapExit.other,
                "No directory for the output of operations can be made in \(parent): \(error)."
            )
        }
    }

    enum Kind: String {
        case output = "out"
        case errors = "err"
    }

    /// Writes what an operation printed, and removes its file. Returns how many bytes there were.
    ///
    /// - Throws: an error of the system, if some of it cannot be read.
    func show(_ kind: Kind, of operation: String, to output: FileOutput) throws -> Int {
        let path = path(kind, operation)
        let file: UserFile
        do throws(UserFile.Problem) {
            file = try UserFile(reading: path)
        } catch {
            // An operation that did not start has no file.
            guard error.isNoSuchFile else { throw error }
            return 0
        }
        defer { UserFile.remove(path) }
        var count = 0
        while true {
            let piece = try file.read()
            if piece.isEmpty { return count }
            output.write(piece)
            count += piece.count
        }
    }

    /// Keeps what an operation printed until it is shown; an earlier attempt's is replaced.
    ///
    /// - Throws: an error of the system, as when the disk is full.
    func store(_ bytes: ArraySlice<UInt8>, as kind: Kind, of operation: String) throws {
        try UserFile(writing: path(kind, operation)).write(bytes)
    }

    private func path(_ kind: Kind, _ operation: String) -> String {
        "\(directory)/\(operation).\(kind.rawValue)"
    }

    /// Removes the directory and what is left in it.
    func remove() { try? FileManager.default.removeItem(atPath: directory) }
}
