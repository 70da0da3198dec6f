import Foundation

/// The repository that these tests were compiled from, read as text.
enum Repository {
    /// The folder with Package.swift.
    static let root: URL = {
        var url = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        for _ in 0..<3 { url.deleteLastPathComponent() }
        return url
    }()

    /// Every file that belongs to the repository: those that git tracks or would add.
    static let files: [SourceFile] = paths().compactMap { path in
        let url = root.appendingPathComponent(path)
        guard let data = try? Data(contentsOf: url) else { return nil }
        guard let text = String(data: data, encoding: .utf8) else { return nil }
        return SourceFile(path: path, text: text)
    }

    /// Swift files under a folder, those made by a generator aside.
    static func swift(under folder: String) -> [SourceFile] {
        files.filter {
            $0.path.hasPrefix(folder) && $0.path.hasSuffix(".swift")
                && !$0.path.hasSuffix(".pb.swift")
        }
    }

    private static func paths() -> [String] {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "git", "-C", root.path, "ls-files", "-z", "--cached", "--others",
            "--exclude-standard",
        ]
        let output = Pipe()
        process.standardOutput = output
        guard (try? process.run()) != nil else { return [] }
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self).split(separator: "\0").map(String.init)
    }
}

/// One file, with its lines.
struct SourceFile: Sendable {
    let path: String
    let text: String
    let lines: [Substring]
    /// What most rules read; nothing if the file is not Swift.
    let code: SwiftText

    init(path: String, text: String) {
        self.path = path
        self.text = text
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        code = SwiftText(path.hasSuffix(".swift") ? text : "")
    }

    /// `Sources/OperonCore/X.swift` → `OperonCore`.
    var target: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }
}

/// A place where a rule is broken.
struct Violation: Hashable, CustomStringConvertible, Sendable {
    let path: String
    /// From 1.
    let line: Int
    let rule: String

    init(_ path: String, _ line: Int, _ rule: String) {
        self.path = path
        self.line = line
        self.rule = rule
    }

    var description: String { "\(path):\(line): \(rule)" }
}
