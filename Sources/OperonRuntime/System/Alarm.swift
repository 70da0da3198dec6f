import OperonModel

/// Calls back at one moment of a clock: the earliest that was requested. A `Timestamp` refers to
/// the monotonic clock; a `WallTime` refers to the calendar, even if that is set meanwhile.
///
/// Owned by one actor or kept under one lock, so it needs no lock of its own. Its task is the only
/// one that is not a child of the service's task, because a child could not be replaced when an
/// earlier moment is requested.
struct Alarm<Moment: Comparable & Sendable> {
    private var task: Task<Void, Never>?
    private var moment: Moment?

    /// Requests a call at `wanted`; a later moment that was requested before is forgotten.
    ///
    /// - Parameters:
    ///   - wanted: The moment; `nil`: never.
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

    /// To be called first when the alarm rings, so that the next `set` takes effect again.
    mutating func rang() { moment = nil }

    mutating func cancel() {
        task?.cancel()
        task = nil
        moment = nil
    }
}
