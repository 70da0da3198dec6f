/// The order in which ready operations of one queue are taken, as in Foundation.
///
/// It is strict: a steady stream of `veryHigh` keeps `low` waiting.
public enum QueuePriority: Int8, Hashable, Comparable, Sendable, Codable, CaseIterable {
    case veryLow = -8
    case low = -4
    case normal = 0
    case high = 4
    case veryHigh = 8

    /// By urgency.
    public static func < (left: QueuePriority, right: QueuePriority) -> Bool {
        left.rawValue < right.rawValue
    }

    /// 0 for `veryLow` to 4 for `veryHigh`: the priority property of a dispatch message.
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

/// How much an operation may get in the way of others on its machine: the niceness of its process,
/// if it has one, as commands have, and code that runs in a child of its worker. Code that runs in
/// its worker's own process has the priority of its task, which on Linux makes no thread nicer.
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

    /// What is added to the niceness of the worker. Never negative: raising needs a privilege that
    /// a worker should not have.
    public var niceness: Int32 {
        switch self {
        case .background: 19
        case .utility: 10
        case .default, .userInitiated, .userInteractive: 0
        }
    }
}
