import OperonModel
import OperonSystem
package import OperonTrust
import Synchronization

/// By what a coordinator is known to its workers, and which of them it refuses.
package struct CoordinatorTrust: Sendable {
    /// Where the keys are read again when they change; `nil`: nowhere.
    package let directory: TrustDirectory?
    /// What its files had before they were read.
    let stamp: [String]
    let keys: CoordinatorKeys
    let revoked: Set<[UInt8]>

    /// Keys that are in no file.
    package init(_ keys: CoordinatorKeys, revoked: Set<[UInt8]> = []) {
        directory = nil
        stamp = []
        self.keys = keys
        self.revoked = revoked
    }

    /// Reads the files of a directory.
    ///
    /// - Throws: `TrustError`, also if there are no keys.
    package init(_ directory: TrustDirectory) throws(TrustError) {
        self.directory = directory
        stamp = directory.stamp
        guard let keys = try directory.keys() else { throw directory.missing }
        self.keys = keys
        revoked = try directory.revoked()
    }
}

/// The seals of a coordinator. One task seals what goes to one lane and sends it, so that it is
/// sent in the order in which it was sealed.
final class CoordinatorSealBox: Sendable {
    private let seals: Mutex<CoordinatorSeals>
    let faults = FaultLog<SealFault>()

    init(_ trust: CoordinatorTrust, reign: Reign, epoch: Epoch) {
        seals = Mutex(
            CoordinatorSeals(
                keys: trust.keys,
                revoked: trust.revoked,
                reign: reign,
                epoch: epoch
            )
        )
    }

    /// What the tasks of a coordinator send.
    enum Lane: UInt8 {
        case messages, outputs
    }

    func receive(
        _ bytes: [UInt8],
        at now: WallTime
    ) throws(SealFault) -> [CoordinatorSeals.Output] {
        try seals.withLock { seals in
            Result { () throws(SealFault) in try seals.receive(bytes, at: now) }
        }.get()
    }

    func seal(_ body: [UInt8], to address: WorkerAddress, lane: Lane) -> [UInt8]? {
        seals.withLock { $0.seal(body, to: address, lane: lane.rawValue) }
    }

    func sealOwn(_ body: [UInt8], lane: UInt8) -> [UInt8] {
        seals.withLock { $0.sealOwn(body, lane: lane) }
    }

    func refusal(_ why: String, of address: WorkerAddress) -> [UInt8]? {
        seals.withLock { $0.refusal(why, of: address) }
    }

    func peers(of incarnations: [Incarnation]) -> [Incarnation: CoordinatorSeals.Peer] {
        seals.withLock { $0.peers(of: incarnations) }
    }

    var announcement: [UInt8] { seals.withLock(\.announcement) }

    func replace(_ trust: CoordinatorTrust) -> [WorkerAddress] {
        seals.withLock { $0.replace(keys: trust.keys, revoked: trust.revoked) }
    }
}
