import Foundation
import OperonModel
import OperonRuntime

/// A file that holds a secret in its first line, so that no process list shows the secret.
package enum SecretFile {
    /// The first line, without surrounding white space.
    ///
    /// - Throws: `Failure` for a file that cannot be read, that other users can read, or whose
    ///   first line is empty. The message calls the secret `what`.
    package static func firstLine(of path: String, what: String) throws(Failure) -> String {
        if let rights = FileRights(path), rights.tellsSecrets {
            throw Failure(
                ExitStatus.usage,
                "other users can read the \(what) in \(path) (mode \(rights.text)): "
                    + "chmod 600 \(path)"
            )
        }
        let text: String
        do {
            text = try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            let why = ((error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError)
                .flatMap { $0.domain == NSPOSIXErrorDomain ? Int32(exactly: $0.code) : nil }
                .map { unsafe String(cString: strerror($0)) }
            throw Failure(
                ExitStatus.usage,
                "\(path) cannot be read: \(why ?? "it is not UTF-8 text")"
            )
        }
        let line = text.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
        let secret = line.trimmingCharacters(in: .whitespaces)
        guard !secret.isEmpty else {
            throw Failure(ExitStatus.usage, "\(path) has no \(what) in its first line")
        }
        return secret
    }
}
