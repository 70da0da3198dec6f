public import Foundation
public import Operon

extension Operon.OperationQueue {
    /// How far what this object added is, as Foundation tells it: its unit is an operation.
    ///
    /// It follows ``Operon/OperationQueue/progress`` for as long as it lives. Cancelling it cancels
    /// everything in the queue, whoever added it. It may be observed as any other, and become a
    /// part of another one.
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
        // Ends with the object that it changes, also while nothing changes.
        progress.setUserInfoObject(Leash(following), forKey: .follower)
        return progress
    }
}

extension ProgressUserInfoKey {
    fileprivate static let follower = ProgressUserInfoKey("operon.follower")
}

/// Ends a task when it is let go.
private final class Leash: Sendable {
    private let task: Task<Void, Never>

    init(_ task: Task<Void, Never>) { self.task = task }

    deinit { task.cancel() }
}

/// Changes a progress that somebody else keeps.
///
/// `@unchecked Sendable`: `Progress` may be changed from any thread.
private final class Follower: @unchecked Sendable {
    private weak var progress: Progress?

    init(_ progress: Progress) { self.progress = progress }

    /// Whether it is still there.
    func update(_ change: OperationQueueProgress) -> Bool {
        guard let progress else { return false }
        progress.totalUnitCount = Int64(change.totalCount)
        progress.completedUnitCount = Int64(change.finishedCount)
        return true
    }
}
