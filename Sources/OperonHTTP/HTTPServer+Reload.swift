import NIOPosix
import OperonModel
import OperonSystem
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

// Files that are read again without a restart: that of the tokens, the certificate and its key.

extension HTTPServer {
    /// How often the server looks whether a file has changed.
    package static let reloadPace = Duration.seconds(5)

    /// Whether there is a file that can be read again.
    package var canReload: Bool {
        context.configuration.tokensFile != nil || context.configuration.tls != nil
    }

    /// Reads the files again. What cannot be used stays as it was.
    ///
    /// - Returns: Sentences for the log: what was read, or why the earlier one stays.
    package func reload() async -> [String] {
        let paths = reloadedPaths
        stamps.withLock { $0.take(paths) }
        var said: [String] = []
        if let path = context.configuration.tokensFile {
            said.append(
                await readAgain("tokens in \(path)") {
                    [tokens = context.tokens] () throws(HTTPServerError) in
                    let file = try AccessTokens(file: path)
                    tokens.replaceFile(file)
                    return file.count == 1 ? "1 token" : "\(file.count) tokens"
                }
            )
        }
        if let files = context.configuration.tls {
            let certificates = certificates.withLock { $0 }
            said.append(
                await readAgain("certificate in \(files.certificate)") {
                    () throws(HTTPServerError) in
                    try certificates?.reload()
                    return "new connections get it"
                }
            )
        }
        if let audit = context.configuration.audit {
            for sentence in said {
                var entry = AuditEntry(.reloaded, at: context.wall())
                entry.detail = sentence
                // The log has the sentence, too.
                _ = try? await audit.record(entry, isSynced: false)
            }
        }
        return said
    }

    /// Reads the files again whenever one of them has changed and then stayed the same for a pace,
    /// until the task is cancelled.
    package func reloadChangedFiles(
        pace: Duration = reloadPace,
        _ say: @Sendable (String) -> Void
    ) async throws {
        let paths = reloadedPaths
        guard !paths.isEmpty else { return }
        // What was read by command before this began is what has been read.
        stamps.withLock { if $0.isEmpty { $0.take(paths) } }
        while true {
            try await Task.sleep(for: pace)
            guard stamps.withLock({ $0.hasSettled(paths) }) else { continue }
            for sentence in await reload() { say(sentence) }
        }
    }

    private var reloadedPaths: [String] {
        let tls = context.configuration.tls
        return [context.configuration.tokensFile, tls?.certificate, tls?.key].compactMap { $0 }
    }

    private func readAgain(
        _ what: String,
        _ body: @escaping @Sendable () throws(HTTPServerError) -> String
    ) async -> String {
        do {
            let result = try await NIOThreadPool.singleton.runIfActive { try body() }
            return "read the \(what) again: \(result)"
        } catch let error as HTTPServerError {
            return "keeps the earlier \(what): \(error.message)"
        } catch {
            return "keeps the earlier \(what): the program ends"
        }
    }
}

/// By what a change of files shows.
struct FileStamps {
    private struct Stamp: Hashable {
        var device: UInt64 = 0
        var file: UInt64 = 0
        var bytes: Int64 = 0
        var seconds: Int64 = 0
        var nanoseconds: Int64 = 0

        init(_ path: String) {
            var status = stat()
            guard unsafe stat(path, &status) == 0 else { return }
            device = UInt64(status.st_dev)
            file = UInt64(status.st_ino)
            bytes = Int64(status.st_size)
            // The time of the last change of any kind, which nobody can set.
            seconds = Int64(status.st_ctim.tv_sec)
            nanoseconds = Int64(status.st_ctim.tv_nsec)
        }
    }

    /// Whether nothing was read yet.
    var isEmpty: Bool { read.isEmpty }

    private var read: [Stamp] = []
    private var seen: [Stamp] = []

    /// Takes the files as they are for those that were read.
    mutating func take(_ paths: [String]) {
        read = paths.map { Stamp($0) }
        seen = read
    }

    /// Whether a file is another one than was read, and the same as at the last call.
    mutating func hasSettled(_ paths: [String]) -> Bool {
        let now = paths.map { Stamp($0) }
        defer { seen = now }
        return now != read && now == seen
    }
}
