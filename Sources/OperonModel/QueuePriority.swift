/// The priority of an operation among the ready operations of its queue, as in Foundation.
///
/// Priorities are strict: a steady stream of `veryHigh` operations keeps `low` ones waiting.
public enum QueuePriority: Int8, Hashable, Comparable, Sendable, Codable, CaseIterable {
    case veryLow = -8
    case low = -4
    case normal = 0
    case high = 4
    case veryHigh = 8

    /// Less urgent first.
    public static func < (left: QueuePriority, right: QueuePriority) -> Bool {
        left.rawValue < right.rawValue
    }

    /// From 0 for `veryLow` to 4 for `veryHigh`: the priority property of a dispatch message.
    public var level: UInt8 { UInt8((rawValue + 8) / 4) }

    /// The inverse of `level`; `nil` above 4.
    public init?(level: UInt8) {
        guard level <= 4 else { return nil }
        self.init(rawValue: Int8(level) * 4 - 8)
    }

    /// The name in graph files.
    public var name: String {
        switch self {
        case .veryLow: "veryLow"
        case .low: "low"
        case .normal: "normal"
        case .high: "high"
        case .veryHigh: "veryHigh"
        }
    }
}

/// How much an operation may disturb others on its machine. Commands, and code that runs in a child
/// of its worker, have their own process: for them this is the niceness of that process. For code
/// in the worker's own process it is the priority of its task, which on Linux does not change the
/// niceness of any thread.
public enum QualityOfService: UInt8, Hashable, Sendable, Codable, CaseIterable {
    case background = 0
    case utility = 1
    case `default` = 2
    case userInitiated = 3
    case userInteractive = 4

    /// The name in graph files.
    public var name: String {
        switch self {
        case .background: "background"
        case .utility: "utility"
        case .default: "default"
        case .userInitiated: "userInitiated"
        case .userInteractive: "userInteractive"
        }
    }

    /// The number that is added to the worker's niceness. Never negative: a higher priority needs a
    /// privilege that a worker should not have.
    public var niceness: Int32 {
        switch self {
        case .background: 19
        case .utility: 10
        case .default, .userInitiated, .userInteractive: 0
        }
    }
}
