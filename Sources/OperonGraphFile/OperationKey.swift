/// The keys of an operation, in the order in which they are written.
enum OperationKey: UInt8, CaseIterable {
    case name
    case description
    case forEach
    case matrix
    case run
    case command
    case operation
    case wait
    case external
    case input
    case version
    case dependencies
    case cancelSiblings
    case queue
    case priority
    case qualityOfService
    case timeout
    case retry
    case expectedDuration
    case exclusive
    case inFlight
    case delay
    case notBefore
    case deadline
    case resources
    case workers
    case enforce
    case environment
    case inheritEnvironment
    case directory
    case grace
    case memory
    case cpuTime
    case produces
    case consumes
    case skip

    /// The name of the key in the file: the name of the case.
    var name: String { Self.names[Int(rawValue)] }

    static let byName: [String: OperationKey] = Dictionary(
        uniqueKeysWithValues: allCases.map { ($0.name, $0) }
    )

    /// By raw value. Getting the name of a case by reflection is too slow for a million operations.
    static let names: [String] = allCases.map { String(describing: $0) }

    /// The keys that say what an operation does. An operation has exactly one of them.
    static let work: OperationKeys = [.run, .command, .operation, .wait, .external]

    /// The keys that apply only to processes.
    static let process: OperationKeys = [
        .environment, .inheritEnvironment, .directory, .grace, .memory, .cpuTime, .produces,
        .consumes, .skip, .enforce,
    ]

    /// The keys that are not allowed in `defaults`.
    static let individual: OperationKeys = [
        .name, .description, .forEach, .matrix, .run, .command, .operation, .wait, .external,
        .input, .version, .dependencies, .cancelSiblings, .inFlight, .produces, .consumes,
    ]
}

/// A set of keys, used for the keys that a map has.
struct OperationKeys: ExpressibleByArrayLiteral, Hashable {
    private var bits: UInt64 = 0

    init(arrayLiteral keys: OperationKey...) {
        for key in keys { insert(key) }
    }

    var isEmpty: Bool { bits == 0 }

    /// Every key.
    static var all: OperationKeys {
        var keys: OperationKeys = []
        for key in OperationKey.allCases { keys.insert(key) }
        return keys
    }

    func contains(_ key: OperationKey) -> Bool { bits & (1 << UInt64(key.rawValue)) != 0 }

    func intersection(_ other: OperationKeys) -> OperationKeys {
        var result = self
        result.bits &= other.bits
        return result
    }

    mutating func remove(_ key: OperationKey) { bits &= ~(1 << UInt64(key.rawValue)) }

    mutating func insert(_ key: OperationKey) { bits |= 1 << UInt64(key.rawValue) }
}
