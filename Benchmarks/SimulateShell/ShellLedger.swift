import OperonCore
import OperonModel

/// What was submitted, what ran, and what clients were told: all of it must fit together.
final class ShellLedger {
    /// An operation of a submitted graph.
    private struct Entry {
        let description: OperationDescription
        /// The operation that adds it; `nil`: it was submitted.
        var parent: String?
        /// What each attempt was given, by the name of the dependency.
        var inputs: [AttemptID: [String: String]] = [:]
        /// What each attempt that succeeded left.
        var outputs: [AttemptID: String] = [:]
        /// What each attempt that succeeded has added.
        var added: [AttemptID: [String]] = [:]
        var hasFailed = false
        var told: Told?
    }

    private struct Told {
        let id: OperationID
        var outcome: OutcomeKind
        /// How many retries of its graph had been asked for.
        var round: Int
        var attempts: UInt32
    }

    private struct Graph {
        let description: GraphDescription
        /// `nil`: not acknowledged.
        var id: UInt32?
        var retries = 0
        var isCancelled = false
        var isFinished = false
        /// The names of what clients added, and were told that it was.
        var added: Set<String> = []
    }

    /// Whether finished graphs are dropped, and their keys with them: who did not hear that its
    /// graph was accepted may submit it for a second time.
    private let mayDrop: Bool
    /// Whether operations fail because no worker could hold their inputs.
    private let mayFailUnsent: Bool
    private let trace: ((String) -> Void)?
    /// The names of graphs that triggers submit.
    static let fired = "fired"
    static let ticked = "ticked"

    private(set) var broken: String?
    private(set) var hash: UInt64 = 0
    private(set) var starts = 0
    private var graphs: [String: Graph] = [:]
    private var names: [UInt32: String] = [:]
    /// By the name of the graph and that of the operation.
    private var entries: [String: Entry] = [:]
    private var begun: Set<AttemptID> = []
    /// The attempt that holds each key.
    private var holders: [String: AttemptID] = [:]
    /// The last event that somebody saw, and the ends among them.
    private(set) var lastEvent: UInt64 = 0
    private var seenEnds: [OperationID: Int] = [:]

    init(_ scenario: ShellScenario, trace: ((String) -> Void)?) {
        mayDrop = scenario.retention != nil
        mayFailUnsent = scenario.inputsAreLimited
        self.trace = trace
    }

    func breaks(_ rule: String) {
        note("broken: \(rule)")
        if broken == nil { broken = rule }
    }

    var isTraced: Bool { trace != nil }

    func note(_ what: @autoclosure () -> String) {
        trace?(what())
    }

    private func mix(_ values: UInt64...) {
        for value in values { hash = (hash &* 0x100_0000_01b3) ^ value }
    }

    var unfinished: [String] {
        graphs.filter { !$0.value.isFinished }.keys.sorted()
    }

    /// The operations of which a client was told an outcome, and no event has.
    var unseenEnds: [String] {
        entries.filter { entry in entry.value.told.map { seenEnds[$0.id] == nil } ?? false }
            .keys.sorted()
    }

    /// What a client has waited for last, for a report.
    private(set) var waitsFor = ""

    func waits(_ what: @autoclosure () -> String) { waitsFor = what() }

    // MARK: - What clients want

    func submits(_ graph: GraphDescription) {
        graphs[graph.name] = Graph(description: graph)
        for operation in graph.operations {
            entries["\(graph.name)/\(operation.name)"] = Entry(description: operation)
        }
    }

    func acknowledged(_ name: String, as id: UInt32) {
        if let known = graphs[name]?.id, known != id, !mayDrop {
            breaks("\(name) is graph \(known), and \(id) after it was submitted again")
        }
        if let other = names[id], other != name {
            breaks("graph \(id) was \(other) and is \(name)")
        }
        graphs[name]?.id = id
        names[id] = name
    }

    func adds(_ addition: GraphDescription, to name: String) {
        for operation in addition.operations {
            entries["\(name)/\(operation.name)"] = Entry(description: operation)
        }
    }

    func added(_ addition: GraphDescription, to name: String) {
        graphs[name]?.added.formUnion(addition.operations.map(\.name))
    }

    func cancels(_ name: String) { graphs[name]?.isCancelled = true }
    func retries(_ name: String) { graphs[name]?.retries += 1 }
    func finished(_ name: String) { graphs[name]?.isFinished = true }

