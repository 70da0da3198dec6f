import OperonCore
import OperonModel

/// What a running operation of a simulated worker asked.
struct SimulatedRequest {
    let held: HeldAttempt
    /// It does not end before it has the answer.
    let waits: Bool
    /// What it waits for, its slot given back; `nil`: it added something.
    var names: [String]?
    /// Whose output it asks for; `nil`: nobody's.
    var reads: String?
    /// It must be refused.
    var isHostile = false
}

// Running operations that wait for others, whichever: what waits for them is refused, and they go
// on.
extension Simulator {
    /// Whether it ends by itself.
    mutating func planWait(
        of held: HeldAttempt,
        lasting length: Duration,
        _ index: Int,
        _ incarnation: Incarnation
    ) -> Bool {
        guard scenario.waiting > 0, !isPoison(held.operation),
            inside.fraction() < scenario.waiting
        else { return true }
        // A power cut may have taken its graph back.
        guard scheduler.isKnown(held.operation) else { return true }
        let count = UInt64(scheduler.operationCount(of: held.operation.graph))
        guard count > 0 else { return true }
        let names = (0...inside.next() % 3).map { _ in String(inside.next() % count) }
        let part = Duration.nanoseconds(length.nanoseconds / 8 * Int64(inside.next() % 8))
        at(now + part, .awaits(index, incarnation: incarnation, held, names))
        return false
    }

    /// Whether it waits for what it has added.
    func waitsForChildren(_ operation: OperationID) -> Bool {
        guard scenario.waiting > 0 else { return false }
        var randomness = randomness(of: operation)
        _ = randomness.next()
        _ = randomness.next()
        return randomness.next() % 2 == 0
    }

    mutating func awaits(
        _ names: [String],
        _ held: HeldAttempt,
        _ index: Int,
        _ incarnation: Incarnation
    ) {
        guard workers[index].incarnation == incarnation,
            workers[index].running.contains(held.attempt)
        else { return }
        if let frozen = workers[index].frozenUntil {
            let later = frozen + .microseconds(1)
            at(later, .awaits(index, incarnation: incarnation, held, names))
            return
        }
        workers[index].lastRequest += 1
        let number = workers[index].lastRequest
        workers[index].asked[number] = SimulatedRequest(held: held, waits: true, names: names)
        if inside.next() % 8 == 0 || workers[index].stopping.contains(held.attempt) {
            let later = now + .microseconds(1 + Int64(inside.next() % 3_000_000))
            at(later, .withdraws(index, incarnation: incarnation, number))
        }
        drive(index, .asked(number, held.attempt, .wait(names)))
    }

    /// Whoever is asked to stop does not wait any more, or is ended after its grace.
    mutating func withdrawAll(of attempt: AttemptID, _ index: Int, _ incarnation: Incarnation) {
        for number in workers[index].asked.keys.sorted() {
            guard let request = workers[index].asked[number], request.names != nil,
                request.held.attempt == attempt
            else { continue }
            let later = now + .milliseconds(Int64(inside.next() % 10_000))
            at(later, .withdraws(index, incarnation: incarnation, number))
        }
    }

    mutating func withdraws(_ number: UInt64, _ index: Int, _ incarnation: Incarnation) {
        guard workers[index].incarnation == incarnation,
            let request = workers[index].asked[number]
        else { return }
        if let frozen = workers[index].frozenUntil {
            let later = frozen + .microseconds(1)
            at(later, .withdraws(index, incarnation: incarnation, number))
            return
        }
        ledger.met(.waitWithdrawn)
        workers[index].crowding.insert(request.held.attempt)
        drive(index, .withdrawn(number))
    }

