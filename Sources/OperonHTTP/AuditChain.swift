import OperonModel
import OperonSystem

/// The chain of the audit: each line is `HASH JSON`, and HASH is the SHA-256 of the hash before it,
/// a space and the JSON. A value without files.
struct AuditChain {
    /// The number of the last entry; 0: there is none.
    private(set) var number: UInt64
    /// The hash of the last entry, as 64 lower-case digits.
    private(set) var hash: String
    /// Whether the hash is not known, because the entries before are gone.
    private var isUnknown = false

    /// What stands for the hash before the first entry.
    static let start = String(repeating: "0", count: hashBytes)
    static let hashBytes = 2 * SHA256.byteCount

    init(number: UInt64 = 0, hash: String = AuditChain.start) {
        self.number = number
        self.hash = hash
    }

    /// A chain whose next line is this one, whatever was before it; `nil`: nothing was before it,
    /// or it is no entry.
    init?(before line: ArraySlice<UInt8>) {
        guard let (_, json) = Self.parts(of: line), let entry = Self.entry(json), entry.number > 1
        else { return nil }
        self.init(number: entry.number - 1)
        isUnknown = true
    }

    struct Problem: Error, Hashable {
        let text: String
    }

    /// The line of the next entry, with its line end. Sets the number of the entry.
    mutating func append(_ entry: inout AuditEntry) throws -> [UInt8] {
        entry.number = number + 1
        let json = try JSONBytes.line(entry)
        hash = Self.hash(after: hash, json)
        number += 1
        return Array(hash.utf8) + [UInt8(ascii: " ")] + json + [UInt8(ascii: "\n")]
    }

    /// Checks the next line, without its line end. After a problem the chain goes on with the hash
    /// and the number that the line has, if it has them, so that each break is found once.
    mutating func check(_ line: ArraySlice<UInt8>) throws(Problem) -> AuditEntry {
        let expected = number + 1
        guard let (stated, json) = Self.parts(of: line) else {
            number += 1
            throw Problem(text: "entry \(expected) is not a hash and JSON")
        }
        let computed = isUnknown ? stated : Self.hash(after: hash, json)
        isUnknown = false
        hash = stated
        number += 1
        guard computed == stated else {
            number = Self.entry(json)?.number ?? expected
            throw Problem(text: "the hash of entry \(expected) is not that of its bytes")
        }
        guard let entry = Self.entry(json) else {
            throw Problem(text: "entry \(expected) is not one that this version knows")
        }
        guard entry.number == expected else {
            number = entry.number
            throw Problem(text: "after entry \(expected - 1) comes entry \(entry.number)")
        }
        return entry
    }

    /// The entry of a line; `nil`: it is none, or has a number that no audit reaches, after which
    /// one could not count on.
    static func entry(_ json: [UInt8]) -> AuditEntry? {
        guard let entry = try? JSONBytes.decode(AuditEntry.self, json),
            entry.number <= UInt64(Int64.max)
        else { return nil }
        return entry
    }

    /// The hash that a line states, and its JSON.
    static func parts(of line: ArraySlice<UInt8>) -> (hash: String, json: [UInt8])? {
        let isHash = line.prefix(hashBytes).allSatisfy { byte in
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
        }
        let rest = line.dropFirst(hashBytes)
        guard isHash, rest.first == UInt8(ascii: " "), rest.count > 1 else { return nil }
        return (String(decoding: line.prefix(hashBytes), as: UTF8.self), Array(rest.dropFirst()))
    }

    static func hash(after previous: String, _ json: [UInt8]) -> String {
        HexText.text(SHA256.hash(of: Array(previous.utf8) + [UInt8(ascii: " ")] + json))
    }
}
