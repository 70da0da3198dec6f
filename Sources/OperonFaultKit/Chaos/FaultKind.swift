/// A kind of fault that a chaos run injects. docs/RELIABILITY.md says from when to when the
/// recovery from each is measured.
package enum FaultKind: String, CaseIterable, Hashable, Sendable {
    case workerKilled = "worker killed"
    case workerFrozen = "worker frozen"
    case workerDrained = "worker drained"
    case workerCut = "worker's link cut"
    case workerSilent = "worker's link silent in one direction"
    case workerSlow = "worker's link slow"
    case workerWithoutDescriptors = "worker without file descriptors"
    case workerWithoutMemory = "worker without memory"
    case coordinatorKilled = "coordinator killed"
    case coordinatorFrozen = "coordinator frozen"
    case coordinatorCut = "coordinator's link cut"
    case clockForward = "coordinator's clock set forward"
    case clockBack = "coordinator's clock set back"
    case diskFull = "store's disk full"
    case brokerKilled = "broker killed"
    case brokerWiped = "broker killed, its disk lost"
    case memoryAlarm = "broker's memory alarm"

    /// The longest recovery that 99 of 100 faults may take; `nil`: only `recoveryMax` applies.
    package var limit: Duration? {
        switch self {
        case .workerKilled, .workerFrozen: .seconds(6 + 2)
        case .coordinatorKilled: .seconds(3)
        case .brokerKilled, .brokerWiped: .seconds(5)
        default: nil
        }
    }

    /// A cluster that takes longer than this has not recovered.
    package static let recoveryMax = Duration.seconds(90)
}
