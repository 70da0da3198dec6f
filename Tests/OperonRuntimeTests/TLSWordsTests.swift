import OperonSystem
import Testing

/// What is said of errors of TLS.
@Suite struct TLSWordsTests {
    @Test(arguments: [
        (
            "handshakeFailed(sslError([error:1000007d:CERTIFICATE_VERIFY_FAILED at x.cc:41]))",
            "the certificate of the broker is not valid, or signed by no authority that is trusted "
                + "here (CERTIFICATE_VERIFY_FAILED)"
        ),
        (
            "[error:10000410:SSL routines:OPENSSL_internal:SSLV3_ALERT_HANDSHAKE_FAILURE at y.cc]",
            "the broker ended the TLS handshake: it may want a certificate of this side, or has no "
                + "cipher in common with it (SSLV3_ALERT_HANDSHAKE_FAILURE)"
        ),
        (
            "[error:1000042e:TLSV1_ALERT_PROTOCOL_VERSION]",
            "the broker speaks no version of TLS from 1.2 on (TLSV1_ALERT_PROTOCOL_VERSION)"
        ),
        ("failedToLoadCertificate", "a file is not in the format PEM"),
        ("eofDuringHandshake", "the broker broke off the TLS handshake"),
        ("[SOMETHING_ELSE at z]", "TLS with the broker failed (SOMETHING_ELSE)"),
        ("nothing that can be looked up", "TLS with the broker failed"),
    ])
    func `a sentence, and the code that can be looked up`(error: String, sentence: String) {
        #expect(TLSWords.sentence(error, of: "the broker") == sentence)
    }
}
