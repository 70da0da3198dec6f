internal import OperonModel
internal import OperonPorts
internal import OperonRuntime
internal import Synchronization

extension OperationHandle {
    /// Runs the operation in this process, in the calling task, and returns when it has ended.
    /// ``outcome`` then returns its outcome. For an operation that is in no queue.
    ///
    /// No coordinator is involved: nothing is retried, nothing has a time limit, and the operation
    /// cannot add operations. It fails if one of its conditions does not hold, or does not hold
    /// yet; operations that conditions would add are not run. If it was cancelled, it ends without
    /// running; if it has finished, nothing changes.
    ///
    /// - Throws: `Refusal.alreadySubmitted` if it is in a queue, `.alreadyStarted` if it is
    ///   running; ``OperonError`` with the code `refused` if it waits for others.
    public func start() async throws {
        guard let inputs = try beginLocally() else { return }
        let cancellation = LocalCancellation()
        let context = OperationContext.local(
            operationName: name,
            inputs: inputs,
            isCancelled: { cancellation.isCancelled },
            cancel: { cancellation.cancel() }
        )
        let operation = operation
        let task = Task {
            if let obstacle = await operation.conditions.firstObstacle(context) {
                throw Obstacle(name: obstacle.name)
            }
            return try Payload(output: try await operation.main(context))
        }
        follow(cancellation, task)
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            cancellation.cancel()
            task.cancel()
        }
        switch result {
        case .success(let output): finish(.succeeded, output: output)
        case .failure(is CancellationError) where cancellation.isCancelled:
            let reason = state.withLock { $0.extra?.cancelReason ?? "" }
            finish(.cancelled(reason: reason), output: .empty)
        case .failure(let obstacle as Obstacle):
            finish(.failed(.conditionFailed(name: obstacle.name)), output: .empty)
        case .failure(let error):
            finish(.failed(OperationError(thrown: error)), output: .empty)
        }
    }

    /// The outputs of the dependencies; `nil`: the operation has ended.
    private func beginLocally() throws -> [NamedInput]? {
        let name = name
        let begun: (isCancelled: String?, inputs: [NamedInput])? =
            try state.withLock { state in
                switch state.phase {
                case .finished: return nil
                case .submitting, .submitted: throw Refusal.alreadySubmitted(name: name)
                case .local: throw Refusal.alreadyStarted(name: name)
                case .new: break
                }
                let extra = state.extra
                if state.isCancelled { return (extra?.cancelReason ?? "", []) }
                var inputs: [NamedInput] = []
                for (handle, condition) in state.dependencies.all {
                    guard let outcome = handle.outcomeIfKnown,
                        condition.isSatisfied(by: outcome.kind)
                    else {
                        let why = "“\(name)” is not ready: it waits for “\(handle.name)”."
                        throw OperonError(.refused, why)
                    }
                    inputs.append(NamedInput(name: handle.name, output: handle.outputIfKnown))
                }
                state.phase = .local
                return (nil, inputs)
            }
        guard let begun else { return nil }
        guard let reason = begun.isCancelled else { return begun.inputs }
        finish(.cancelled(reason: reason), output: .empty)
        return nil
    }

    /// Stops the task when the handle is cancelled, or at once if it was cancelled before.
    private func follow(_ cancellation: LocalCancellation, _ task: Task<Payload, any Error>) {
        cancellation.attach { task.cancel() }
        let isCancelled = state.withLock { state in
            let extra = state.extra ?? Extra()
            extra.stop = { cancellation.cancel() }
            state.extra = extra
            return state.isCancelled
        }
        if isCancelled { cancellation.cancel() }
    }
}

extension AnyOperationHandle {
    /// The output, if this program knows it.
    fileprivate var outputIfKnown: Payload? {
        state.withLock { state in
            guard state.phase == .finished, state.ending?.outcome ?? .succeeded == .succeeded
            else { return nil }
            return state.ending?.output
        }
    }
}

/// A condition that does not hold.
private struct Obstacle: Error {
    var name: String
}
