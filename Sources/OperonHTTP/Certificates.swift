import HummingbirdCore
import Logging
import NIOCore
import NIOSSL
import OperonSystem
import Synchronization

/// The certificate and the key with which the API answers, as they are now. Connections that exist
/// keep what they began with.
final class Certificates: Sendable {
    private let files: TLSFiles
    private let current: Mutex<NIOSSLContext>

    /// - Throws: an error if the files cannot be read or do not fit each other.
    init(_ files: TLSFiles) throws(HTTPServerError) {
        self.files = files
        current = Mutex(try Self.context(files))
    }

    var context: NIOSSLContext { current.withLock { $0 } }

    /// Reads the files again.
    ///
    /// - Throws: an error if they cannot be used; then the earlier ones stay.
    func reload() throws(HTTPServerError) {
        let context = try Self.context(files)
        current.withLock { $0 = context }
    }

    private static func context(_ files: TLSFiles) throws(HTTPServerError) -> NIOSSLContext {
        let key: [UInt8]
        do throws(SecretFile.Problem) {
            key = try SecretFile.read(files.key)
        } catch {
            throw HTTPServerError(error, "key", in: files.key)
        }
        func unusable(_ why: String) -> HTTPServerError {
            HTTPServerError(
                .file,
                "The certificate in \(files.certificate) and the key in \(files.key) cannot be "
                    + "used: \(SecretFile.problem(of: files.certificate) ?? why)."
            )
        }
        let tls: TLSConfiguration
        do {
            let chain = try NIOSSLCertificate.fromPEMFile(files.certificate)
            var server = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain.map { .certificate($0) },
                privateKey: .privateKey(try NIOSSLPrivateKey(bytes: key, format: .pem))
            )
            server.minimumTLSVersion = .tlsv12
            server.applicationProtocols = ["http/1.1"]
            tls = server
        } catch {
            throw unusable(TLSWords.sentence("\(error)", of: "these files"))
        }
        do {
            return try NIOSSLContext(configuration: tls)
        } catch {
            // Each of them could be read, so NIOSSL's `failedToLoad…` says that they are no pair.
            let text = "\(error)".replacing(/failedToLoad\w*/, with: "KEY_VALUES_MISMATCH")
            throw unusable(TLSWords.sentence(text, of: "these files"))
        }
    }
}

/// A connection with TLS in front of HTTP, each with the newest certificate.
struct SecuredChannel: ServerChildChannel {
    let base: HTTP1Channel
    let certificates: Certificates

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP1Channel.Value> {
        channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(
                NIOSSLServerHandler(context: certificates.context)
            )
        }.flatMap { base.setup(channel: channel, logger: logger) }
    }

    func handle(value: HTTP1Channel.Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}
