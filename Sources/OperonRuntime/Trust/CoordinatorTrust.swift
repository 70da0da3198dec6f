import NIOConcurrencyHelpers
import OperonModel
package import OperonTrust

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
    private let seals: NIOLockedValueBox<CoordinatorSeals>
    let faults = SealFaultLog()

    init(_ trust: CoordinatorTrust, reign: Reign, epoch: Epoch) {
        seals = NIOLockedValueBox(
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
        try seals.withLockedValue { seals in
            Result { () throws(SealFault) in try seals.receive(bytes, at: now) }
        }.get()
    }

    func seal(_ body: [UInt8], to address: WorkerAddress, lane: Lane) -> [UInt8]? {
        seals.withLockedValue { $0.seal(body, to: address, lane: lane.rawValue) }
    }

    func sealOwn(_ body: [UInt8], lane: UInt8) -> [UInt8] {
        seals.withLockedValue { $0.sealOwn(body, lane: lane) }
    }

    func refusal(_ why: String, of address: WorkerAddress) -> [UInt8]? {
        seals.withLockedValue { $0.refusal(why, of: address) }
    }

    func peers(of incarnations: [Incarnation]) -> [Incarnation: CoordinatorSeals.Peer] {
        seals.withLockedValue { $0.peers(of: incarnations) }
    }

    var announcement: [UInt8] { seals.withLockedValue(\.announcement) }

    func replace(_ trust: CoordinatorTrust) -> [WorkerAddress] {
        seals.withLockedValue { $0.replace(keys: trust.keys, revoked: trust.revoked) }
    }
}

/// What was refused. Whoever can send messages can send very many, so that only some are logged.
final class SealFaultLog: Sendable {
    private struct State {
        var since: [SealFault: Int] = [:]
        var loggedAt: [SealFault: Timestamp] = [:]
    }

    private let state = NIOLockedValueBox(State())
    private static let pause = Duration.seconds(1)

    /// How many of these are to be logged now, in one line; `nil`: none.
    func count(_ fault: SealFault, at now: Timestamp) -> Int? {
        state.withLockedValue { state in
            state.since[fault, default: 0] += 1
            if let last = state.loggedAt[fault], now - last < Self.pause { return nil }
            state.loggedAt[fault] = now
            return state.since.removeValue(forKey: fault)
        }
    }
}
