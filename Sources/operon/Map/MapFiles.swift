import Foundation
import OperonArguments
import OperonTerminal

/// The files with the output of each operation of `operon map`, until it is shown. They are in a
/// directory of their own in the directory for temporary files, which only this user can read.
struct MapFiles: Sendable {
    let directory: String

    private static let pieceBytes = 1 << 16

    /// Makes the directory.
    init(environment: [String: String]) throws(Failure) {
        let parent = environment["TMPDIR"].flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
        directory = "\(parent)/operon-map-\(UUID().uuidString)"
        do {
            try FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw Failure(
                MapExit.other,
                "no directory for the output of operations can be made in \(parent): "
                    + error.localizedDescription
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
        let url = URL(fileURLWithPath: "\(directory)/\(operation).\(kind.rawValue)")
        let file: FileHandle
        do {
            file = try FileHandle(forReadingFrom: url)
        } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
            // An operation that did not start has no file.
            return 0
        }
        defer {
            try? file.close()
            try? FileManager.default.removeItem(at: url)
        }
        var count = 0
        while let piece = try file.read(upToCount: Self.pieceBytes), !piece.isEmpty {
            output.write(Array(piece))
            count += piece.count
        }
        return count
    }

    /// Keeps what an operation printed until it is shown; an earlier attempt's is replaced.
    ///
    /// - Throws: an error of the system, as when the disk is full.
    func store(_ bytes: ArraySlice<UInt8>, as kind: Kind, of operation: String) throws {
        try Data(bytes).write(
            to: URL(fileURLWithPath: "\(directory)/\(operation).\(kind.rawValue)")
        )
    }

    /// Removes the directory and what is left in it.
    func remove() { try? FileManager.default.removeItem(atPath: directory) }
}