    // MARK: - What workers do

    func isCancelled(_ graph: String) -> Bool { graphs[graph]?.isCancelled ?? false }

    /// Whether a client submitted it with its graph.
    func isSubmitted(_ operation: DispatchedOperation) -> Bool {
        let index = Int(operation.held.operation.index)
        let operations = graphs[operation.graphName]?.description.operations ?? []
        return index < operations.count && operations[index].name == operation.name
    }

    /// The name of an operation that a client submitted with this graph.
    func name(of index: Int, in graph: String) -> String {
        graphs[graph]?.description.operations[index].name ?? ""
    }

    /// How many a client submitted with it.
    func operationCount(of graph: String) -> Int {
        graphs[graph]?.description.operations.count ?? 0
    }

    func log(of attempt: AttemptID) -> String { "printed by \(attempt)\n" }

    /// The last attempt that has printed anything is one that the operation could end with.
    func told(_ log: [LogView], of key: String) {
        for part in log where part.bytes != Array("printed by \(part.attempt)\n".utf8) {
            breaks("\(key) has printed “\(part.text)” in attempt \(part.attempt)")
        }
        guard let entry = entries[key], entry.told?.outcome == .succeeded else { return }
        let last = log.last?.attempt
        if !entry.outputs.keys.contains(where: { "\($0)" == last }) {
            breaks("the last that \(key) has printed is of attempt \(last ?? "none")")
        }
    }

    func awaited(_ name: String, _ outcomes: [OutcomeKind], in graph: String) {
        guard outcomes.count == 1, let outcome = outcomes.first else {
            return breaks("\(graph)/\(name) was waited for, and has \(outcomes.count) outcomes")
        }
        if outcome == .succeeded, entries["\(graph)/\(name)"]?.outputs.isEmpty != false {
            breaks("who waited for \(graph)/\(name) is told that it has succeeded")
        }
    }

    func read(_ name: String, _ output: Payload?, in graph: String) {
        let text = output.map { String(decoding: $0.bytes, as: UTF8.self) }
        let outputs = entries["\(graph)/\(name)"]?.outputs.values.map { $0 } ?? []
        if text.map({ !outputs.contains($0) }) ?? false {
            breaks("who read what \(graph)/\(name) left got \(text ?? "nothing")")
        }
        let entry = entries["\(graph)/\(name)"]
        if text == nil, entry?.told?.outcome == .succeeded, graphs[graph]?.retries == 0 {
            breaks("who read what \(graph)/\(name) left is told that it left nothing")
        }
    }

    /// Two operations, of which the second depends on the first.
    func addition(of names: [String], by operation: DispatchedOperation) -> GraphDescription {
        var operations: [OperationDescription] = []
        for name in names {
            let input = Payload(bytes: Array("\"\(name)\"".utf8))
            let work = Work.registered(kind: ShellSimulation.kind, input: input)
            var added = OperationDescription(name: name, work: work)
            added.dependencies = operations.map { DependencyDescription($0.name, .finished) }
            operations.append(added)
            let key = "\(operation.graphName)/\(name)"
            if entries[key] == nil {
                entries[key] = Entry(description: added, parent: operation.name)
            }
        }
        return GraphDescription(name: operation.graphName, operations: operations)
    }

    func output(of operation: DispatchedOperation, isLong: Bool) -> String {
        let text = "\(Self.key(of: operation))#\(operation.held.attempt)"
        return isLong ? text + String(repeating: ".", count: 150) : text
    }

    private static func key(of dependency: DependencyDescription, in graph: String) -> String {
        dependency.name.contains("/") ? dependency.name : "\(graph)/\(dependency.name)"
    }

    private static func key(of operation: DispatchedOperation) -> String {
        "\(operation.graphName)/\(operation.name)"
    }

