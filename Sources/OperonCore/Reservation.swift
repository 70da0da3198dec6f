import OperonModel

/// A worker that is kept for the first operation in line of a queue that asks for amounts, while no
/// worker has enough of them left: the worker that will be free first, as far as expected run times
/// tell.
///
/// Others may use what is left of that worker only if they are expected to end before `time`, or if
/// they fit beside the operation from then on. So no stream of small operations can keep a large
/// one waiting. A reservation is not stored: the next admission makes it again.
struct Reservation: Sendable {
    let operation: OperationID
    /// The index of the worker.
    let worker: Int
    /// When there will be room. An attempt that has run longer than expected, or of which nothing
    /// is known, counts as about to end.
    let time: Timestamp
    /// Slots that will be left beside the operation then.
    var slots: Int
    /// The same for each resource, by the scheduler's numbers.
    var left: [Int]

    /// Whether an attempt of that class would not delay the operation.
    func lets(_ needs: [DemandClass.Need], endingAt end: Timestamp?) -> Bool {
        if let end, end <= time { return true }
        return slots > 0 && needs.allSatisfy { left[$0.resource] >= $0.amount }
    }

    /// An attempt that will still run when the operation starts takes its part.
    mutating func take(_ needs: [DemandClass.Need], endingAt end: Timestamp?) {
        if let end, end <= time { return }
        slots -= 1
        for need in needs { left[need.resource] -= need.amount }
    }
}
