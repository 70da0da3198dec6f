import Foundation
import OperonModel
import OperonWire
import Testing

/// The promise to programs that were released before: what they sent can be read.
@Suite struct CorpusTests {
    @Test(arguments: Corpus.cases)
    func `a kept message is read as what it was`(_ kept: CorpusCase) throws {
        let bytes = try CorpusFiles.bytes(of: kept)

        #expect(try kept.message.decodingSameSide(bytes) == kept.message)
    }

    @Test(arguments: Corpus.cases)
    func `a message is still written as it was kept`(_ kept: CorpusCase) throws {
        let bytes = try CorpusFiles.bytes(of: kept)

        #expect(try kept.message.encoded() == bytes)
    }

    @Test func `every kept file has a case and a description, and no name is used twice`() throws {
        let names = Corpus.cases.map(\.name)
        let files = try FileManager.default
            .contentsOfDirectory(atPath: CorpusFiles.resources.path)
            .sorted()

        #expect(Set(names).count == names.count)
        #expect(files == names.flatMap { ["\($0).bin", "\($0).txt"] }.sorted())
    }

    /// Run by scripts/bless-wire-corpus. What is there already is never written again.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["OPERON_BLESS"] == "1"))
    func `new cases are kept`() throws {
        for kept in Corpus.cases {
            let file = CorpusFiles.sources.appending(path: "\(kept.name).bin")
            guard !FileManager.default.fileExists(atPath: file.path) else { continue }
            try Data(kept.message.encoded()).write(to: file)
        }
    }
}

enum CorpusFiles {
    /// As the tests see them.
    static var resources: URL {
        Bundle.module.bundleURL.appending(path: "Corpus/v1")
    }

    /// As they are committed.
    static var sources: URL {
        URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Corpus/v1")
    }

    static func bytes(of kept: CorpusCase) throws -> [UInt8] {
        try [UInt8](Data(contentsOf: resources.appending(path: "\(kept.name).bin")))
    }
}
