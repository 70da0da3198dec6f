import COpenSSL

/// The system's libcrypto as this process uses it.
enum LibCrypto {
    /// Sets libcrypto up before its first use; everything that calls it begins with this.
    ///
    /// By itself, libcrypto frees what it has when the process exits. A thread that ends at that
    /// moment then frees the same memory: the process is killed, after all its work was done
    /// (OPENSSL_INIT_NO_ATEXIT in OPENSSL_init_crypto(3)). The system frees it anyway.
    static func prepare() { precondition(isPrepared, "libcrypto cannot be used") }

    private static let isPrepared =
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1
}
