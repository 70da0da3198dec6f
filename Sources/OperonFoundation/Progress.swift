public import Foundation
public import Operon

extension Operon.OperationQueue {
    /// Creates a Foundation `Progress` for the operations that this object added. Its unit is one
    /// operation.
    ///
    /// The progress follows ``Operon/OperationQueue/progress`` for as long as it exists. Cancelling
    /// it cancels all operations in the queue, including those that other programs added. It can be
    /// observed like any other progress, and can become a child of another one.
    public func makeProgress() -> Progress {
        let progress = Progress(totalUnitCount: 0)
        progress.isPausable = false
        let queue = self
        progress.cancellationHandler = {
            Task { try? await queue.cancelAllOperations(reason: "its progress was cancelled") }
        }
        let changes = self.progress
        let follower = Follower(progress)
        let following = Task {
            for await change in changes where !follower.update(change) { break }
        }
        // Ends together with the progress, even if no further change arrives.
        progress.setUserInfoObject(Leash(following), forKey: .follower)
        return progress
    }
}

extension ProgressUserInfoKey {
    fileprivate static let follower = ProgressUserInfoKey("operon.follower")
}

/// Cancels a task when it is released.
private final class Leash: Sendable {
    private let task: Task<Void, Never>

    init(_ task: Task<Void, Never>) { self.task = task }

    deinit { task.cancel() }
}

/// Updates a progress without keeping it alive.
///
/// `@unchecked Sendable`: `Progress` may be changed from any thread.
private final class Follower: @unchecked Sendable {
    private weak var progress: Progress?

    init(_ progress: Progress) { self.progress = progress }

    /// Returns whether the progress still exists.
    func update(_ change: OperationQueueProgress) -> Bool {
        guard let progress else { return false }
        progress.totalUnitCount = Int64(change.totalCount)
        progress.completedUnitCount = Int64(change.finishedCount)
        return true
    }
}
