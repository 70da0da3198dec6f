/// A code with which a browser can log in once.
package struct SessionCodeView: Hashable, Sendable, Codable {
    package var code: String
    package var expiresInSeconds: Double
    /// The address of the page, if it differs from that of the coordinator.
    package var page: String?

    package init(code: String, expiresInSeconds: Double, page: String? = nil) {
        self.code = code
        self.expiresInSeconds = expiresInSeconds
        self.page = page
    }
}
