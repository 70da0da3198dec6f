/// A function that takes any bytes, for a fuzzer that chooses them.
package struct FuzzTarget: Sendable {
    /// A function throws `BrokenRule` if a rule does not hold; that the process lives on is another
    /// rule.
    package enum Function: Sendable {
        case now(@Sendable ([UInt8]) throws -> Void)
        case later(@Sendable ([UInt8]) async throws -> Void)
    }

    /// The name of its folder of inputs.
    package let name: String
    /// The most bytes of an input that are useful.
    package let bytesMax: Int
    package let function: Function

    init(_ name: String, bytesMax: Int, _ function: @escaping @Sendable ([UInt8]) throws -> Void) {
        self.name = name
        self.bytesMax = bytesMax
        self.function = .now(function)
    }

    init(
        _ name: String,
        bytesMax: Int,
        _ function: @escaping @Sendable ([UInt8]) async throws -> Void
    ) {
        self.name = name
        self.bytesMax = bytesMax
        self.function = .later(function)
    }

    package func run(_ bytes: [UInt8]) async throws {
        switch function {
        case .now(let function): try function(bytes)
        case .later(let function): try await function(bytes)
        }
    }
}

/// What an input has shown to be wrong, as a sentence.
package struct BrokenRule: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}

/// - Throws: `BrokenRule` with this sentence, unless the condition holds.
func require(_ condition: Bool, _ rule: @autoclosure () -> String) throws(BrokenRule) {
    if !condition { throw BrokenRule(rule()) }
}

/// Takes an input apart. After the end there are zeros and empty pieces.
struct InputReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// Two bytes with the length, the low one first, then as many bytes as there are of it.
    mutating func piece() -> [UInt8] {
        let count = Int(byte()) | Int(byte()) << 8
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func remainder() -> [UInt8] {
        defer { rest = [] }
        return Array(rest)
    }
}
