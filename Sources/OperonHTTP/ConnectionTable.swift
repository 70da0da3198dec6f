/// The open connections, and the decision which of them may stay: a value without clock or socket.
///
/// A connection waits until it has sent the head of a request, and again between two requests. When
/// there is no room for a new connection, the one that has waited longest gives up its place; those
/// that never sent a request go first, unless they are so new that their first request may be on
/// its way. So silent connections, however many, keep no place, and clients that come at the same
/// time do not push each other out. If no connection waits, the reserve takes connections that only
/// ask for health and metrics.
package struct ConnectionTable: Sendable {
    package struct Bounds: Sendable {
        package var total: Int
        package var perAddress: Int
        package var reserve: Int
        /// How long the first request of a connection may be on its way.
        package var firstRequest: Duration

        package init(total: Int, perAddress: Int, reserve: Int, firstRequest: Duration) {
            self.total = total
            self.perAddress = perAddress
            self.reserve = reserve
            self.firstRequest = firstRequest
        }
    }

    package struct ID: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    package enum Admission: Hashable, Sendable {
        /// Admitted; `instead` is a connection that has lost its place in exchange.
        case admitted(ID, instead: ID?)
        case refused
    }

    private struct Entry {
        /// `nil` if the client has no address, as on a socket file.
        let address: String?
        /// Whether only requests for health and metrics are answered.
        var isReserve: Bool
        let openedAt: ContinuousClock.Instant
        /// Whether it has ever sent the head of a request.
        var hasAsked = false
        /// When it began to wait, as a value of `clock`; `nil` while a request of it is being
        /// answered.
        var waitsSince: UInt64?
    }

    let bounds: Bounds
    private var entries: [ID: Entry] = [:]
    private var counts: [String: Int] = [:]
    private var ordinaryCount = 0
    /// A counter that numbers connections and their changes in one order.
    private var clock: UInt64 = 0

    package init(_ bounds: Bounds) { self.bounds = bounds }

    package var count: Int { entries.count }

    package mutating func open(from address: String?, at now: ContinuousClock.Instant) -> Admission
    {
        let isAddressFull = address.map { counts[$0, default: 0] >= bounds.perAddress } ?? false
        if !isAddressFull, ordinaryCount < bounds.total {
            return .admitted(enter(address, isReserve: false, now), instead: nil)
        }
        let rival = longestWaiting(at: now) { entry in
            !entry.isReserve && (!isAddressFull || entry.address == address)
        }
        if let rival {
            close(rival)
            return .admitted(enter(address, isReserve: false, now), instead: rival)
        }
        if entries.count - ordinaryCount < bounds.reserve {
            return .admitted(enter(address, isReserve: true, now), instead: nil)
        }
        guard let rival = longestWaiting(at: now, where: \.isReserve) else { return .refused }
        close(rival)
        return .admitted(enter(address, isReserve: true, now), instead: rival)
    }

    /// The connection has sent the head of a request.
    /// - Returns: whether the request is answered. A connection of the reserve may ask only for
    ///   health and metrics, unless there is room for it now.
    package mutating func asks(_ id: ID, forHealth: Bool) -> Bool {
        guard var entry = entries[id] else { return false }
        if entry.isReserve, !forHealth {
            let isAddressFull =
                entry.address.map { counts[$0, default: 0] >= bounds.perAddress } ?? false
            guard ordinaryCount < bounds.total, !isAddressFull else { return false }
            entry.isReserve = false
            count(entry, 1)
        }
        entry.hasAsked = true
        entry.waitsSince = nil
        entries[id] = entry
        return true
    }

    /// All requests of the connection are answered.
    package mutating func waits(_ id: ID) {
        clock += 1
        entries[id]?.waitsSince = clock
    }

    /// The connection is closed. It may already have been removed in favour of another one.
    package mutating func close(_ id: ID) {
        guard let entry = entries.removeValue(forKey: id), !entry.isReserve else { return }
        count(entry, -1)
    }

    private mutating func enter(
        _ address: String?,
        isReserve: Bool,
        _ now: ContinuousClock.Instant
    ) -> ID {
        clock += 1
        let id = ID(number: clock)
        let entry = Entry(
            address: address,
            isReserve: isReserve,
            openedAt: now,
            waitsSince: clock
        )
        entries[id] = entry
        if !isReserve { count(entry, 1) }
        return id
    }

    private mutating func count(_ entry: Entry, _ change: Int) {
        ordinaryCount += change
        guard let address = entry.address else { return }
        let count = counts[address, default: 0] + change
        counts[address] = count == 0 ? nil : count
    }

    /// Who gives up a place first.
    private enum Rank: Comparable {
        case silent
        case idle
        case new
    }

    private func rank(_ entry: Entry, at now: ContinuousClock.Instant) -> Rank {
        if entry.hasAsked { return .idle }
        return now - entry.openedAt > bounds.firstRequest ? .silent : .new
    }

    /// The order of the dictionary does not matter, because all values of `waitsSince` differ.
    private func longestWaiting(
        at now: ContinuousClock.Instant,
        where isMeant: (Entry) -> Bool
    ) -> ID? {
        var found: (id: ID, rank: Rank, since: UInt64)?
        for (id, entry) in entries {
            guard let since = entry.waitsSince, isMeant(entry) else { continue }
            let rank = rank(entry, at: now)
            if let best = found, (best.rank, best.since) < (rank, since) { continue }
            found = (id, rank, since)
        }
        return found?.id
    }
}
