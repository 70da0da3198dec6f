/// A kind of fault that a chaos run injects.
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

    /// What the recovery time is measured from, and what ends it.
    package var measure: String {
        switch self {
        case .workerKilled: "SIGKILL → every operation that it was running has started again"
        case .workerFrozen: "SIGSTOP → every operation that it was running has started again"
        case .workerDrained: "SIGTERM → it has exited, and what it was running has ended"
        case .workerCut: "reset → it starts an operation"
        case .workerSilent, .workerSlow: "end of the fault → it starts an operation"
        case .workerWithoutDescriptors, .workerWithoutMemory:
            "end of the limit → it, or its replacement, starts an operation"
        case .coordinatorKilled: "SIGKILL → a dependent starts"
        case .coordinatorFrozen: "SIGCONT → a dependent starts"
        case .coordinatorCut: "reset → a dependent starts"
        case .clockForward, .clockBack: "step → a dependent starts"
        case .diskFull: "room on the disk → a dependent starts"
        case .brokerKilled, .brokerWiped: "the broker takes logins → a dependent starts"
        case .memoryAlarm: "end of the alarm → a dependent starts"
        }
    }

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
