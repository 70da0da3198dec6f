/// The sentences for what goes wrong with TLS. The libraries only have codes, with places in their
/// source, and no types for them.
package enum TLSWords {
    /// - Parameters:
    ///   - error: What the library says.
    ///   - peer: Whom it is about, such as “the broker”.
    package static func sentence(_ error: String, of peer: String) -> String {
        for (codes, sentence) in sentences where codes.contains(where: { error.contains($0) }) {
            let code = codes[0]
            let shown = code.contains(" ") ? "" : " (\(code))"
            return sentence.replacing("PEER", with: peer) + shown
        }
        // The code is what can be looked up.
        let code = error.firstMatch(of: /[A-Z][A-Z0-9]+(_[A-Z0-9]+)+/).map { " (\($0.0))" }
        return "TLS with \(peer) failed\(code ?? "")"
    }

    /// The first code of a row that matches counts.
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
        (["NO_SHARED_CIPHER", "HANDSHAKE_FAILURE"], "PEER has no cipher in common with this side"),
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
