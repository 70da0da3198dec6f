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
    public let rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// The random id of one life of a worker process.
public struct Incarnation: RandomID {
    public let rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// The number of a coordinator's rule over its store, one more at each start.
public struct Epoch: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static func < (left: Epoch, right: Epoch) -> Bool { left.rawValue < right.rawValue }

    public var description: String { String(rawValue) }
}

/// A graph, numbered by its store in the order of submission.
public struct GraphID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static func < (left: GraphID, right: GraphID) -> Bool { left.rawValue < right.rawValue }

    public var description: String { String(rawValue) }
}

/// An operation: its graph, and its index in the order of that graph's submission.
public struct OperationID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    public let graph: GraphID
    public let index: UInt32

    public init(graph: GraphID, index: UInt32) {
        self.graph = graph
        self.index = index
    }

    public static func < (left: OperationID, right: OperationID) -> Bool {
        (left.graph, left.index) < (right.graph, right.index)
    }

    public var description: String { "\(graph)/\(index)" }
}

/// One try at an operation, given to one worker: never reused, never moved to another.
///
/// The number counts from 1 within its epoch, so (epoch, number) is unique within a reign even when
/// the coordinator lost the numbers it had not yet stored.
public struct AttemptID: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    public let epoch: Epoch
    public let number: UInt64

    public init(epoch: Epoch, number: UInt64) {
        self.epoch = epoch
        self.number = number
    }

    public static func < (left: AttemptID, right: AttemptID) -> Bool {
        (left.epoch, left.number) < (right.epoch, right.number)
    }

    public var description: String { "\(epoch).\(number)" }
}
