import OperonModel
import OperonSystem

/// The form of a message on the broker between a coordinator and a worker that trust each other.
///
/// The first byte is 0, with which no message in clear begins.
enum SealFrame {
    /// A worker asks for keys.
    case knock(Knock)
    /// A coordinator says that it has started, or that it has no keys in common with the receiver.
    case announcement(Announcement)
    /// The answer to a knock.
    case offer(Offer)
    case sealed(SealedHeader)
    /// From a coordinator to itself.
    case own(lane: UInt8, number: UInt64)

    /// The first bytes: no Protocol Buffers, and the version of this form.
    private static let start: [UInt8] = [0, 1]
    static let knockKind: UInt8 = 1
    static let announcementKind: UInt8 = 2
    static let offerKind: UInt8 = 3
    static let sealedKind: UInt8 = 4
    static let ownKind: UInt8 = 5

    static func writer(_ kind: UInt8) -> TrustWriter {
        var writer = TrustWriter()
        writer.append(start)
        writer.append(kind)
        return writer
    }

    /// - Throws: `unsealed` for a message in clear, else `malformed`.
    static func read(_ bytes: [UInt8]) throws(SealFault) -> SealFrame {
        guard bytes.first == 0 else { throw .unsealed }
        if bytes.count > 2, bytes[1] == start[1], bytes[2] == sealedKind {
            guard let header = SealedHeader(bytes) else { throw .malformed }
            return .sealed(header)
        }
        var reader = TrustReader(bytes)
        guard reader.take(2) == start, let kind = reader.number(UInt8.self) else {
            throw .malformed
        }
        let frame: SealFrame? =
            switch kind {
            case knockKind: Knock(&reader).map { .knock($0) }
            case announcementKind: Announcement(&reader).map { .announcement($0) }
            case offerKind: Offer(&reader).map { .offer($0) }
            case ownKind: own(&reader)
            default: nil
            }
        guard let frame else { throw .malformed }
        return frame
    }

    private static func own(_ reader: inout TrustReader) -> SealFrame? {
        guard let lane = reader.number(UInt8.self), let number = reader.number(UInt64.self) else {
            return nil
        }
        return .own(lane: lane, number: number)
    }

    static let ownHeaderBytes = 2 + 1 + 1 + 8
}

/// A worker asks for keys.
struct Knock: Hashable {
    let address: WorkerAddress
    /// A key of X25519 that the worker has drawn for this.
    let key: [UInt8]

    init(address: WorkerAddress, key: [UInt8]) {
        self.address = address
        self.key = key
    }

    init?(_ reader: inout TrustReader) {
        guard let address = WorkerAddress(&reader), let key = reader.take(X25519.keyBytes),
            reader.isAtEnd
        else { return nil }
        self.init(address: address, key: key)
    }

    var frame: [UInt8] {
        var writer = SealFrame.writer(SealFrame.knockKind)
        address.write(to: &writer)
        writer.append(key)
        return writer.bytes
    }
}

/// That a coordinator has started, signed by its key.
struct Statement: Hashable {
    let reign: Reign
    let epoch: Epoch
    /// A key of X25519 that the coordinator has drawn for this epoch.
    let key: [UInt8]
    /// The coordinator's key.
    let signer: [UInt8]
    let signature: [UInt8]

    init(reign: Reign, epoch: Epoch, key: [UInt8], by keys: CoordinatorKeys) {
        self.reign = reign
        self.epoch = epoch
        self.key = key
        signer = keys.publicKey
        signature = Ed25519.signature(
            of: Self.signed(reign, epoch, key, by: keys.publicKey),
            by: keys.privateKey
        )
    }

    init?(_ reader: inout TrustReader) {
        guard let reign = reader.number(UInt64.self), reign != 0,
            let epoch = reader.number(UInt32.self), epoch != 0,
            let key = reader.take(X25519.keyBytes), let signer = reader.take(Ed25519.keyBytes),
            let signature = reader.take(Ed25519.signatureBytes)
        else { return nil }
        self.reign = Reign(rawValue: reign)
        self.epoch = Epoch(rawValue: epoch)
        self.key = key
        self.signer = signer
        self.signature = signature
    }

    private static func signed(
        _ reign: Reign,
        _ epoch: Epoch,
        _ key: [UInt8],
        by signer: [UInt8]
    ) -> [UInt8] {
        var writer = TrustWriter()
        writer.append(Array("operon 1 statement".utf8))
        writer.append(reign.rawValue)
        writer.append(epoch.rawValue)
        writer.append(key)
        writer.append(signer)
        return writer.bytes
    }

    func write(to writer: inout TrustWriter) {
        writer.append(reign.rawValue)
        writer.append(epoch.rawValue)
        writer.append(key)
        writer.append(signer)
        writer.append(signature)
    }

    var isValid: Bool {
        Ed25519.isValid(signature, of: Self.signed(reign, epoch, key, by: signer), by: signer)
    }
}

/// A statement with what a worker needs to believe it.
struct Announcement: Hashable {
    let statement: Statement
    let links: [CoordinatorKeys.Link]

    init(_ statement: Statement, _ links: [CoordinatorKeys.Link]) {
        self.statement = statement
        self.links = links
    }

