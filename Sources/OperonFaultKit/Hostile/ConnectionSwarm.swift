import Glibc

/// What a client does with a connection once it has it.
package enum ConnectionConduct: Hashable, Sendable, CaseIterable {
    /// Sends everything and reads until the other side closes.
    case reads
    /// Sends one byte at a time.
    case sendsSlowly
    /// Sends everything and never reads.
    case staysMute
    /// Sends everything and closes.
    case hangsUp
}

/// Many connections to one server, each with something to send and a way to behave. One thread
/// drives all of them: `open` adds one, `step` lets each go on.
package final class ConnectionSwarm {
    /// The end of one connection.
    package struct Ended {
        package let kind: String
        /// The first bytes of what came.
        package let answer: [UInt8]
        package let reason: Reason

        package enum Reason: String {
            /// The other side closed it.
            case closed
            /// This side gave up.
            case timedOut
            /// This side closed it, as it was to.
            case hungUp
        }
    }

    private final class Member {
        let kind: String
        let connection: RawConnection
        let conduct: ConnectionConduct
        let end: ContinuousClock.Instant
        var unsent: ArraySlice<UInt8>
        var answer: [UInt8] = []

        init(
            _ kind: String,
            _ connection: RawConnection,
            _ bytes: [UInt8],
            _ conduct: ConnectionConduct,
            until end: ContinuousClock.Instant
        ) {
            self.kind = kind
            self.connection = connection
            self.conduct = conduct
            self.end = end
            unsent = bytes[...]
        }
    }

    private let endpoint: Endpoint
    private let answerBytesMax: Int
    private var members: [Member] = []

    /// - Parameter answerBytesMax: of each answer this much is kept.
    package init(to endpoint: Endpoint, answerBytesMax: Int = 8_192) {
        self.endpoint = endpoint
        self.answerBytesMax = answerBytesMax
    }

    package var count: Int { members.count }

    /// Those that only hold a connection.
    package var muteCount: Int { members.count { $0.conduct == .staysMute } }

    /// Connects, without waiting for it.
    ///
    /// - Parameter patience: how long the connection lives at most.
    /// - Throws: `CommandFailure` if there is nobody to connect to, or no descriptor.
    package func open(
        _ kind: String,
        _ bytes: [UInt8],
        _ conduct: ConnectionConduct,
        patience: Duration
    ) throws {
        let connection = try RawConnection(to: endpoint)
        let end = ContinuousClock.now + patience
        members.append(Member(kind, connection, bytes, conduct, until: end))
    }

    /// Waits until one of them can go on, so long at most, and lets all go on. Those that ended are
    /// no longer members.
    package func step(milliseconds: Int32) -> [Ended] {
        var polled = members.map { member in
            let writes = !member.unsent.isEmpty && member.conduct != .sendsSlowly
            let reads = member.conduct != .staysMute
            return pollfd(
                fd: member.connection.descriptor,
                events: (reads ? Int16(POLLIN) : 0) | (writes ? Int16(POLLOUT) : 0),
                revents: 0
            )
        }
        _ = poll(&polled, nfds_t(polled.count), milliseconds)
        let now = ContinuousClock.now
        var ended: [Ended] = []
        members = zip(members, polled).compactMap { member, polled in
            guard let reason = advance(member, ready: polled.revents, now) else { return member }
            ended.append(Ended(kind: member.kind, answer: member.answer, reason: reason))
            return nil
        }
        return ended
    }

    /// Why it has ended; `nil`: it has not.
    private func advance(
        _ member: Member,
        ready: Int16,
        _ now: ContinuousClock.Instant
    ) -> Ended.Reason? {
        let isGone = ready & Int16(POLLHUP | POLLERR) != 0
        if !member.unsent.isEmpty {
            let piece =
                member.conduct == .sendsSlowly ? member.unsent.prefix(1) : member.unsent
            guard let sent = member.connection.send(piece) else { return .closed }
            member.unsent = member.unsent.dropFirst(sent)
        }
        switch member.conduct {
        case .hangsUp where member.unsent.isEmpty: return .hungUp
        case .staysMute:
            if isGone { return .closed }
        case .hangsUp, .reads, .sendsSlowly:
            if ready & Int16(POLLIN) != 0 || isGone {
                guard let piece = member.connection.receive() else { return .closed }
                let room = answerBytesMax - member.answer.count
                member.answer += piece.prefix(max(0, room))
            }
        }
        return now < member.end ? nil : .timedOut
    }
}
