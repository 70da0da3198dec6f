import ArgumentParser
import FoundationEssentials
import Glibc
import OperonArguments
import OperonPorts
import OperonSystem
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
    private let descriptor: Int32
    private(set) var byteCount = 0

    init(_ path: String) throws(Failure) {
        self.path = path
        draft = "\(path).new-\(getpid())"
        // The copy contains what all clients submitted, so only its owner may read it, as with the
        // store.
        descriptor = unsafe open(draft, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failed(path, errno) }
    }

    func write(_ bytes: [UInt8]) throws(Failure) {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { bytes in
                unsafe Glibc.write(
                    descriptor,
                    bytes.baseAddress?.advanced(by: written),
                    bytes.count - written
                )
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Self.failed(path, errno) }
            written += count
        }
        byteCount += bytes.count
    }

    func publish() throws(Failure) {
        guard fsync(descriptor) == 0 else { throw Self.failed(path, errno) }
        guard unsafe link(draft, path) == 0 else {
            throw errno == EEXIST ? Backup.exists(path) : Self.failed(path, errno)
        }
        abandon()
    }

    /// Closes the file. If it has its final name already, it keeps it.
    func abandon() {
        close(descriptor)
        _ = unsafe unlink(draft)
    }

    private static func failed(_ path: String, _ code: Int32) -> Failure {
        let why = SystemWords.text(of: code)
        return Failure(ExitStatus.failed, "“\(path)” cannot be written: \(why).")
    }
}
