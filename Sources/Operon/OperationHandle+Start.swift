internal import OperonModel
internal import OperonPorts
internal import OperonRuntime
internal import Synchronization

extension OperationHandle {
    /// Runs it in this process, now, in the calling task: for an operation that is in no queue.
    /// Returns when it has ended; ``outcome`` says how.
    ///
    /// There is no coordinator in it: nothing is tried again, nothing has a time limit, and
    /// operations cannot be added from inside. It fails if one of its conditions does not hold, or
    /// not yet; what conditions bring is not run. One that was cancelled ends without running; one
    /// that has ended stays as it is.
    ///
    /// - Throws: `Refusal.alreadySubmitted` for one that is in a queue, `.alreadyStarted` for one
    ///   that runs; ``OperonError`` with the code `refused` for one that waits for others.
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

    /// What its dependencies left; `nil`: it has ended.
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

    /// Has it stopped when the handle is cancelled, which may have happened already.
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
    /// What it left, if that is known here.
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