    /// - Parameter latestDate: The latest date that the calendar has had.
    func started(
        _ operation: DispatchedOperation,
        _ inputs: [NamedInput],
        latestDate: WallTime
    ) {
        let attempt = operation.held.attempt
        let key = Self.key(of: operation)
        starts += 1
        mix(attempt.number, UInt64(attempt.epoch.rawValue), UInt64(operation.held.operation.index))
        guard begun.insert(attempt).inserted else { return breaks("\(attempt) starts twice") }
        if [Self.fired, Self.ticked].contains(operation.graphName) { return }
        guard let entry = entries[key], let graph = graphs[operation.graphName] else {
            return breaks("\(key) starts, which nobody submitted")
        }
        if let id = graph.id, !mayDrop, id != operation.held.operation.graph.rawValue {
            breaks("\(key) starts in graph \(operation.held.operation.graph)")
        }
        if entry.description.work != operation.work {
            breaks("\(key) starts with other work: \(operation.work)")
        }
        if let date = entry.description.notBefore, date > latestDate {
            breaks("\(key) starts before its date")
        }
        for name in entry.description.exclusive {
            if let holder = holders.updateValue(attempt, forKey: name) {
                breaks("\(key) starts with a key that \(holder) holds")
            }
        }
        if let told = entry.told, told.round == graph.retries {
            breaks("\(key) starts again after it was said to be \(told.outcome)")
        }
        let given = checked(inputs, of: entry, key, operation.graphName)
        entries[key]?.inputs[attempt] = given
    }

    /// What it is given must be what its dependencies left, in their order.
    private func checked(
        _ inputs: [NamedInput],
        of entry: Entry,
        _ key: String,
        _ graph: String
    ) -> [String: String] {
        let dependencies = entry.description.dependencies
        if inputs.map(\.name) != dependencies.map(\.name) {
            breaks("\(key) gets \(inputs.map(\.name)), and depends on \(dependencies.map(\.name))")
        }
        var given: [String: String] = [:]
        for (dependency, input) in zip(dependencies, inputs) {
            let other = entries[Self.key(of: dependency, in: graph)]
            let text = input.output.map { String(decoding: $0.bytes, as: UTF8.self) } ?? ""
            given[dependency.name] = text
            let outputs = other?.outputs.values.map { $0 } ?? []
            switch dependency.condition {
            case .unlessFailed, .succeeded:
                // A cancelled operation of another graph releases, too.
                let mayBeCancelled =
                    dependency.name.split(separator: "/").first
                    .flatMap { graphs[String($0)] }?.isCancelled ?? false
                if text.isEmpty, mayBeCancelled { continue }
                if outputs.isEmpty {
                    breaks("\(key) starts before \(dependency.name) has succeeded")
                } else if !outputs.contains(text), !(mayDrop && input.isDropped) {
                    breaks("\(key) gets “\(text)” as what \(dependency.name) left")
                }
            case .failed:
                if other?.hasFailed != true, !mayFailUnsent {
                    breaks("\(key) starts before \(dependency.name) has failed")
                }
            case .finished:
                // What depends on others may be skipped, and what is cancelled never runs.
                let mayHaveEnded =
                    !outputs.isEmpty || other?.hasFailed == true || mayFailUnsent
                    || other?.description.dependencies.isEmpty == false
                    || graphs[graph]?.isCancelled == true
                if !mayHaveEnded { breaks("\(key) starts before \(dependency.name) has ended") }
                if !text.isEmpty, !outputs.contains(text) {
                    breaks("\(key) gets “\(text)” as what \(dependency.name) left")
                }
            }
        }
        return given
    }

    /// Nothing of it runs any more.
    func stopped(_ attempt: AttemptID) {
        holders = holders.filter { $0.value != attempt }
    }

    func ended(
        _ operation: DispatchedOperation,
        _ end: AttemptEnd,
        _ output: Payload,
        added: [String]
    ) {
        let key = Self.key(of: operation)
        let attempt = operation.held.attempt
        stopped(attempt)
        if end == .succeeded {
            entries[key]?.outputs[attempt] = String(decoding: output.bytes, as: UTF8.self)
            entries[key]?.added[attempt] = added
        } else if case .failed = end {
            entries[key]?.hasFailed = true
        }
    }

    // MARK: - What clients are told

    func told(_ views: [OperationView], of name: String) {
        guard let graph = graphs[name] else { return }
        if Set(views.map(\.name)).count != views.count {
            breaks("\(name) has operations of the same name: \(views.map(\.name))")
        }
        let shown = Set(views.map(\.name))
        for operation in graph.added.union(graph.description.operations.map(\.name))
        where !shown.contains(operation) {
            breaks("\(name) has lost \(operation)")
        }
        for view in views { told(view, graph) }
    }

