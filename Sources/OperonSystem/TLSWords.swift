/// The sentences for what goes wrong with TLS. The libraries only have codes, with places in their
/// source, and no types for them.
package enum TLSWords {
    /// - Parameters:
    ///   - error: What the library says.
    ///   - peer: Whom it is about, such as “the broker”.
    package static func sentence(_ error: String, of peer: String) -> String {
        for (codes, sentence) in sentences {
            guard let code = codes.first(where: { error.contains($0) }) else { continue }
            return sentence.replacing("PEER", with: peer) + shown(code, in: error)
        }
        return "TLS with \(peer) failed" + shown("_", in: error)
    }

    /// The whole code, such as `SSLV3_ALERT_HANDSHAKE_FAILURE`: that can be looked up. What is not
    /// in capitals is none.
    private static func shown(_ part: String, in error: String) -> String {
        let codes = error.matches(of: /[A-Z][A-Z0-9]+(_[A-Z0-9]+)+/).lazy.map(\.0)
        return codes.first { $0.contains(part) }.map { " (\($0))" } ?? ""
    }

    /// The first row that matches counts.
    private static let sentences: [(codes: [String], sentence: String)] = [
        (
            ["failed to validate hostname", "failedToValidateHostname"],
            "the certificate of PEER is for another host"
        ),
        (
            ["CERTIFICATE_VERIFY_FAILED"],
            "the certificate of PEER is not valid, or signed by no authority that is trusted here"
        ),
        (["WRONG_VERSION_NUMBER", "HTTP_REQUEST"], "PEER does not speak TLS"),
        (
            ["UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION"],
            "PEER speaks no version of TLS from 1.2 on"
        ),
        (["NO_SHARED_CIPHER"], "PEER has no cipher in common with this side"),
        (
            // Nothing was said of certificates yet.
            ["HANDSHAKE_FAILURE_ON_CLIENT_HELLO"],
            "PEER has no version of TLS, or no cipher, in common with this side"
        ),
        (
            ["HANDSHAKE_FAILURE"],
            "PEER ended the TLS handshake: it may want a certificate of this side, or has no "
                + "cipher in common with it"
        ),
        (
            [
                "CERTIFICATE_REQUIRED", "UNKNOWN_CA", "ALERT_BAD_CERTIFICATE",
                "ALERT_CERTIFICATE", "ACCESS_DENIED",
            ],
            "PEER does not accept the certificate of this side"
        ),
        (["KEY_VALUES_MISMATCH"], "the key does not belong to the certificate"),
        (["NO_START_LINE", "BAD_BASE64", "failedToLoad"], "a file is not in the format PEM"),
        (
            ["EOF during handshake", "eofDuringHandshake", "uncleanShutdown"],
            "PEER broke off the TLS handshake"
        ),
    ]
}
