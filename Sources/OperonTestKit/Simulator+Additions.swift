import OperonCore
import OperonModel
import OperonPorts
import OperonWire

// Running operations that add operations to their graph: the same ones in every attempt, for that
// is how they are told from others.
extension Simulator {
    /// What is known of operations by their names: of what was added from inside.
    struct Children {
        private struct Key: Hashable {
            let graph: GraphID
            let name: String
        }

        private var known: [Key: (index: UInt32, known: CompiledAddition.Known)] = [:]
        /// What bodies in the store stand for. Only looked up.
        private var parts: [[UInt8]: (operations: [OperationDescription], parent: UInt32)] = [:]

        func find(_ name: String, in graph: GraphID) -> CompiledAddition.Known? {
            known[Key(graph: graph, name: name)]?.known
        }

        func index(of name: String, in graph: GraphID) -> UInt32? {
            known[Key(graph: graph, name: name)]?.index
        }

        mutating func keep(
            _ operations: [OperationDescription],
            of parent: UInt32,
            as contents: StoredContents
        ) {
            parts[contents.body] = (operations, parent)
            append(contents)
        }

        private mutating func append(_ contents: StoredContents) {
            guard let (operations, parent) = parts[contents.body] else { return }
            for (offset, operation) in operations.enumerated() {
                known[Key(graph: contents.graph, name: operation.name)] = (
                    contents.first + UInt32(offset),
                    CompiledAddition.Known(description: operation, parent: parent)
                )
            }
        }

        /// A coordinator knows what its store has.
        mutating func restore(_ state: StoredState) {
            known = [:]
            for graph in state.graphs {
                for contents in graph.contents { append(contents) }
            }
        }
    }

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
        workers[index].lastRequest += 1
        let number = workers[index].lastRequest
        workers[index].asked[number] = SimulatedRequest(held: held, waits: waits)
        drive(index, .asked(number, held.attempt, .add(body)))
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

    /// Compiles what was ordered to be, as the shell does: what a store keeps of it.
    mutating func judgeRequests() -> [StoredContents] {
        var all: [StoredContents] = []
        while !(effects.additions.isEmpty && effects.waits.isEmpty && effects.reads.isEmpty) {
            all += judgeAdditions()
            judgeWaits()
            judgeReads()
        }
        return all
    }

    private mutating func judgeAdditions() -> [StoredContents] {
        var all: [StoredContents] = []
        while !effects.additions.isEmpty {
            let order = effects.additions.removeFirst()
            let graph = order.held.operation.graph
            let judged: (description: GraphDescription, addition: CompiledAddition)?
            do {
                judged = try compile(order)
            } catch let refusal as Refusal {
                drive(order, .refused(refusal))
                continue
            } catch {
                ledger.broken("what is added cannot be decoded: \(error)")
                continue
            }
            guard let (description, addition) = judged else {
                drive(order, .known)
                continue
            }
            let count = scheduler.operationCount(of: graph)
            drive(order, .fits(addition))
            guard scheduler.operationCount(of: graph) > count else { continue }
            let contents = pieces.contents(
                of: addition.graph,
                in: graph,
                from: addition.first,
                isOpen: false
            )
            children.keep(description.operations, of: order.held.operation.index, as: contents)
            ledger.expect(addition.graph, contents, named: description.operations.map(\.name))
            all.append(contents)
        }
        return all
    }

    private mutating func drive(
        _ order: Scheduler.AdditionOrder,
        _ judgement: Scheduler.AdditionJudgement
    ) {
        scheduler.handle(.additionJudged(order, judgement), at: moment, into: &effects)
    }

    private func compile(
        _ order: Scheduler.AdditionOrder
    ) throws -> (description: GraphDescription, addition: CompiledAddition)? {
        let graph = order.held.operation.graph
        let description = try StoreFormat.decodeAddition(order.request.operations)
        return try CompiledAddition.compile(
            description,
            addedBy: order.held.operation.index,
            to: scheduler.additionBase(inside: graph),
            violation: scenario.violation
        ) { name in
            children.find(name, in: graph)
        } resolve: { name in
            let isNew = scenario.violation == .addsAgain
            let child = isNew ? nil : children.index(of: name, in: graph)
            return (child ?? UInt32(name)).map { OperationID(graph: graph, index: $0) }
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
