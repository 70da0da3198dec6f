import Glibc
package import OperonModel

/// Which names in one folder are meant: one name, or those that match a pattern with `*`, `?` and
/// `[a-z]`, as a shell and `forEach` match them. A name that begins with a dot matches only a
/// pattern that does.
package struct NamePattern: Hashable, Sendable {
    private let text: [UInt8]
    private let isPattern: Bool

    /// - Throws: `invalid` for what no name can match.
    package init(pattern: String) throws(TriggerSourceError) {
        try self.init(pattern, "the pattern", isPattern: true)
    }

    package init(name: String) throws(TriggerSourceError) {
        try self.init(name, "the name", isPattern: false)
    }

    private init(_ text: String, _ what: String, isPattern: Bool) throws(TriggerSourceError) {
        if let problem = FileSource.problem(ofName: text) {
            throw TriggerSourceError(.invalid, "\(what) “\(text)” \(problem)")
        }
        self.text = Array(text.utf8)
        self.isPattern = isPattern
    }

    /// Whether a name, in the bytes of the file system, is meant.
    func matches(_ name: [UInt8]) -> Bool {
        guard isPattern else { return name == text }
        return unsafe Self.terminated(text).withUnsafeBufferPointer { pattern in
            unsafe Self.terminated(name).withUnsafeBufferPointer { name in
                unsafe fnmatch(pattern.baseAddress!, name.baseAddress!, FNM_PERIOD) == 0
            }
        }
    }

    private static func terminated(_ bytes: [UInt8]) -> [CChar] {
        bytes.map(CChar.init(bitPattern:)) + [0]
    }
}
