import OperonModel

/// Calls back at one moment of a clock, the earliest that was asked for. A `Timestamp` is told by
/// the monotonic clock, a `WallTime` by the calendar, however that is set meanwhile.
///
/// Owned by one actor, or kept under one lock, which is why it needs none; its task is the only one
/// that is not a child of the service's own, since a child could not be replaced when an earlier
/// moment is asked for.
struct Alarm<Moment: Comparable & Sendable> {
    private var task: Task<Void, Never>?
    private var moment: Moment?

    /// Asks for a call at `wanted`; a later moment that was asked for before is forgotten.
    ///
    /// - Parameters:
    ///   - wanted: `nil`: never.
    ///   - sleep: Returns at that moment.
    mutating func set(
        _ wanted: Moment?,
        sleep: @escaping @Sendable (Moment) async throws -> Void,
        ring: @escaping @Sendable () async -> Void
    ) {
        guard let wanted else { return cancel() }
        if let moment, moment <= wanted { return }
        task?.cancel()
        moment = wanted
        task = Task {
            do { try await sleep(wanted) } catch { return }
            await ring()
        }
    }

    /// To be called first when it rings: the next `set` counts again.
    mutating func rang() { moment = nil }

    mutating func cancel() {
        task?.cancel()
        task = nil
        moment = nil
    }
}
