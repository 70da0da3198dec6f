import OperonModel

/// Attempts in flight, by their places, and the attempts of each worker as a list.
struct AttemptTable: Sendable {
    /// The place of no attempt.
    static let none = UInt32.max

    /// A free place is `nil`, and `free` lists it.
    private var attempts: [AttemptState?] = []
    private var free: [UInt32] = []
    /// The place of each worker's newest attempt.
    private var newest: [UInt32] = []

    var count: Int { attempts.count - free.count }

    /// In the order of their places.
    var all: some Sequence<AttemptState> { attempts.lazy.compactMap(\.self) }

    /// `nil`: the place is free, or it is `none`.
    subscript(place: UInt32) -> AttemptState? {
        @inline(__always) get { place == Self.none ? nil : attempts[Int(place)] }
    }

    /// Changes an attempt in its place, if there is one.
    @inline(__always)
    mutating func update(_ place: UInt32, _ change: (inout AttemptState) -> Void) {
        guard place != Self.none, attempts[Int(place)] != nil else { return }
        change(&attempts[Int(place)]!)
    }

    /// The places of all attempts, ascending.
    var places: [UInt32] { attempts.indices.filter { attempts[$0] != nil }.map { UInt32($0) } }

    /// A worker's attempts as they are now, newest first.
    func owned(by worker: Int) -> Owned {
        Owned(attempts: attempts, place: newestPlace(of: worker))
    }

    struct Owned: Sequence, IteratorProtocol {
        fileprivate let attempts: [AttemptState?]
        fileprivate var place: UInt32

        mutating func next() -> (place: UInt32, attempt: AttemptState)? {
            guard place != AttemptTable.none, let attempt = attempts[Int(place)] else {
                return nil
            }
            defer { place = attempt.next }
            return (place, attempt)
        }
    }

    func ownsNone(_ worker: Int) -> Bool { newestPlace(of: worker) == Self.none }

    private func newestPlace(of worker: Int) -> UInt32 {
        worker < newest.count ? newest[worker] : Self.none
    }

    /// Returns the attempt's place, which is valid until the attempt is removed.
    mutating func insert(_ attempt: AttemptState) -> UInt32 {
        let worker = attempt.worker
        while newest.count <= worker { newest.append(Self.none) }
        let place = free.popLast() ?? UInt32(attempts.count)
        var attempt = attempt
        attempt.next = newest[worker]
        attempt.previous = Self.none
        update(newest[worker]) { $0.previous = place }
        newest[worker] = place
        attempts.set(attempt, at: Int(place))
        return place
    }

    mutating func remove(_ place: UInt32) -> AttemptState {
        guard let attempt = self[place] else {
            preconditionFailure("an attempt ends once: callers look it up first")
        }
        if attempt.previous == Self.none {
            newest[attempt.worker] = attempt.next
        } else {
            update(attempt.previous) { $0.next = attempt.next }
        }
        update(attempt.next) { $0.previous = attempt.previous }
        attempts[Int(place)] = nil
        free.append(place)
        return attempt
    }
}

struct AttemptState: Sendable {
    enum Recall: Sendable {
        case none
        case recall
        case cancel
    }

    let id: AttemptID
    let operation: OperationID
    let ordinal: UInt32
    let worker: Int
    /// The sequence number of the last message that carried it.
    var sequence: UInt64
    var hasStarted = false
    /// On the coordinator's clock.
    var startedAt: Timestamp?
    var recall = Recall.none
    /// Its worker is gone, and the coordinator still waits for it to return.
    var isAwaited = false
    /// It waits for others, and has neither a slot nor a place in its queue.
    var isYielded = false
    /// Its expected run time, in nanoseconds.
    let estimate: Int64
    /// When it was given to its worker, or found again after a restart, on the coordinator's clock.
    let grantedAt: Timestamp
    /// The places of its worker's next older and next newer attempt.
    fileprivate(set) var next = AttemptTable.none
    fileprivate(set) var previous = AttemptTable.none
}
