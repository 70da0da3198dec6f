import OperonModel
import OperonPorts
import OperonSystem
package import OperonTrust
import Synchronization

/// The seals of a worker. One task seals what goes to one lane and sends it, so that it is sent in
/// the order in which it was sealed.
package final class WorkerSealBox: Sendable {
    private let seals: Mutex<WorkerSeals>
    let faults = FaultLog<SealFault>()
    /// Keeps what the coordinator has accepted.
    let keep: @Sendable (WorkerMembership) -> Void

    package init(
        _ identity: WorkerTrust,
        keep: @escaping @Sendable (WorkerMembership) -> Void
    ) {
        seals = Mutex(WorkerSeals(identity))
        self.keep = keep
    }

    /// What the tasks of a worker send.
    enum Lane: UInt8 {
        case events, beats, logs, progress, watches

        /// How it reaches the coordinator.
        var way: WorkerLane { self == .beats ? .beats : .events }
    }

    func connected(_ connection: UInt32) { seals.withLock { $0.connected(connection) } }

    func disconnected() { seals.withLock { $0.disconnected() } }

    /// Whether this is the connection that it has.
    func isOf(_ connection: UInt32) -> Bool {
        seals.withLock { $0.connection == connection }
    }

    func seal(_ body: [UInt8], lane: Lane) -> [UInt8]? {
        seals.withLock { $0.seal(body, lane: lane.rawValue) }
    }

    func receive(_ bytes: [UInt8]) throws(SealFault) -> [WorkerSeals.Output] {
        try seals.withLock { seals in
            Result { () throws(SealFault) in try seals.receive(bytes) }
        }.get()
    }
}
