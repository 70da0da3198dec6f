import OperonModel
import OperonSystem

// The frame of each page: it runs no script, and loads nothing.
extension Markup {
    mutating func beginPage(title: String) {
        raw("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n")
        raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ")
        raw("style-src 'sha256-")
        text(Self.styleHash)
        raw("'; base-uri 'none'; form-action 'none'\">\n")
        raw("<meta name=\"viewport\" content=\"width=device-width\">\n<title>")
        text(title)
        raw("</title>\n<style>")
        raw(ReportStyle.picture)
        raw(ReportStyle.page)
        raw("</style></head>\n<body>\n")
    }

    mutating func endPage() { raw("</body></html>\n") }

    /// The one style that the page may have.
    private static let styleHash: String = {
        let style = ReportStyle.picture.description + ReportStyle.page.description
        var text: [UInt8] = []
        Base64.append(SHA256.hash(of: Array(style.utf8))[...], to: &text)
        return String(decoding: text, as: UTF8.self)
    }()
}
