/// A random 64-bit id, written as sixteen hexadecimal digits.
///
/// The model generates none itself: the programs supply the randomness when they start.
public protocol RandomID: Hashable, Sendable, CustomStringConvertible, Codable {
    /// The 64 random bits. Zero is reserved for “not known yet”.
    var rawValue: UInt64 { get }

    /// Wraps bits that were generated elsewhere.
    init(rawValue: UInt64)
}

extension RandomID {
    /// Sixteen lower-case hexadecimal digits.
    public var description: String {
        let digits = String(rawValue, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Parses the format of `description`; `nil` for any other text.
    public init?(text: some StringProtocol) {
        guard text.utf8.count == 16, let value = UInt64(text, radix: 16) else { return nil }
        self.init(rawValue: value)
    }
}

/// The random id of a store. Epochs are comparable only within one reign.
public struct Reign: RandomID {
    /// The 64 random bits.
    public let rawValue: UInt64

    /// Wraps bits that were generated elsewhere.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// The random id of one run of a worker process.
public struct Incarnation: RandomID {
    /// The 64 random bits.
    public let rawValue: UInt64

    /// Wraps bits that were generated elsewhere.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Stands for the absence of a worker: used for a coordinator, and for an external party that
    /// completes an operation.
    package static let nobody = Incarnation(rawValue: 0)
}

/// The number of a coordinator's start on its store. Each start raises it by one.
public struct Epoch: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// The number.
    public let rawValue: UInt32

    /// Wraps a number.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Older epochs first; valid only within one reign.
    public static func < (left: Epoch, right: Epoch) -> Bool { left.rawValue < right.rawValue }

    /// The number in decimal digits.
    public var description: String { String(rawValue) }
}

/// The number of a graph. The store numbers graphs in the order of submission.
public struct GraphID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// The number.
    public let rawValue: UInt32

    /// Wraps a number.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Orders graphs by submission.
    public static func < (left: GraphID, right: GraphID) -> Bool { left.rawValue < right.rawValue }

    /// The number in decimal digits.
    public var description: String { String(rawValue) }
}

/// Identifies an operation: its graph, and its index in the order of submission to that graph.
public struct OperationID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// The graph of the operation.
    public let graph: GraphID
    /// The index in the order of submission, from 0.
    public let index: UInt32

    /// Creates the id of the operation with this index in a graph.
    public init(graph: GraphID, index: UInt32) {
        self.graph = graph
        self.index = index
    }

    /// Parses the format of `description`; `nil` for any other text.
    package init?(_ text: String) {
        let numbers = text.split(separator: "/", omittingEmptySubsequences: false)
        guard numbers.count == 2, let graph = UInt32(numbers[0]), let index = UInt32(numbers[1])
        else { return nil }
        self.init(graph: GraphID(rawValue: graph), index: index)
    }

    /// Hashes both numbers in one step, because tables of operations are searched all the time.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(UInt64(graph.rawValue) << 32 | UInt64(index))
    }

    /// Orders by graph, then by submission.
    public static func < (left: OperationID, right: OperationID) -> Bool {
        (left.graph, left.index) < (right.graph, right.index)
    }

    /// Graph and index, as in `3/17`.
    public var description: String { "\(graph)/\(index)" }
}

/// One attempt to run an operation, given to one worker. It is never reused and never moved to
/// another worker.
///
/// The number counts from 1 within its epoch, so (epoch, number) is unique within a reign even if
/// the coordinator lost numbers that it had not stored yet.
public struct AttemptID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// The epoch in which the attempt was granted.
    public let epoch: Epoch
    /// Counts from 1 within the epoch.
    public let number: UInt64

    /// Creates the id of an attempt of this epoch.
    public init(epoch: Epoch, number: UInt64) {
        self.epoch = epoch
        self.number = number
    }

    /// Hashes only the number: attempts of one epoch are kept together.
    public func hash(into hasher: inout Hasher) { hasher.combine(number) }

    /// Older attempts first; valid only within one reign.
    public static func < (left: AttemptID, right: AttemptID) -> Bool {
        (left.epoch, left.number) < (right.epoch, right.number)
    }

    /// Epoch and number, as in `2.1041`.
    public var description: String { "\(epoch).\(number)" }

    /// Parses the format of `description`; `nil` for any other text.
    public init?(_ description: String) {
        let parts = description.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let epoch = UInt32(parts[0]), let number = UInt64(parts[1]),
            "\(epoch).\(number)" == description
        else { return nil }
        self.init(epoch: Epoch(rawValue: epoch), number: number)
    }
}