    init?(fields reader: inout TrustReader) {
        guard let statement = Statement(&reader), let count = reader.number(UInt8.self),
            count <= CoordinatorKeys.linksMax
        else { return nil }
        var links: [CoordinatorKeys.Link] = []
        for _ in 0..<count {
            guard let old = reader.take(Ed25519.keyBytes),
                let new = reader.take(Ed25519.keyBytes),
                let signature = reader.take(Ed25519.signatureBytes)
            else { return nil }
            links.append(CoordinatorKeys.Link(old: old, new: new, signature: signature))
        }
        self.init(statement, links)
    }

    init?(_ reader: inout TrustReader) {
        self.init(fields: &reader)
        guard reader.isAtEnd else { return nil }
    }

    func write(to writer: inout TrustWriter) {
        statement.write(to: &writer)
        writer.append(UInt8(links.count))
        for link in links {
            writer.append(link.old)
            writer.append(link.new)
            writer.append(link.signature)
        }
    }

    var frame: [UInt8] {
        var writer = SealFrame.writer(SealFrame.announcementKind)
        write(to: &writer)
        return writer.bytes
    }

    /// Whether somebody who has pinned this key may believe it. Costs two signatures for each
    /// succession at most.
    func isTrusted(by pin: [UInt8]) -> Bool {
        guard statement.isValid else { return false }
        if statement.signer == pin { return true }
        guard let first = links.firstIndex(where: { $0.old == pin }) else { return false }
        var key = pin
        for link in links[first...] {
            guard link.old == key, link.isValid else { return false }
            key = link.new
        }
        return key == statement.signer
    }
}

/// The answer to a knock. What follows the header shows that its sender has the secret.
struct Offer {
    /// The key of the knock that it answers.
    let knockKey: [UInt8]
    let session: UInt64
    /// Random, so that nothing of an earlier agreement fits this one.
    let challenge: [UInt8]
    let announcement: Announcement
    let headerBytes: Int

    static let challengeBytes = 32

    init?(_ reader: inout TrustReader) {
        guard let knockKey = reader.take(X25519.keyBytes),
            let session = reader.number(UInt64.self),
            let challenge = reader.take(Self.challengeBytes),
            let announcement = Announcement(fields: &reader)
        else { return nil }
        self.knockKey = knockKey
        self.session = session
        self.challenge = challenge
        self.announcement = announcement
        headerBytes = reader.place
    }

    static func header(
        knockKey: [UInt8],
        session: UInt64,
        challenge: [UInt8],
        _ announcement: Announcement
    ) -> [UInt8] {
        var writer = SealFrame.writer(SealFrame.offerKind)
        writer.append(knockKey)
        writer.append(session)
        writer.append(challenge)
        announcement.write(to: &writer)
        return writer.bytes
    }
}

/// What stands in clear before a sealed text, and is protected with it. Each message has one, so
/// its fields are read and written where they are: the start of a frame, the worker that sent the
/// message or is to receive it, the session, the lane, the number, and what the text is.
struct SealedHeader {
    let address: WorkerAddress
    let session: UInt64
    let lane: UInt8
    let number: UInt64
    let content: UInt8

    private static let incarnationPlace = 3
    private static let connectionPlace = incarnationPlace + 8
    private static let sessionPlace = connectionPlace + 4
    static let lanePlace = sessionPlace + 8
    static let numberPlace = lanePlace + 1
    static let contentPlace = numberPlace + 8
    static let bytes = contentPlace + 1

    /// - Parameter frame: The whole frame, of the kind `sealedKind`.
    init?(_ frame: [UInt8]) {
        guard frame.count >= Self.bytes else { return nil }
        func number(at place: Int, bytes: Int) -> UInt64 {
            var value: UInt64 = 0
            for place in place..<place + bytes { value = value << 8 | UInt64(frame[place]) }
            return value
        }
        let incarnation = number(at: Self.incarnationPlace, bytes: 8)
        let connection = number(at: Self.connectionPlace, bytes: 4)
        guard incarnation != 0, connection != 0 else { return nil }
        address = WorkerAddress(
            incarnation: Incarnation(rawValue: incarnation),
            connection: UInt32(connection)
        )
        session = number(at: Self.sessionPlace, bytes: 8)
        lane = frame[Self.lanePlace]
        self.number = number(at: Self.numberPlace, bytes: 8)
        content = frame[Self.contentPlace]
    }

    /// The header of a session's messages; lane, number and content are still 0.
    static func template(of address: WorkerAddress, session: UInt64) -> [UInt8] {
        var writer = SealFrame.writer(SealFrame.sealedKind)
        address.write(to: &writer)
        writer.append(session)
        writer.append([UInt8](repeating: 0, count: bytes - lanePlace))
        return writer.bytes
    }
}

extension [UInt8] {
    /// Overwrites eight bytes, the most significant first.
    mutating func write(_ number: UInt64, at place: Int) {
        for offset in 0..<8 {
            self[place + offset] = UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * offset))
        }
    }
}

extension WorkerAddress {
    init?(_ reader: inout TrustReader) {
        guard let incarnation = reader.number(UInt64.self), incarnation != 0,
            let connection = reader.number(UInt32.self), connection != 0
        else { return nil }
        self.init(incarnation: Incarnation(rawValue: incarnation), connection: connection)
    }

    func write(to writer: inout TrustWriter) {
        writer.append(incarnation.rawValue)
        writer.append(connection)
    }
}
