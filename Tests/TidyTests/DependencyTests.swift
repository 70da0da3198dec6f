import Foundation
import Testing

/// `Package.versions` has what a build is made of; `scripts/dependencies check` compares it with
/// what is resolved.
@Suite struct DependencyTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func text(_ name: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(name), encoding: .utf8)
    }

    private static func numbers(_ version: some StringProtocol) -> [Int] {
        version.split(separator: ".").compactMap { Int($0) }
    }

    @Test func `every package that the manifest names has a version that it allows`() throws {
        var versions: [String: [Int]] = [:]
        for line in try Self.text("Package.versions").split(separator: "\n")
        where !line.hasPrefix("#") {
            let words = line.split(separator: " ")
            try #require(words.count == 3, "\(line)")
            #expect(words[2].hasPrefix("https://github.com/"))
            let version = Self.numbers(words[1])
            #expect(version.count == 3 && versions[String(words[2])] == nil, "\(line)")
            versions[String(words[2])] = version
        }
        // `url:` and `from:` stand on one line, or on lines of their own.
        let entry = /url: "([^"]+)",\s+from: "([^"]+)"/
        let manifest = try Self.text("Package.swift").matches(of: entry)
        #expect(manifest.count > 10)
        for match in manifest {
            let url = String(match.output.1)
            let version = try #require(versions[url], "\(url) is not in Package.versions")
            let oldest = Self.numbers(match.output.2)
            #expect(version[0] == oldest[0] && !version.lexicographicallyPrecedes(oldest), "\(url)")
        }
    }

    @Test func `a package and an image are made of just these versions, with their notices`() throws
    {
        let package = try Self.text("scripts/package")
        #expect(package.contains("scripts/dependencies check"))
        #expect(package.contains("scripts/dependencies notices"))
        #expect(package.contains("scripts/dependencies sbom"))
        let image = try Self.text("deploy/Dockerfile")
        #expect(image.contains("scripts/dependencies pin"))
        #expect(image.contains("COPY --from=build /out/NOTICES"))
        #expect(try Self.text("scripts/check").contains("scripts/dependencies check"))
    }
}

/// What prepares a deployment, where no tool is needed to try it.
@Suite struct DeployTests {
    @Test func `secrets are for their owner only, and stay when they are made again`() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("operon-passwords-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let script = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("deploy/passwords").path
        let commands = """
            umask 022; mkdir -m 777 old; "$1" old; cp -rp old new; chmod 666 new/*; "$1" new
            diff -r old new; stat -c %a old new old/* new/* | sort -u
            cat old/*.password old/client.token old/health.token
            """
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-euc", commands, "sh", script]
        process.currentDirectoryURL = folder
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        #expect(lines.prefix(2) == ["600", "700"])
        let secrets = lines.dropFirst(2)
        #expect(secrets.count == 4 && Set(secrets).count == 4)
        #expect(secrets.allSatisfy { $0.wholeMatch(of: /[0-9a-f]{48}/) != nil })
    }
}
