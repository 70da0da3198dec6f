import OperonModel

/// Calls back at one moment, the earliest that was asked for.
///
/// Owned by one actor, or kept under one lock, which is why it needs none; its task is the only one
/// that is not a child of the service's own, since a child could not be replaced when an earlier
/// moment is asked for.
struct Alarm {
    private var task: Task<Void, Never>?
    private var moment: Timestamp?

    /// Asks for a call at `wanted`; a later moment that was asked for before is forgotten.
    mutating func set(
        _ wanted: Timestamp?,
        by time: TimeSource = .system,
        ring: @escaping @Sendable () async -> Void
    ) {
        guard let wanted else { return }
        if let moment, moment <= wanted { return }
        task?.cancel()
        moment = wanted
        task = Task {
            do { try await time.sleep(wanted) } catch { return }
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

/// Calls back at one date, the earliest that was asked for, however the calendar is set meanwhile.
///
/// Owned by one actor, as an `Alarm` is.
struct DateAlarm {
    private var task: Task<Void, Never>?
    private var date: WallTime?

    /// Asks for a call at `wanted`; a later date that was asked for before is forgotten. `nil`: for
    /// none.
    mutating func set(
        _ wanted: WallTime?,
        by time: TimeSource,
        ring: @escaping @Sendable () async -> Void
    ) {
        guard let wanted else { return cancel() }
        if let date, date <= wanted { return }
        task?.cancel()
        date = wanted
        task = Task {
            do { try await time.sleepUntilDate(wanted) } catch { return }
            await ring()
        }
    }

    /// To be called first when it rings: the next `set` counts again.
    mutating func rang() { date = nil }

    mutating func cancel() {
        task?.cancel()
        task = nil
        date = nil
    }
}
