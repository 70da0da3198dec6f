import OperonModel
package import OperonSystem

extension SecretFile {
    /// The first line of a file, without surrounding white space, so that no process list shows the
    /// secret in it.
    ///
    /// - Throws: `Failure` for a file that cannot be read, that other users can read, or whose
    ///   first line is empty. The message calls the secret `what`.
    package static func firstLine(of path: String, what: String) throws(Failure) -> String {
        let bytes: [UInt8]
        do throws(Problem) {
            bytes = try read(path)
        } catch {
            throw Failure(ExitStatus.usage, error.sentence(what, in: path))
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Failure(ExitStatus.usage, "\(path) cannot be read: it is not UTF-8 text.")
        }
        let line = text.split(whereSeparator: \.isNewline).first ?? ""
        let secret = line.drop(while: \.isWhitespace)
        guard let last = secret.lastIndex(where: { !$0.isWhitespace }) else {
            throw Failure(ExitStatus.usage, "\(path) has no \(what) in its first line.")
        }
        return String(secret[...last])
    }
}