    mutating func take(
        _ answer: WorkerAgent.RequestAnswer.Content,
        to held: HeldAttempt,
        waitingFor names: [String],
        _ index: Int,
        _ incarnation: Incarnation
    ) {
        switch answer {
        case .awaited(let outcomes):
            workers[index].crowding.remove(held.attempt)
            ledger.met(names.contains { UInt32($0) == nil } ? .waitedForChildren : .waited)
            if outcomes.count != names.count {
                ledger.broken("\(held.operation) waited for others than it is told of")
            }
            for name in names {
                guard let awaited = find(name, in: held.operation.graph) else { continue }
                ledger.expectEnded(awaited, for: held.operation)
            }
        case .refused(.dependencyCycle):
            ledger.met(.waitRefused)
            workers[index].crowding.remove(held.attempt)
        case .refused(.unknownOperation): break
        case .refused(let refusal):
            ledger.broken("\(held.operation) may not wait for what it may: \(refusal)")
        case .added, .read: ledger.broken("\(held.operation) waits, and is told what it added")
        case .ended:
            // Withdrawn, asked too late, or about to be killed: it runs on to its end.
            guard workers[index].running.contains(held.attempt) else { return }
            workers[index].crowding.insert(held.attempt)
        }
        checkSlots(of: index)
        if workers[index].crowding.contains(held.attempt), inside.next() % 3 == 0 {
            // What it waited for it waits for again, at once.
            awaits(names, held, index, incarnation)
            return
        }
        if case .awaited = answer, let name = names.first, workers[index].lastRequest % 2 == 0 {
            reads(name, held, index)
            return
        }
        let rest = Duration.microseconds(1 + Int64(inside.next() % 5_000))
        at(now + rest, .ended(index, incarnation: incarnation, held))
    }

    /// What it waited for it wants to know.
    private mutating func reads(_ name: String, _ held: HeldAttempt, _ index: Int) {
        workers[index].lastRequest += 1
        let number = workers[index].lastRequest
        workers[index].asked[number] = SimulatedRequest(held: held, waits: true, reads: name)
        drive(index, .asked(number, held.attempt, .read(name)))
    }

    mutating func take(
        _ answer: WorkerAgent.RequestAnswer.Content,
        to held: HeldAttempt,
        reading name: String,
        _ index: Int,
        _ incarnation: Incarnation
    ) {
        switch answer {
        case .read(let output):
            ledger.met(.outputRead)
            if let output, let id = find(name, in: held.operation.graph),
                output.bytes != Self.output(of: id)
            {
                ledger.broken("\(held.operation) read what \(id) has not left")
            }
        // Its graph was forgotten, or it has another round before it.
        case .refused(.unknownOperation), .refused(.invalid): break
        case .refused(let refusal):
            ledger.broken("\(held.operation) may not read what it may: \(refusal)")
        case .added, .awaited:
            ledger.broken("\(held.operation) reads, and is told of something else")
        case .ended: guard workers[index].running.contains(held.attempt) else { return }
        }
        at(now + .milliseconds(1), .ended(index, incarnation: incarnation, held))
    }

    /// No more run than it has slots, but for those that could not wait to the end.
    mutating func checkSlots(of index: Int) {
        let waiting = workers[index].asked.values.filter { $0.names != nil }.map(\.held.attempt)
        let count = workers[index].running.subtracting(waiting)
            .subtracting(workers[index].crowding).count
        if count > workers[index].slots {
            ledger.broken("\(count) run on \(workers[index].slots) slots of a worker")
        }
    }

    private func find(_ name: String, in graph: GraphID) -> OperationID? {
        resolver.find(name, in: graph)
    }
}

extension SimulatorLedger {
    mutating func gavePlaceBack(_ operation: OperationID) {
        if kept.inFlight.remove(operation) != nil { kept.yielded.insert(operation) }
    }

    mutating func waitEnded(_ operation: OperationID, hasRoom: Bool) {
        guard kept.yielded.remove(operation) != nil else { return }
        if hasRoom { takePlace(operation) } else { kept.inFlight.insert(operation) }
    }

    mutating func expectEnded(_ awaited: OperationID, for operation: OperationID) {
        if !kept.ended.contains(awaited), !forgottenEnds.contains(awaited) {
            broken("\(operation) goes on and waits for \(awaited), which has not ended")
        }
    }
}

extension SimulatorLedger.Kept {
    /// A coordinator that starts takes what waits for what runs.
    mutating func forgetWaits() {
        inFlight.formUnion(yielded)
        yielded = []
    }
}
