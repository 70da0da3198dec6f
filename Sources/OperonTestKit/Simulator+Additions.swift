import OperonCore
import OperonModel
import OperonPorts
import OperonWire

// Running operations that add operations to their graph: the same ones in every attempt, for that
// is how they are told from others.
extension Simulator {
    // MARK: What is asked

    /// A stream of its own for each operation.
    func randomness(of operation: OperationID) -> SeededGenerator {
        let place = UInt64(operation.graph.rawValue) << 32 | UInt64(operation.index)
        return SeededGenerator(seed: seed ^ 0x696e_7369_6465_0000 ^ place &* 0x9e37_79b9_7f4a_7c15)
    }

    /// Whether it adds operations when it runs. What was added itself does not.
    func adds(_ operation: OperationID) -> Bool {
        guard scenario.addition > 0, !isPoison(operation),
            ledger.kept.children.allSatisfy({ $0.value[operation] == nil })
        else { return false }
        var randomness = randomness(of: operation)
        return randomness.fraction() < scenario.addition
    }

    /// What it adds: one to three, one behind the other, some of them behind itself.
    func children(of parent: OperationID) -> [OperationDescription] {
        var randomness = randomness(of: parent)
        _ = randomness.next()
        let count = 1 + Int(randomness.next() % 3)
        return (0..<count).map { place in
            var child = OperationDescription(name: "p\(parent.index)-c\(place)", work: .nothing)
            child.queue = "a"
            if place > 0, randomness.next() % 2 == 0 {
                child.dependencies.append(
                    DependencyDescription("p\(parent.index)-c\(place - 1)", .finished)
                )
            }
            if randomness.next() % 3 == 0 {
                let other = randomness.next() % UInt64(parent.index + 1)
                child.dependencies.append(DependencyDescription("\(other)", .finished))
            }
            if scenario.external > 0, randomness.next() % 4 == 0 {
                child.work = .external(input: .empty)
            }
            return child
        }
    }

    /// Asks when a part of its time is over, and as a rule waits for the answer; whether it ends by
    /// itself.
    mutating func planRequests(
        of held: HeldAttempt,
        lasting length: Duration,
        _ index: Int,
        _ incarnation: Incarnation
    ) -> Bool {
        guard adds(held.operation) else {
            return planWait(of: held, lasting: length, index, incarnation)
        }
        let waits = inside.next() % 4 != 0
        let part = Duration.nanoseconds(length.nanoseconds / 8 * Int64(inside.next() % 8))
        at(now + part, .asks(index, incarnation: incarnation, held, waits: waits))
        return !waits
    }

    mutating func asks(
        _ held: HeldAttempt,
        waits: Bool,
        _ index: Int,
        _ incarnation: Incarnation
    ) {
        guard workers[index].incarnation == incarnation,
            workers[index].running.contains(held.attempt)
        else { return }
        if let frozen = workers[index].frozenUntil {
            let later = frozen + .microseconds(1)
            at(later, .asks(index, incarnation: incarnation, held, waits: waits))
            return
        }
        var graph = GraphDescription(name: "added")
        graph.operations = children(of: held.operation)
        let body: [UInt8]
        do throws(WireError) {
            body = try StoreFormat.encode(graph, failFast: false)
        } catch {
            return ledger.broken("what is added cannot be encoded: \(error)")
        }
        if !waits { ledger.met(.addedWithoutWaiting) }
        chooseGroup(of: held.operation)
        workers[index].lastRequest += 1
        let number = workers[index].lastRequest
        workers[index].asked[number] = SimulatedRequest(held: held, waits: waits)
        drive(index, .asked(number, held.attempt, .add(body)))
    }

    /// For some operations, the first that depends on them waits for all that they add.
    private mutating func chooseGroup(of parent: OperationID) {
        var randomness = randomness(of: parent)
        for _ in 0..<3 { _ = randomness.next() }
        guard resolver.groups[parent] == nil, randomness.next() % 2 == 0 else { return }
        resolver.groups[parent] =
            ledger.kept.grown.members.filter { member in
                member.key.graph == parent.graph
                    && member.value.dependencies.contains { $0.operation == parent }
            }.keys.min()?.index
    }

