import OperonModel
import OperonSystem

@testable import OperonTrust

/// A coordinator and a worker that have messages carried between them by the test.
struct Pair {
    static let reign = Reign(rawValue: 7)
    static let start = WallTime(nanosecondsSince1970: 1_800_000_000_000_000_000)

    var coordinator: CoordinatorSeals
    var worker: WorkerSeals
    let keys: CoordinatorKeys
    let identity: WorkerTrust
    let address: WorkerAddress

    init(
        keys: CoordinatorKeys,
        token: JoinToken? = nil,
        identity: WorkerTrust? = nil,
        epoch: UInt32 = 1,
        revoked: Set<[UInt8]> = []
    ) throws {
        let identity = try identity ?? WorkerTrust(token ?? JoinToken(WorkerGrant(), by: keys))
        self.keys = keys
        self.identity = identity
        coordinator = CoordinatorSeals(
            keys: keys,
            revoked: revoked,
            reign: Self.reign,
            epoch: Epoch(rawValue: epoch)
        )
        worker = WorkerSeals(identity)
        worker.connected(1)
        address = WorkerAddress(incarnation: identity.incarnation, connection: 1)
    }

    /// A pair that has greeted.
    static func joined(_ keys: CoordinatorKeys = CoordinatorKeys()) throws -> Pair {
        var pair = try Pair(keys: keys)
        _ = try pair.join()
        return pair
    }

    /// Carries messages until the greeting has come.
    ///
    /// - Returns: What the coordinator got from the worker, and what the worker was told.
    mutating func join(_ greeting: String = "hello", at now: WallTime = start) throws -> (
        [CoordinatorSeals.Output], [WorkerSeals.Output]
    ) {
        let knock = try worker.seal(bytes(greeting), lane: 0).unwrapped()
        let offer = try coordinator.receive(knock, at: now).frame()
        let again = try worker.receive(offer)
        guard case .sendAgain(let body)? = again.first else { throw Missing() }
        let hello = try worker.seal(body, lane: 0).unwrapped()
        let heard = try coordinator.receive(hello, at: now)
        var told: [WorkerSeals.Output] = []
        for case .send(let frame, _) in heard { told += try worker.receive(frame) }
        return (heard, told)
    }

    mutating func say(_ text: String, lane: UInt8 = 0) throws -> [UInt8] {
        try worker.seal(bytes(text), lane: lane).unwrapped()
    }

    mutating func order(_ text: String, lane: UInt8 = 0) throws -> [UInt8] {
        try coordinator.seal(bytes(text), to: address, lane: lane).unwrapped()
    }
}

struct Missing: Error {}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

extension Optional {
    func unwrapped() throws -> Wrapped {
        guard let self else { throw Missing() }
        return self
    }
}

extension [CoordinatorSeals.Output] {
    /// The first message to be sent as it is.
    func frame() throws -> [UInt8] {
        for case .send(let frame, _) in self { return frame }
        throw Missing()
    }

    var messages: [String] {
        compactMap { output in
            guard case .message(let body, _) = output else { return nil }
            return String(decoding: body, as: UTF8.self)
        }
    }

    var refusals: [String] {
        compactMap { output in
            guard case .refused(_, let why) = output else { return nil }
            return why
        }
    }
}

extension [WorkerSeals.Output] {
    var messages: [String] {
        compactMap { output in
            guard case .message(let body) = output else { return nil }
            return String(decoding: body, as: UTF8.self)
        }
    }

    func frame() throws -> [UInt8] {
        for case .send(let frame) in self { return frame }
        throw Missing()
    }
}
