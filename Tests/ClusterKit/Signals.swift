import NIOConcurrencyHelpers
package import OperonModel
package import OperonRuntime

/// Counts what happens, for any number of tasks that wait for the next of it.
package final class Changes: Sendable {
    private struct State {
        var count = 0
        var waiters: [Latch] = []
    }

    private let state = NIOLockedValueBox(State())

    package init() {}

    package var count: Int { state.withLockedValue { $0.count } }

    package func note() {
        let waiters = state.withLockedValue { state in
            defer { state.waiters = [] }
            state.count += 1
            return state.waiters
        }
        for waiter in waiters { waiter.open() }
    }

    /// Returns when more than `count` has happened.
    ///
    /// - Throws: `CancellationError`.
    package func wait(after count: Int) async throws {
        let latch = Latch()
        state.withLockedValue { state in
            if state.count > count { latch.open() } else { state.waiters.append(latch) }
        }
        await latch.wait()
        try Task.checkCancellation()
    }
}

/// What a test has noted, and those who wait until it has noted something.
package final class Recorder<State: Sendable>: Sendable {
    package struct TooLate: Error {}

    private let state: NIOLockedValueBox<State>
    package let changes = Changes()

    package init(_ state: State) { self.state = NIOLockedValueBox(state) }

    package var current: State { state.withLockedValue { $0 } }

    package func change(_ body: (inout State) -> Void) {
        state.withLockedValue { body(&$0) }
        changes.note()
    }

    /// Returns when this holds.
    ///
    /// - Throws: `TooLate` after two minutes.
    package func wait(until isDone: @escaping @Sendable (State) -> Bool) async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask { [self] in
                while true {
                    let seen = changes.count
                    if isDone(current) { return true }
                    try await changes.wait(after: seen)
                }
            }
            group.addTask {
                try await Task.sleep(for: .seconds(120))
                return false
            }
            defer { group.cancelAll() }
            guard try await group.next() == true else { throw TooLate() }
        }
    }
}

/// Where the operations of scripted workers wait until the test lets them end.
package actor Gates {
    /// An operation at its gate.
    private struct Visitor {
        let invocation: Invocation
        let passage: CheckedContinuation<InvocationEnd?, Never>
    }

    private var closed: Set<String> = []
    private var holdsAll: Bool
    private var visitors: [AttemptID: Visitor] = [:]
    private let arrivals = Changes()
    /// How often operations of each name have started.
    package private(set) var starts: [String: Int] = [:]
    private var startCount = 0

    package init(holdsAll: Bool) { self.holdsAll = holdsAll }

    /// Holds the operations of this name from now on.
    package func close(_ name: String) { closed.insert(name) }

    /// Lets the operations of this name pass, now and later.
    package func open(_ name: String) {
        closed.remove(name)
        for (id, visitor) in visitors where visitor.invocation.operation.name == name {
            pass(id, nil)
        }
    }

    /// Lets every operation pass, now and later.
    package func openAll() {
        (holdsAll, closed) = (false, [])
        for id in Array(visitors.keys) { pass(id, nil) }
    }

    /// Ends this operation so, as soon as it is at its gate.
    package func open(_ id: OperationID, _ end: InvocationEnd) async throws -> AttemptID {
        let attempt = try await invocation(of: id).operation.held.attempt
        pass(attempt, end)
        return attempt
    }

    /// Returns the operation as soon as it is at its gate.
    package func invocation(of id: OperationID) async throws -> Invocation {
        while true {
            let seen = arrivals.count
            if let visitor = newest(of: id) { return visitor.invocation }
            try await arrivals.wait(after: seen)
        }
    }

    /// The visitor of an operation's last attempt: an earlier one may still be at a lost worker.
    private func newest(of id: OperationID) -> Visitor? {
        visitors.filter { $0.value.invocation.operation.held.operation == id }
            .max { $0.key < $1.key }?.value
    }

    /// Returns when there have been so many starts in all.
    package func waitForStarts(_ count: Int) async throws {
        while true {
            let seen = arrivals.count
            if startCount >= count { return }
            try await arrivals.wait(after: seen)
        }
    }

    private func pass(_ id: AttemptID, _ end: InvocationEnd?) {
        visitors.removeValue(forKey: id)?.passage.resume(returning: end)
    }

    /// Returns how the test ended the operation; `nil`: its gate is open.
    func hold(_ invocation: Invocation) async -> InvocationEnd? {
        let name = invocation.operation.name
        starts[name, default: 0] += 1
        startCount += 1
        guard holdsAll || closed.contains(name) else {
            arrivals.note()
            return nil
        }
        let id = invocation.operation.held.attempt
        return await withTaskCancellationHandler {
            await withCheckedContinuation { passage in
                if Task.isCancelled {
                    passage.resume(returning: .stopped)
                } else {
                    visitors[id] = Visitor(invocation: invocation, passage: passage)
                }
                arrivals.note()
            }
        } onCancel: {
            // Runs on this actor, and so after the visitor is known.
            Task { await self.pass(id, .stopped) }
        }
    }
}