    mutating func take(
        _ answer: WorkerAgent.RequestAnswer,
        _ index: Int,
        _ incarnation: Incarnation
    ) {
        guard let request = workers[index].asked.removeValue(forKey: answer.number) else {
            return ledger.broken("a request was answered twice")
        }
        let held = request.held
        if request.isHostile { return takeRefusal(answer.content, of: held) }
        if let name = request.reads {
            return take(answer.content, to: held, reading: name, index, incarnation)
        }
        if let names = request.names {
            return take(answer.content, to: held, waitingFor: names, index, incarnation)
        }
        switch answer.content {
        case .added(let count):
            let names = children(of: held.operation).map(\.name)
            ledger.met(count > 0 ? .childrenAdded : .childrenAddedAgain)
            ledger.promised(names, to: held.operation)
        // It was cancelled while it asked.
        case .refused(.graphClosed): break
        // The group has finished, or no longer waits for this operation, or one of the children
        // waits for the group.
        case .refused(.alreadyFinished), .refused(.alreadyStarted), .refused(.dependencyCycle):
            guard resolver.groups[held.operation] != nil else {
                return ledger.broken("\(held.operation) has no group, and is refused one")
            }
        case .refused(let refusal):
            ledger.broken("\(held.operation) may not add what fits: \(refusal)")
        case .awaited, .read:
            ledger.broken("\(held.operation) added, and is told of others' ends")
        case .ended:
            // One that was asked to stop, and goes on to its end, is answered no more.
            guard request.waits, workers[index].running.contains(held.attempt) else { return }
            at(now + .milliseconds(1), .ended(index, incarnation: incarnation, held))
            return
        }
        guard request.waits else { return }
        if waitsForChildren(held.operation) {
            let names = children(of: held.operation).map(\.name)
            awaits(names, held, index, incarnation)
            return
        }
        let rest = Duration.microseconds(1 + Int64(inside.next() % 5_000))
        at(now + rest, .ended(index, incarnation: incarnation, held))
    }

    // MARK: The coordinator

    /// What a store keeps of the additions that the last event brought.
    mutating func takeAdditions() -> [StoredContents] {
        resolver.takeAccepted().map { accepted in
            let contents = pieces.contents(
                of: accepted.addition.graph,
                in: accepted.held.operation.graph,
                from: accepted.addition.first,
                isOpen: false
            )
            resolver.keep(accepted, as: contents)
            pieces.note(group: accepted.addition.group, of: contents)
            let names = accepted.operations.map(\.name)
            if names.contains(Self.strangeName) {
                ledger.broken("a stranger added operations for \(accepted.held)")
            }
            let group = accepted.addition.group
            ledger.expect(accepted.addition.graph, contents, named: names, group: group)
            return contents
        }
    }
}

extension SimulatorLedger {
    /// What was added from inside is kept: of the attempt that runs, once, before its outcome.
    mutating func adopted(_ piece: GrownLedger.Piece, by held: HeldAttempt) {
        if kept.open[held.operation] != held.attempt {
            broken("\(held.attempt) added operations and is not that of \(held.operation)")
        }
        for (offset, name) in piece.names.enumerated() {
            let child = OperationID(graph: piece.graph, index: piece.first + UInt32(offset))
            let children = kept.children[held.operation] ?? [:]
            if children.values.contains(name) {
                broken("\(held.operation) has “\(name)” twice among what it added")
            }
            kept.children[held.operation, default: [:]][child] = name
        }
    }

    /// Whoever adds was told that these are there.
    mutating func promised(_ names: [String], to parent: OperationID) {
        promises[parent] = names
        checkPromises()
    }

    /// What was told stays, whatever dies.
    mutating func checkPromises() {
        for parent in promises.keys.sorted() {
            let children = Set((kept.children[parent] ?? [:]).values)
            for name in promises[parent] ?? [] where !children.contains(name) {
                broken("\(parent) was told that “\(name)” is there, and it is not")
            }
        }
    }
}
