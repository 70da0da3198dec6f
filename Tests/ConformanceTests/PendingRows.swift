import Foundation
import Testing

/// The rows of the table that are not tests, and why; all others are.
enum PendingRows {
    /// Rows that wait for a part of the library.
    static let pending: [String: String] = [:]

    /// Rows about the dispatch queue under an operation queue. An operation queue is no object of
    /// the broker here: every worker has one queue there, whatever runs on it.
    static let without = ["F14", "G37", "G38", "G39", "G40"]

    /// Every row of the table.
    static let table = [
        "F1 F2 F3 F4 F5 F6 F7 F9 F10 F12 F13 F14 F15 F19 F21 F23 F31",
        "G1 G2 G4 G7 G10 G12 G13 G14 G15 G17 G18 G19 G21 G22 G25 G26 G28 G29 G30 G31 G33 G36",
        "G37 G38 G39 G40 G42 G43 G44 G47",
        "P1 P2 P3 P4 P7 P8 P10 P11 P15 P16 P17 P19 P20 P21 P22 P23 P26 P29 P32 P33 P34 P35 P36–37",
        "P38",
        "CA1 CA4 CA5 CA6 CA7",
        "X6 X7 X12 X13 X14 X17 X20 X29 X30 X32 X33 X34 X36",
    ].flatMap { $0.split(separator: " ").map(String.init) }
}

@Suite struct TableTests {
    /// The names of all tests of this folder that begin with that of a row.
    private static func written() throws -> [String] {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        return try files.filter { $0.hasSuffix("Rows.swift") }.flatMap { file in
            let text = try String(
                contentsOf: folder.appendingPathComponent(file),
                encoding: .utf8
            )
            return text.matches(of: #/func `((?:F|G|P|CA|X)\d+(?:–\d+)?) /#).map { String($0.1) }
        }
    }

    @Test func `every row is a test, or it is said why not`() throws {
        let written = try Self.written()
        let known = written + PendingRows.pending.keys + PendingRows.without
        #expect(known.sorted() == PendingRows.table.sorted())
    }
}
