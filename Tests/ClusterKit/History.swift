package import OperonCore
package import OperonModel

/// What a coordinator has decided and heard.
package struct History: Sendable {
    package struct Attempt: Sendable {
        package let operation: OperationID
        package let id: AttemptID
        package let worker: Incarnation
        /// The limit that was in force when it was granted, as the test noted it.
        package let limit: Int
        package var start: Timestamp?
        package var end: Timestamp?
        package var ending: Scheduler.AttemptEnding?
    }

    package struct Operation: Sendable {
        package var outcome: Outcome?
        /// Of its last attempt.
        package var result: AttemptResult?
        /// The name of the worker that got it last.
        package var worker: String?
        package var hasStarted = false
        package var log = ""

        package var output: String { String(decoding: result?.output.bytes ?? [], as: UTF8.self) }

        package var tail: String { String(decoding: result?.log.tail ?? [], as: UTF8.self) }
    }

    /// The names of the workers that are there.
    package var workers: [Incarnation: String] = [:]
    /// In the order of their grants.
    package var attempts: [Attempt] = []
    package var finished: [OperationID] = []
    /// In order, once for each attempt.
    package var started: [OperationID] = []
    package var resumed: [OperationID] = []
    package var operations: [OperationID: Operation] = [:]
    package var limit = 0

    package subscript(operation: OperationID) -> Operation { operations[operation] ?? Operation() }

    /// By its place in the first graph.
    package subscript(index: Int) -> Operation {
        self[OperationID(graph: GraphID(rawValue: 0), index: UInt32(index))]
    }

    mutating func note(_ notice: Scheduler.Notice) {
        switch notice {
        case .workerJoined(let worker, _, _): workers[worker.incarnation] = worker.name
        case .workerLost(let worker): workers[worker.incarnation] = nil
        case .granted(let operation, let attempt, let worker):
            operations[operation, default: Operation()].worker = workers[worker]
            attempts.append(
                Attempt(operation: operation, id: attempt, worker: worker, limit: limit)
            )
        case .attemptEnded(_, let attempt, let ending, let start, let end):
            guard let index = attempts.lastIndex(where: { $0.id == attempt }) else { return }
            attempts[index].start = start
            attempts[index].end = end
            attempts[index].ending = ending
        case .started(let operation, _, _):
            operations[operation, default: Operation()].hasStarted = true
            started.append(operation)
        case .result(let operation, _, let result):
            operations[operation, default: Operation()].result = result
        case .finished(let operation, let outcome):
            operations[operation, default: Operation()].outcome = outcome
            finished.append(operation)
        case .rangeFinished(let range, let outcome):
            for operation in range {
                operations[operation, default: Operation()].outcome = outcome
                finished.append(operation)
            }
        case .log(let chunk):
            operations[chunk.held.operation, default: Operation()].log +=
                String(decoding: chunk.bytes, as: UTF8.self)
        case .resumed(let operation, _, _): resumed.append(operation)
        default: break
        }
    }
}

extension Recorder<History> {
    func note(_ notices: [Scheduler.Notice]) {
        change { history in for notice in notices { history.note(notice) } }
    }
}
