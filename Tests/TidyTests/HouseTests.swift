import Foundation
import Testing

/// Scripts and documents: that they are there, can be run, and name what exists.
@Suite struct HouseTests {
    static let scripts = Repository.files.filter {
        ($0.path.hasPrefix("scripts/") && !$0.path.hasPrefix("scripts/lib/"))
            || $0.path == ".ci/run"
    }

    static let documents = Repository.files.filter { $0.path.hasSuffix(".md") }

    @Test func `scripts can be run and say what they do`() {
        #expect(Self.scripts.contains { $0.path == "scripts/check" })
        for script in Self.scripts where script.path.split(separator: ".").count == 1 {
            let path = Repository.root.appendingPathComponent(script.path).path
            #expect(FileManager.default.isExecutableFile(atPath: path), "\(script.path)")
            #expect(script.headerViolations == [], "\(script.path)")
        }
    }

    @Test(arguments: [
        "README.md", "LICENSE", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile",
        "docker-compose.yml", "docs/ARCHITECTURE.md", "docs/DEPLOY.md", "docs/STATES.md",
        "docs/PROTOCOL.md",
    ])
    func `the house is complete`(path: String) {
        let file = Repository.files.first { $0.path == path }
        #expect(file.map { $0.text.count > 200 } == true)
    }

    @Test func `documents name what exists`() {
        #expect(Self.documents.flatMap { $0.missingPaths(exists: Self.exists) } == [])
    }

    static func exists(_ path: String) -> Bool {
        FileManager.default.fileExists(
            atPath: Repository.root.appendingPathComponent(path).standardizedFileURL.path
        )
    }

    // MARK: - The rules find what they are for

    @Test(arguments: [
        ("#!/bin/bash\n# Does it.\nset -e\n", true), ("#!/bin/bash\nset -e\n", false),
        ("# Does it.\n", false), ("#!/usr/bin/env bash\n#\n# Does it.\n", true),
        ("#!/usr/bin/env python3\n\"\"\"Does it.\"\"\"\n", true),
    ])
    func `a script without a header is found`(text: String, isGood: Bool) {
        let script = SourceFile(path: "scripts/x", text: text)
        #expect(script.headerViolations.isEmpty == isGood)
    }

    @Test(arguments: [
        ("see `scripts/gone`", ["scripts/gone"]), ("run scripts/gone.", ["scripts/gone"]),
        ("[text](docs/GONE.md#part)", ["docs/GONE.md"]), ("[up](../GONE.md)", ["../GONE.md"]),
        ("[web](https://example.org/docs/GONE.md)", []), ("`scripts/check`", []),
        ("[here](#part) and [there](docs/STATES.md#worker)", []),
        ("`Sources/OperonModel/Gone.swift`", ["Sources/OperonModel/Gone.swift"]),
        ("`Sources/OperonModel/Limits.swift`", []),
    ])
    func `a path that is not there is found`(text: String, missing: [String]) {
        let file = SourceFile(path: "X.md", text: text)
        let found = file.missingPaths(exists: Self.exists).map { $0.rule }
        #expect(found == missing.map { "\($0) does not exist" })
    }
}

extension SourceFile {
    /// A script starts with its interpreter and a comment.
    fileprivate var headerViolations: [Violation] {
        guard lines.first?.hasPrefix("#!") == true else {
            return [Violation(path, 1, "no interpreter")]
        }
        let second = lines.dropFirst().first { $0 != "#" } ?? ""
        let isComment = second.hasPrefix("# ") || second.hasPrefix("\"\"\"")
        return isComment ? [] : [Violation(path, 2, "no comment that says what it does")]
    }

    /// Paths in a document that are not in the repository: the targets of links, relative to the
    /// document, and everything that starts like one of our folders, relative to the top.
    fileprivate func missingPaths(exists: (String) -> Bool) -> [Violation] {
        var violations: [Violation] = []
        let folder = path.split(separator: "/").dropLast().map { $0 + "/" }.joined()
        for (index, line) in lines.enumerated() {
            let text = String(line)
            guard text.contains("/") || text.contains("](") else { continue }
            var bare = text
            for match in text.matches(of: /\]\(([^)#\s]*)(#[^)]*)?\)/) {
                bare = bare.replacingOccurrences(of: String(match.0), with: "]")
                let target = String(match.1)
                if target.isEmpty || target.contains("://") { continue }
                if !exists(folder + target) {
                    violations.append(Violation(path, index + 1, "\(target) does not exist"))
                }
            }
            bare = bare.replacing(/[a-z]+:\/\/\S+/, with: "")
            let pattern =
                /(?:^|[\s`(“])((?:scripts|docs|Sources|Tests|Examples|deploy)\/[\w.+\/-]+)/
            for match in bare.matches(of: pattern) {
                var target = String(match.1)
                // What a run of an example writes.
                if target.contains("/out/") { continue }
                while target.hasSuffix(".") || target.hasSuffix("/") { target.removeLast() }
                if !exists(target) {
                    violations.append(Violation(path, index + 1, "\(target) does not exist"))
                }
            }
        }
        return violations
    }
}
