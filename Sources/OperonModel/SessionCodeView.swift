/// A code with which a browser can log in once.
package struct SessionCodeView: Hashable, Sendable, Codable {
    package var code: String
    package var expiresInSeconds: Double

    package init(code: String, expiresInSeconds: Double) {
        self.code = code
        self.expiresInSeconds = expiresInSeconds
    }
}
