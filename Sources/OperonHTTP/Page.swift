import COperonPage
import NIOCore
import OperonSystem

/// The files of the page, which the compiler puts into the program.
enum Page {
    struct File: Sendable {
        let type: String
        let content: ByteBuffer
        /// Changes with the content.
        let tag: String

        fileprivate init(type: String, content: ByteBuffer) {
            self.type = type
            self.content = content
            let digest = SHA256.hash(of: Array(content.readableBytesView)).prefix(16)
            tag =
                "\""
                + digest.map { byte in
                    String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
                }.joined() + "\""
        }
    }

    /// By name.
    static let files: [String: File] = {
        var count = 0
        let all = unsafe UnsafeBufferPointer(start: operon_page_files(&count), count: count)
        var files: [String: File] = [:]
        for number in all.indices {
            let file = unsafe all[number]
            let bytes = unsafe UnsafeBufferPointer(start: file.bytes, count: file.count)
            files[unsafe String(cString: file.name)] = unsafe File(
                type: String(cString: file.type),
                content: ByteBuffer(bytes: bytes)
            )
        }
        return files
    }()

    /// The page runs its own scripts only, shows no other site's content, and no site can frame it.
    static let policy = """
        default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
        connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
        """

    /// What a program gets at `/`.
    static let greeting = ByteBuffer(
        string: """
            This is the API of an Operon coordinator. In a browser, this address is its page.
            /v1/openapi.json describes it. The command operon uses it: operon list --coordinator URL

            """
    )
}
