import NIOCore
import NIOSSL
import OperonModel
import OperonSystem

/// A private key that other users can read.
private struct ReadableKey: Error, CustomStringConvertible {
    let path: String

    var description: String { "others can read the key in \(path): chmod 600 \(path)" }
}

extension BrokerAddress.TLS {
    /// The TLS context of a connection. Reads the files.
    func context() throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        if let file = authorityFile { configuration.trustRoots = .file(file) }
        if let file = certificateFile {
            configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(file)
                .map { .certificate($0) }
        }
        if let file = keyFile {
            guard FileRights(file)?.tellsSecrets != true else { throw ReadableKey(path: file) }
            configuration.privateKey = .privateKey(
                try NIOSSLPrivateKey(file: file, format: .pem)
            )
        }
        return try NIOSSLContext(configuration: configuration)
    }
}

extension BrokerAddress {
    /// The handler that encrypts one socket and checks that its other end is this host.
    func encryption(_ context: NIOSSLContext) throws -> NIOSSLClientHandler {
        // If the host is an address, NIO checks the certificate against the address of the socket.
        let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
        return try NIOSSLClientHandler(
            context: context,
            serverHostname: isAddress ? nil : host
        )
    }
}
