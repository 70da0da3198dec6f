import Foundation
import Testing

/// What the compiler says to code that is written for Foundation's classes.
@Suite struct FoundationIdiomTests {
    private static let idioms: [(code: String, says: String)] = [
        ("queue.maxConcurrentOperationCount = 4", "setMaxConcurrentOperationCount(_:)"),
        ("queue.isSuspended = true", "try await suspend(reason:)"),
        ("queue.addOperation { print(1) }", "use try await addLocal { context in … }"),
        ("handle.completionBlock = { print(1) }", "the block takes the outcome"),
        ("handle.queuePriority = .high", "use try await setQueuePriority(_:)"),
        (
            "_ = queue.operations.first?.isFinished",
            "try await operations gives summaries"
        ),
        ("_ = OperationQueue.main", "use the main actor"),
        ("queue.addOperation(Opaque())", "the output of an operation must be Codable, or Void"),
        ("queue.addOperations([Opaque()])", "the outputs of operations must be Codable, or Void"),
    ]

    private static let opaque = """
        struct Box {}
        struct Opaque: Operation {
            func main(_ context: OperationContext) async throws -> Box { Box() }
        }
        """

    /// What works is found before what only teaches.
    private static let working = """
        import Operon

        func use(_ queue: OperationQueue, _ handle: AnyOperationHandle) async throws {
            handle.completionBlock = { outcome in print(outcome) }
            handle.completionBlock = nil
            _ = handle.completionBlock
            _ = try await queue.maxConcurrentOperationCount
            _ = try await queue.isSuspended
            _ = try await handle.queuePriority
            try await queue.addOperation(handle)
            _ = try await queue.addOperation(Length(), after: [handle]).value + 1
            try await queue.addOperation(Silence())
            _ = try await queue.addOperations([Length()]).count
            try await queue.addOperations([Silence()])
            try await queue.addOperations([handle])
        }

        struct Length: Operation {
            func main(_ context: OperationContext) async throws -> Int { 1 }
        }
        struct Silence: Operation {
            func main(_ context: OperationContext) async throws {}
        }
        """

    /// The arguments that find the modules that this test was built with, those in C included.
    private static var modules: [String] {
        get throws {
            let program = try FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/self/exe"
            )
            let built = URL(filePath: program).deletingLastPathComponent()
            let scratch = built.deletingLastPathComponent().deletingLastPathComponent()
            let repository = URL(filePath: #filePath).deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent()
            let folders = [
                built, scratch.appending(path: "checkouts"), repository.appending(path: "Sources"),
            ]
            let maps = folders.flatMap { folder in
                let files = FileManager.default.enumerator(atPath: folder.path)
                let names = (files?.compactMap { $0 as? String } ?? [])
                // Those of Swift modules, for C, are in folders of their own.
                return names.filter { $0.hasSuffix("/module.modulemap") }
                    .filter { folder != built || $0.split(separator: "/").count == 2 }
                    .map { folder.appending(path: $0).path }
            }
            return ["-I", built.appending(path: "Modules").path]
                + maps.flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] }
        }
    }

    private static func compile(_ text: String) throws -> (code: Int32, said: String) {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "idioms-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "idioms.swift")
        try Data(text.utf8).write(to: file)
        let compiler = Process()
        compiler.executableURL = URL(filePath: "/usr/bin/env")
        compiler.arguments =
            ["swiftc", "-typecheck", "-swift-version", "6"] + (try modules) + [file.path]
        let pipe = Pipe()
        compiler.standardError = pipe
        compiler.standardOutput = pipe
        try compiler.run()
        let said = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        compiler.waitUntilExit()
        return (compiler.terminationStatus, said)
    }

    @Test func `the compiler says what to write instead`() throws {
        let functions = Self.idioms.enumerated().map { number, idiom in
            """
            func use\(number)(_ queue: OperationQueue, _ handle: AnyOperationHandle) {
                \(idiom.code)
            }
            """
        }
        let text = (["import Operon", Self.opaque] + functions).joined(separator: "\n")
        let (code, said) = try Self.compile(text)
        #expect(code != 0)
        for (code, says) in Self.idioms {
            #expect(said.contains(says), "\(code): \(said)")
        }
        #expect(!said.contains("failed to produce diagnostic"), "\(said)")
    }

    @Test func `what works here is not concerned`() throws {
        let (code, said) = try Self.compile(Self.working)
        #expect(code == 0, "\(said)")
    }
}
