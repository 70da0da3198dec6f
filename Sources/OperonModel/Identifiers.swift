/// A random 64-bit id, written as sixteen hexadecimal digits.
///
/// The model makes none itself: chance enters where the programs start.
public protocol RandomID: Hashable, Sendable, CustomStringConvertible, Codable {
    /// The sixty-four random bits. Zero is reserved for "not known yet".
    var rawValue: UInt64 { get }

    /// Wraps bits that were drawn elsewhere.
    init(rawValue: UInt64)
}

extension RandomID {
    /// Sixteen lower-case hexadecimal digits.
    public var description: String {
        let digits = String(rawValue, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Reads what `description` writes; `nil` for anything else.
    public init?(text: some StringProtocol) {
        guard text.utf8.count == 16, let value = UInt64(text, radix: 16) else { return nil }
        self.init(rawValue: value)
    }
}

/// The random id of a store: epochs compare only within one reign.
public struct Reign: RandomID {
    /// The sixty-four random bits.
    public let rawValue: UInt64

    /// Wraps bits that were drawn elsewhere.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// The random id of one life of a worker process.
public struct Incarnation: RandomID {
    /// The sixty-four random bits.
    public let rawValue: UInt64

    /// Wraps bits that were drawn elsewhere.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Stands for no worker where one is named: a coordinator, and whoever completes an operation
    /// from outside.
    package static let nobody = Incarnation(rawValue: 0)
}

/// The number of a coordinator's rule over its store, one more at each start.
public struct Epoch: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// The number.
    public let rawValue: UInt32

    /// Wraps a number.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Older first; only within one reign.
    public static func < (left: Epoch, right: Epoch) -> Bool { left.rawValue < right.rawValue }

    /// The number in decimal digits.
    public var description: String { String(rawValue) }
}

/// A graph, numbered by its store in the order of submission.
public struct GraphID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// The number.
    public let rawValue: UInt32

    /// Wraps a number.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// In the order of submission.
    public static func < (left: GraphID, right: GraphID) -> Bool { left.rawValue < right.rawValue }

    /// The number in decimal digits.
    public var description: String { String(rawValue) }
}

/// An operation: its graph, and its index in the order of that graph's submission.
public struct OperationID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// The graph it belongs to.
    public let graph: GraphID
    /// Its place in the order of submission, from 0.
    public let index: UInt32

    /// The operation at this place of a graph.
    public init(graph: GraphID, index: UInt32) {
        self.graph = graph
        self.index = index
    }

    /// Undoes `description`.
    package init?(_ text: String) {
        let numbers = text.split(separator: "/", omittingEmptySubsequences: false)
        guard numbers.count == 2, let graph = UInt32(numbers[0]), let index = UInt32(numbers[1])
        else { return nil }
        self.init(graph: GraphID(rawValue: graph), index: index)
    }

    /// At once: tables of operations are looked into at every step.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(UInt64(graph.rawValue) << 32 | UInt64(index))
    }

    /// By graph, then in the order of submission.
    public static func < (left: OperationID, right: OperationID) -> Bool {
        (left.graph, left.index) < (right.graph, right.index)
    }

    /// Graph and index, as in `3/17`.
    public var description: String { "\(graph)/\(index)" }
}

/// One try at an operation, given to one worker: never reused, never moved to another.
///
/// The number counts from 1 within its epoch, so (epoch, number) is unique within a reign even when
/// the coordinator lost the numbers it had not yet stored.
public struct AttemptID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    /// The rule under which it was granted.
    public let epoch: Epoch
    /// Counts from 1 within the epoch.
    public let number: UInt64

    /// An attempt of this epoch.
    public init(epoch: Epoch, number: UInt64) {
        self.epoch = epoch
        self.number = number
    }

    /// By its number alone: those of one epoch are together.
    public func hash(into hasher: inout Hasher) { hasher.combine(number) }

    /// Older first; only within one reign.
    public static func < (left: AttemptID, right: AttemptID) -> Bool {
        (left.epoch, left.number) < (right.epoch, right.number)
    }

    /// Epoch and number, as in `2.1041`.
    public var description: String { "\(epoch).\(number)" }

    /// What `description` wrote; `nil`: this is no attempt.
    public init?(_ description: String) {
        let parts = description.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let epoch = UInt32(parts[0]), let number = UInt64(parts[1]),
            "\(epoch).\(number)" == description
        else { return nil }
        self.init(epoch: Epoch(rawValue: epoch), number: number)
    }
}
