import Foundation
import OperonGraphFile
import OperonModel
import Testing

/// The commands that `operon map` makes of a template and values. scripts/check-map compares them
/// with those of GNU parallel.
@Suite struct MapTests {
    private func commands(_ words: String..., files: [String] = []) throws -> [String] {
        let values = try MapValues(words: words, files: files, isNull: false)
        let template = try CommandTemplate(values.command, sourceCount: values.sourceCount)
        return (0..<values.count).map { template.command(values[$0], number: $0 + 1) }
    }

    private func message(_ body: () throws -> [String]) -> String {
        do {
            return "no error: \(try body())"
        } catch {
            return "\(error)"
        }
    }

    @Test func `the first word is the command and the others are values`() throws {
        #expect(try commands("gzip -9", "a", "b c") == ["gzip -9 a", "gzip -9 'b c'"])
        #expect(try commands("echo", "-n", ":::", "a") == ["echo -n a"])
    }

    @Test func `every value is combined with those of the other sources`() throws {
        #expect(
            try commands("f", ":::", "a", "b", ":::", "1", "2", ":::+", "x", "y", "z")
                == ["f a 1 x", "f a 2 y", "f b 1 x", "f b 2 y"]
        )
        #expect(try commands("f", ":::", "a", ":::") == [])
    }

    @Test func `a replacement string before a mark that combines with it is replaced`() throws {
        #expect(try commands("echo {}\u{301}", ":::", "a") == ["echo a\u{301}"])
    }

    @Test func `a million rows of two sources are made as they are asked for`() throws {
        let thousand = (1...1_000).map(String.init)
        let values = try MapValues(
            words: ["f", ":::"] + thousand + [":::"] + thousand,
            files: [],
            isNull: false
        )

        #expect(values.count == 1_000_000)
        #expect(values[0] == ["1", "1"])
        #expect(values[999_999] == ["1000", "1000"])
        #expect(values[1_234] == ["2", "235"])
    }

    @Test func `more rows than a graph has operations are refused`() {
        let thousand = (1...1_000).map(String.init)
        let many = message {
            let words = ["f", ":::"] + thousand + [":::"] + thousand + [":::", "1", "2"]
            _ = try MapValues(words: words, files: [], isNull: false)
            return []
        }
        #expect(
            many == "Too many operations: 2000000, and a graph has at most 1048576"
                + " (operationsPerGraph); split the values."
        )
        let endless = message {
            let words = ["f"] + Array(repeating: [":::"] + thousand, count: 7).flatMap { $0 }
            _ = try MapValues(words: words, files: [], isNull: false)
            return []
        }
        #expect(endless.hasPrefix("Too many operations: more than can be counted"))
    }

    @Test(arguments: [
        ("{%}", "The replacement string {%} (the number of the slot) is not supported"),
        ("{= $_++ =}", "The replacement string {= … =} (Perl) is not supported"),
        ("{2}", "The command has {2}, and there is 1 source of values."),
        ("{0}", "The command has {0}, and there is 1 source of values."),
        ("{-2/}", "The command has {-2/}, and there is 1 source of values."),
        ("{99999999999999999999}", "The command has {99999999999999999999}, and there is 1"),
    ])
    func `a replacement string without a meaning is refused`(text: String, says: String) {
        #expect(message { try commands("echo \(text)", ":::", "a") }.hasPrefix(says))
    }

    @Test(arguments: ["{a,b}", "${HOME}", "{", "}", "{{}", "{/x}", "{.1}", "{-}", "awk '{print}'"])
    func `other braces belong to the command`(text: String) throws {
        let wanted = text == "{{}" ? "{a" : "\(text) a"
        #expect(try commands(text, ":::", "a") == [wanted])
    }

    @Test func `words of a command that is not quoted are not taken for values`() {
        for word in ["-9", "{}", "{.}.png", "x{}", "{%}"] {
            let told = message { try commands("echo", word, "a") }
            #expect(
                told
                    == "“\(word)” is taken for a value, because only the first word is the command:"
                    + " quote the whole command, or write ::: before the values."
            )
        }
    }

    @Test func `files of values are read to a value in each line`() throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "operon-map-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func file(_ name: String, _ bytes: [UInt8]) throws -> String {
            let url = folder.appending(path: name)
            try Data(bytes).write(to: url)
            return url.path
        }
        let lines = try file("lines", Array("a\n\nb c".utf8))
        let binary = try file("binary", [0x61, 0x0A, 0xFF, 0x0A])
        let nulls = try file("nulls", [0x61, 0x00, 0x62, 0x00])

        #expect(try commands("f", files: [lines]) == ["f a", "f ''", "f 'b c'"])
        #expect(try commands("f", "::::", lines) == ["f a", "f ''", "f 'b c'"])
        let values = try MapValues(words: ["f"], files: [nulls], isNull: true)
        #expect([values[0], values[1]] == [["a"], ["b"]])
        #expect(
            message { try commands("f", files: [binary]) }.hasSuffix("value 2 is not UTF-8 text")
        )
        #expect(
            message { try commands("f", files: [nulls]) }
                .hasSuffix("value 1 has a NUL character; do the values end with NUL (--null)?")
        )
        #expect(
            message { try commands("f", "::::", folder.path + "/absent") }
                .hasSuffix("the file cannot be read: No such file or directory")
        )
    }

    @Test func `sources that make no sense are refused`() {
        #expect(
            message { try commands("f", ":::+", "a") }
                == ":::+ takes its values together with those"
                + " of the source before it, and there is none."
        )
        #expect(message { try commands("f", "::::") } == ":::: needs the name of a file.")
        #expect(
            message { try commands("f", "::::", "-", "-") }
                == "Standard input is named as a source of values twice."
        )
    }
}
