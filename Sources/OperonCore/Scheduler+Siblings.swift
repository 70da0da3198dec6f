import OperonModel

// Operations that wait for a group and cancel what is left of it once it cannot succeed: see
// `OperationDescription.cancelSiblings`.
extension Scheduler {
    /// Notes a pending operation if it will be skipped and cancels its siblings: its other
    /// dependencies are no longer needed. They are cancelled at the end of the event, so that a
    /// group of groups needs no recursion.
    mutating func noteDoomed(_ operation: OperationID) {
        guard graphs[flags: operation].contains(.skipDemanded),
            graphs[state: operation] == .pending,
            graphs.policy(of: operation).cancelsSiblings
        else { return }
        doomed.append(operation)
    }

    /// Cancels the unfinished dependencies of doomed operations: O(dependencies) for each, once.
    mutating func cancelSiblings(at now: Moment, into effects: inout Effects) {
        // Operations that this dooms in turn are appended.
        var position = 0
        defer { doomed.removeAll(keepingCapacity: true) }
        while position < doomed.count {
            let operation = doomed[position]
            position += 1
            // benign: it was cancelled, or has finished, in the same event.
            guard state(of: operation) == .pending else { continue }
            var siblings: [OperationID] = []
            forEachDependency(of: operation) { dependency, _ in
                if outcomeKind(of: dependency) == nil { siblings.append(dependency) }
            }
            cancel(each: siblings, reason: "a sibling did not succeed", at: now, into: &effects)
        }
    }
}
