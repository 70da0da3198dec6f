import ArgumentParser
import FoundationEssentials
import Glibc
import OperonArguments
import OperonPorts
import OperonTerminal

struct Backup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copy the store of a running coordinator to a new file on this machine.",
        usage: "operon backup <target> [<options>]",
        discussion: """
            The coordinator keeps running. It needs disk space for a second copy beside its store. \
            The copy counts as another store: workers that hold operations of the original finish \
            those before they work for the copy. To copy a store that no coordinator has open, use \
            operon store backup.
            """
    )

    @Argument(help: "The file to create; it must not exist.", completion: .file())
    var target: String

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        // Checked before the coordinator makes the copy.
        guard !FileManager.default.fileExists(atPath: target) else { throw Self.exists(target) }
        try await ClientSession.run(coordinator) { session in
            let backup = try await session.client.backup()
            let bytes = try await Interruptible.run { [target] in
                let file = try NewFile(target)
                do {
                    for try await piece in backup.pieces {
                        try Task.checkCancellation()
                        try file.write(piece)
                    }
                    try Task.checkCancellation()
                    guard file.byteCount == backup.byteCount else {
                        throw Failure(
                            ExitStatus.unreachable,
                            "The copy is incomplete: run the command again."
                        )
                    }
                    try file.publish()
                    return file.byteCount
                } catch {
                    file.abandon()
                    throw error
                }
            }
            let made = Made(path: target, bytes: bytes)
            try session.console.tell(made, names: [target]) { $0.copied(target, made.bytes) }
        }
    }

    private struct Made: Encodable {
        let path: String
        let bytes: Int
    }

    fileprivate static func exists(_ target: String) -> Failure {
        Failure(ExitStatus.usage, "“\(target)” exists already: name a new file.")
    }
}

/// A file that gets its name only when it is complete and synced to the disk.
private final class NewFile {
    private let path: String
    private let draft: String
    private let file: UserFile
    private(set) var byteCount = 0

    init(_ path: String) throws(Failure) {
        self.path = path
        draft = "\(path).new-\(getpid())"
        do throws(UserFile.Problem) {
            // The copy contains what all clients submitted, so only its owner may read it, as with
            // the store.
            file = try UserFile(creating: draft, mode: 0o600)
        } catch {
            throw Self.failed(path, error)
        }
    }

    func write(_ bytes: [UInt8]) throws(Failure) {
        do throws(UserFile.Problem) {
            try file.write(bytes)
        } catch {
            throw Self.failed(path, error)
        }
        byteCount += bytes.count
    }

    func publish() throws(Failure) {
        do throws(UserFile.Problem) {
            try file.sync()
            try UserFile.link(draft, as: path)
        } catch {
            throw error.isExistingFile ? Backup.exists(path) : Self.failed(path, error)
        }
        abandon()
    }

    /// Removes the draft. If the file has its final name already, it keeps it.
    func abandon() { UserFile.remove(draft) }

    private static func failed(_ path: String, _ problem: UserFile.Problem) -> Failure {
        Failure(ExitStatus.failed, "“\(path)” cannot be written: \(problem).")
    }
}
