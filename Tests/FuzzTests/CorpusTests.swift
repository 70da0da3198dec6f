import Foundation
import FuzzTargets
import OperonModel
import Testing

/// The inputs with which fuzzing begins. Each of them reaches something that no other one reaches.
@Suite struct CorpusTests {
    private static let folder = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().appendingPathComponent("Corpora")

    /// One input on each line, in base 64.
    private static func inputs(of target: String) throws -> [[UInt8]] {
        let file = folder.appendingPathComponent("\(target).txt")
        let lines = try Data(contentsOf: file).split(separator: UInt8(ascii: "\n"))
        return try lines.map { try #require(Base64.decode(Array($0)[...])) }
    }

    @Test(arguments: FuzzTarget.all.map(\.name))
    func `kept inputs break no rule`(name: String) async throws {
        let target = try #require(FuzzTarget.named(name))
        let inputs = try Self.inputs(of: name)

        // Fewer would not be worth a start.
        #expect(inputs.count >= 10)
        for input in inputs {
            #expect(input.count <= target.bytesMax)
            do {
                try await target.run(input)
            } catch {
                var text: [UInt8] = []
                Base64.append(input[...], to: &text)
                Issue.record("\(String(decoding: text, as: UTF8.self)): \(error)")
            }
        }
    }

    @Test func `every target keeps inputs, and no others are kept`() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(files.sorted() == FuzzTarget.all.map { $0.name + ".txt" }.sorted())
    }
}
