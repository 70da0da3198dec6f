import OperonModel
import OperonTrust

extension FuzzTarget {
    /// What comes over the broker to a coordinator and a worker that seal their messages, and the
    /// files and tokens with keys. The first byte chooses. Nobody but the two can make a message.
    static let seals = FuzzTarget("seals", bytesMax: 2_048) { bytes in
        var input = InputReader(bytes)
        let kind = input.byte()
        let rest = input.remainder()
        switch kind % 4 {
        case 0: try coordinator(SealedPair.joined, rest)
        case 1: try worker(SealedPair.joined, rest)
        case 2: try worker(SealedPair.waiting, rest)
        default: try texts(rest)
        }
    }

    private static func coordinator(_ pair: SealedPair, _ bytes: [UInt8]) throws {
        var pair = pair
        let outputs = (try? pair.coordinator.receive(bytes, at: SealedPair.now)) ?? []
        for output in outputs {
            switch output {
            case .send, .unknownSession: continue
            default: throw BrokenRule("\(bytes) became \(output)")
            }
        }
        try pair.checkConversation()
    }

    private static func worker(_ pair: SealedPair, _ bytes: [UInt8]) throws {
        var pair = pair
        let outputs = (try? pair.worker.receive(bytes)) ?? []
        for output in outputs {
            guard case .send = output else { throw BrokenRule("\(bytes) became \(output)") }
        }
        if pair.isJoined { try pair.checkConversation() }
    }

    private static func texts(_ bytes: [UInt8]) throws {
        _ = SealedMessage.sender(of: bytes)
        let text = String(decoding: bytes, as: UTF8.self)
        try require((try? JoinToken(text: text)) == nil, "a token that nobody has made: \(text)")
        guard let keys = try? CoordinatorKeys(text: text, path: "keys") else { return }
        let again = try CoordinatorKeys(text: keys.text, path: "keys")
        try require(again.publicKey == keys.publicKey, "other keys after writing them: \(text)")
    }
}

/// A coordinator and a worker, as values: each input has its own.
private struct SealedPair {
    var coordinator: CoordinatorSeals
    var worker: WorkerSeals
    let address: WorkerAddress
    let isJoined: Bool

    static let now = WallTime(nanosecondsSince1970: 1_800_000_000_000_000_000)
    static let joined = make(isJoined: true)
    /// The worker waits for an offer.
    static let waiting = make(isJoined: false)

    private static func make(isJoined: Bool) -> SealedPair {
        do {
            let keys = CoordinatorKeys()
            let identity = WorkerTrust(JoinToken(try WorkerGrant(), by: keys))
            var coordinator = CoordinatorSeals(
                keys: keys,
                revoked: [],
                reign: Reign(rawValue: 7),
                epoch: Epoch(rawValue: 2)
            )
            var worker = WorkerSeals(identity)
            worker.connected(1)
            var next = worker.seal([1], lane: 0)
            while isJoined, let frame = next {
                next = nil
                for case .send(let answer, _) in try coordinator.receive(frame, at: now) {
                    for output in try worker.receive(answer) {
                        guard case .sendAgain(let body) = output else { continue }
                        next = worker.seal(body, lane: 0)
                    }
                }
            }
            return SealedPair(
                coordinator: coordinator,
                worker: worker,
                address: WorkerAddress(incarnation: identity.incarnation, connection: 1),
                isJoined: isJoined
            )
        } catch {
            preconditionFailure("two that trust each other cannot agree: \(error)")
        }
    }

    /// Both still understand each other.
    mutating func checkConversation() throws {
        guard let order = coordinator.seal([1, 2], to: address, lane: 0),
            case .message([1, 2])? = try worker.receive(order).first,
            let event = worker.seal([3], lane: 0),
            case .message([3], _)? = try coordinator.receive(event, at: Self.now).last
        else { throw BrokenRule("the conversation has ended") }
    }
}
