import NIOCore
import NIOSSL

extension BrokerAddress.TLS {
    /// What a connection is encrypted with. Reads the files.
    func context() throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        if let file = authorityFile { configuration.trustRoots = .file(file) }
        if let file = certificateFile {
            configuration.certificateChain = try NIOSSLCertificate.fromPEMFile(file)
                .map { .certificate($0) }
        }
        if let file = keyFile {
            configuration.privateKey = .privateKey(
                try NIOSSLPrivateKey(file: file, format: .pem)
            )
        }
        return try NIOSSLContext(configuration: configuration)
    }
}

extension BrokerAddress {
    /// Encrypts one socket, and checks that its other end is this host.
    func encryption(_ context: NIOSSLContext) throws -> NIOSSLClientHandler {
        // A certificate for an address is checked against the socket's.
        let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
        return try NIOSSLClientHandler(
            context: context,
            serverHostname: isAddress ? nil : host
        )
    }
}
