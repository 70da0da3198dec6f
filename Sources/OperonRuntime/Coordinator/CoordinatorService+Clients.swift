import OperonCore
import OperonModel
import OperonPorts
import OperonWire

// Translates the requests of clients into events of the scheduler.
extension CoordinatorService {
    /// Gives the scheduler a client's command; throws a refusal as a client error.
    func request(_ event: Scheduler.Event, by caller: String) throws(ClientError) {
        try mayChange()
        if let refusal = handle([event], by: caller) { throw ClientError(worded(refusal)) }
    }

    /// Puts a refusal of the scheduler into words, for clients and for workers.
    func worded(_ refusal: NumberedRefusal) -> Refusal {
        refusal.worded { id in
            catalog.contains(id.graph) ? name(of: id).name : "\(id.index)"
        }
    }

    /// Throws while the store cannot write, because no change could be promised then.
    func mayChange() throws(ClientError) {
        if let trouble = keeping?.trouble { throw ClientError(.unavailable, trouble.message) }
        try goesOn()
    }

    /// - Throws: `ClientError.unavailable` if the coordinator has ended or is about to.
    func goesOn() throws(ClientError) {
        guard !hasEnded, fatal == nil else {
            throw ClientError(.unavailable, "The coordinator is shutting down.")
        }
    }

    // MARK: - Cancelling and suspending

    /// Performs a command and returns its effect.
    func perform(
        _ event: Scheduler.Event,
        by caller: String
    ) throws(ClientError) -> CommandView {
        try request(event, by: caller)
        let result = result ?? Scheduler.CommandResult()
        var view = CommandView(
            affected: result.affected,
            finished: result.finished,
            running: result.running,
            released: result.released,
            isEffective: result.isEffective
        )
        view.named = result.named.map { name(of: $0) }
        return view
    }

    // MARK: - Waiting

    /// Returns whether the condition becomes true within this time, and is on the disk: a power cut
    /// does not undo an answer.
    func wait(
        within seconds: Double,
        until isTrue: @escaping @Sendable (Scheduler) -> Bool
    ) async -> Bool {
        let patience = Duration.seconds(min(max(0, seconds), 86_400))
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                while !Task.isCancelled {
                    let last = await self.lastEvent
                    if await self.query(isTrue) { return await self.untilDurable() }
                    guard await self.waitForEvents(after: last) > last else { return false }
                }
                return false
            }
            group.addTask {
                do { try await self.machineTime.sleep(for: patience) } catch {}
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }
}
