import NIOCore
import NIOSSL
import OperonSystem

/// A file that cannot be read, or a private key that other users can read.
private struct UnusableFile: Error, CustomStringConvertible {
    let description: String
}

extension BrokerAddress.TLS {
    /// The TLS context of a connection. Reads the files.
    func context() throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        for file in [authorityFile, certificateFile].compactMap({ $0 }) {
            guard let why = SecretFile.problem(of: file) else { continue }
            throw UnusableFile(description: "the certificates in \(file) cannot be read: \(why)")
        }
        if let file = authorityFile { configuration.trustRoots = .file(file) }
        if let file = certificateFile {
            configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(file)
                .map { .certificate($0) }
        }
        if let file = keyFile {
            let key: [UInt8]
            do throws(SecretFile.Problem) {
                key = try SecretFile.read(file)
            } catch {
                throw UnusableFile(description: error.text("key", in: file))
            }
            configuration.privateKey = .privateKey(try NIOSSLPrivateKey(bytes: key, format: .pem))
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