    private func told(_ view: OperationView, _ graph: Graph) {
        let key = "\(graph.description.name)/\(view.name)"
        guard let entry = entries[key] else {
            return breaks("\(key) is shown, which nobody submitted")
        }
        if let told = entry.told, told.attempts > view.attempts {
            breaks("\(key) had \(told.attempts) attempts, and now \(view.attempts)")
        }
        if let told = entry.told, told.round == graph.retries, told.outcome != view.outcome {
            let outcome = view.outcome.map { "\($0)" } ?? "not finished"
            breaks("\(key) was said to be \(told.outcome), and now \(outcome)")
        }
        guard let outcome = view.outcome else { return }
        mix(UInt64(outcome.rawValue), UInt64(view.attempts), UInt64(view.index))
        if outcome == .succeeded, entry.outputs.isEmpty {
            breaks("\(key) is said to have succeeded, and no attempt has")
        }
        if outcome == .failed, !entry.hasFailed, !mayFailUnsent {
            breaks("\(key) is said to have failed, and no attempt has")
        }
        let id = OperationID(graph: GraphID(rawValue: view.graph), index: view.index)
        entries[key]?.told = Told(
            id: id,
            outcome: outcome,
            round: graph.retries,
            attempts: view.attempts
        )
    }

    /// The outputs of all operations of a finished graph that succeeded, by name.
    func told(_ outputs: [String: String], _ views: [OperationView], of name: String) {
        let outcomes = Dictionary(
            views.map { ($0.name, $0.outcome) },
            uniquingKeysWith: { first, _ in first }
        )
        for view in views {
            guard let entry = entries["\(name)/\(view.name)"] else { continue }
            // A retry gives some operations another outcome, and lets others be that saw the first.
            let isFirstRound = graphs[name]?.retries == 0
            if isFirstRound {
                check(view, entry, outcomes, isCancelled: graphs[name]?.isCancelled ?? false)
            }
            guard view.outcome == .succeeded else { continue }
            guard let attempt = entry.outputs.first(where: { $0.value == outputs[view.name] })?.key
            else {
                breaks("\(name)/\(view.name) left “\(outputs[view.name] ?? "nothing")”")
                continue
            }
            for (dependency, text) in entry.inputs[attempt] ?? [:]
            where isFirstRound && outcomes[dependency] == .succeeded
                && text != outputs[dependency]
            {
                breaks("\(name)/\(view.name) got what \(dependency) has left in another attempt")
            }
            for added in entry.added[attempt] ?? [] where outcomes[added] == nil {
                breaks("\(name)/\(added) was added, and is not there")
            }
        }
    }

    /// Its outcome must follow from those of its dependencies.
    private func check(
        _ view: OperationView,
        _ entry: Entry,
        _ outcomes: [String: OutcomeKind?],
        isCancelled: Bool
    ) {
        guard let outcome = view.outcome else {
            return breaks("\(view.name) of a finished graph has no outcome")
        }
        // What other graphs do is told elsewhere, if at all.
        let own = entry.description.dependencies.filter { !$0.name.contains("/") }
        let isReleased = own.allSatisfy { dependency in
            guard let other = outcomes[dependency.name].flatMap({ $0 }) else { return false }
            return dependency.condition.isSatisfied(by: other)
        }
        let isKnown = own.count == entry.description.dependencies.count
        switch outcome {
        case .succeeded, .failed:
            if !isReleased { breaks("\(view.name) ran, though a dependency forbade it") }
        case .skipped:
            if isReleased, isKnown {
                breaks("\(view.name) is skipped, though no dependency forbade it")
            }
        case .cancelled:
            if !isCancelled { breaks("\(view.name) is cancelled, and nobody asked for it") }
        }
    }

    // MARK: - Events

    func saw(_ event: EventView) {
        if event.sequence != lastEvent + 1 {
            breaks("event \(event.sequence) comes after event \(lastEvent)")
        }
        lastEvent = event.sequence
        mix(event.sequence)
        guard event.kind.known == .finished, let operation = event.operation else { return }
        // Of a dropped graph, nobody knows the names of operations.
        let id = OperationID(
            graph: GraphID(rawValue: operation.graph),
            index: operation.index
        )
        seenEnds[id, default: 0] += 1
        let retries = names[operation.graph].flatMap { graphs[$0] }?.retries ?? 0
        if seenEnds[id, default: 0] > 1 + retries {
            breaks("\(id) has ended \(seenEnds[id] ?? 0) times, say the events")
        }
    }
}
