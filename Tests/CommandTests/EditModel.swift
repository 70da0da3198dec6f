import Glibc
import OperonCore

/// A random graph, its file, and the edits of it.
///
/// The value of an operation names its version and the values of all its dependencies, so it shows
/// of which versions they were.
struct EditModel {
    struct Operation {
        let name: String
        var version = 1
        var dependencies: [String]
        var fails = false
        /// Concerns only how it would run: another one is no reason to run it again.
        var priority = "normal"
        /// Not empty: it is repeated for these elements, which are found while the graph runs.
        var elements: [Int] = []
        /// Whether they fail is not in the file: mended, they are the same as before.
        var failing: Set<Int> = []

        var isRepeated: Bool { !elements.isEmpty }
        var list: String { "\(name).list" }
        var adding: String { "\(name).forEach" }

        func element(_ number: Int) -> String { "\(name)[\(number)]" }

        /// The names of what leaves a value.
        var names: [String] { isRepeated ? elements.map(element) : [name] }
    }

    /// An operation as plans have it: a repeated one has three of them beside its elements.
    struct Planned {
        enum Kind {
            /// It leaves a value.
            case command
            /// It prints the elements.
            case list
            /// It adds the elements.
            case adding
            /// It waits for all elements.
            case group
        }

        let name: String
        let kind: Kind
        /// What it does, apart from its dependencies.
        let work: String
        let dependencies: Set<String>
        let operation: Operation
    }

    /// Each after those that it depends on.
    private(set) var operations: [Operation] = []
    /// What edits have removed; another edit may bring it back.
    private var removed: [Operation] = []
    private var nextNumber = 0

    init(_ count: Int, _ generator: inout SeededGenerator) {
        for _ in 0..<count { add(&generator) }
    }

    // MARK: - Edits

    private mutating func add(_ generator: inout SeededGenerator) {
        let names = operations.map(\.name)
            .filter { _ in Int.random(in: 0..<3, using: &generator) == 0 }.sorted()
        var operation = Operation(name: "o\(nextNumber)", dependencies: names)
        if Int.random(in: 0..<3, using: &generator) == 0 {
            operation.elements = Array(1...Int.random(in: 1...4, using: &generator))
            // It could take the outputs of other elements only one by one.
            let repeated = operations.filter(\.isRepeated).map(\.name)
            operation.dependencies.removeAll(where: repeated.contains)
            operation.failing = Set(
                operation.elements.filter { _ in
                    Int.random(in: 0..<3, using: &generator) == 0
                }
            )
        } else {
            operation.fails = Int.random(in: 0..<6, using: &generator) == 0
        }
        operations.append(operation)
        nextNumber += 1
    }

    mutating func edit(_ generator: inout SeededGenerator) {
        for place in operations.indices { edit(place, &generator) }
        if Bool.random(using: &generator), operations.count > 2 {
            let place = Int.random(in: 0..<operations.count, using: &generator)
            let gone = operations.remove(at: place)
            removed.append(gone)
            for index in operations.indices {
                operations[index].dependencies.removeAll { $0 == gone.name }
            }
        }
        if Int.random(in: 0..<3, using: &generator) == 0 { bringBack(&generator) }
        if Bool.random(using: &generator), operations.count < 8 { add(&generator) }
    }

    private mutating func edit(_ place: Int, _ generator: inout SeededGenerator) {
        switch Int.random(in: 0..<12, using: &generator) {
        case 0, 1: operations[place].version += 1
        case 2, 3:
            guard let element = operations[place].elements.randomElement(using: &generator) else {
                operations[place].fails.toggle()
                operations[place].version += 1
                return
            }
            operations[place].failing.formSymmetricDifference([element])
        case 4 where !operations[place].dependencies.isEmpty:
            operations[place].dependencies.removeFirst()
        case 5:
            let other = operations[..<place].randomElement(using: &generator)
            guard let other, !operations[place].dependencies.contains(other.name),
                !(operations[place].isRepeated && other.isRepeated)
            else { return }
            operations[place].dependencies.append(other.name)
            // What stays has its inputs in the order that its dependencies had when it ran.
            operations[place].dependencies.sort()
        case 6 where operations[place].isRepeated:
            operations[place].elements.append(operations[place].elements.count + 1)
        case 7:
            let isHigh = operations[place].priority == "high"
            operations[place].priority = isHigh ? "normal" : "high"
        default: return
        }
    }

    /// As it was, without the dependencies that are not there any more.
    private mutating func bringBack(_ generator: inout SeededGenerator) {
        guard let place = removed.indices.randomElement(using: &generator) else { return }
        var operation = removed.remove(at: place)
        let names = operations.map(\.name)
        operation.dependencies.removeAll { !names.contains($0) }
        operations.append(operation)
    }

    /// Nothing fails any more.
    mutating func mend() {
        for index in operations.indices {
            operations[index].failing = []
            guard operations[index].fails else { continue }
            operations[index].fails = false
            operations[index].version += 1
        }
    }

    // MARK: - What it is

    /// Each after those that it depends on.
    var planned: [Planned] {
        operations.flatMap { operation in
            let dependencies = Set(operation.dependencies)
            let work = "version \(operation.version)"
            // Contrary to what docs/COMMANDS.md says, elements that are found while the graph runs
            // run again after another priority, all of them.
            let elementWork = "\(work), priority \(operation.priority)"
            guard operation.isRepeated else {
                return [
                    Planned(
                        name: operation.name,
                        kind: .command,
                        work: work,
                        dependencies: dependencies,
                        operation: operation
                    )
                ]
            }
            return [
                Planned(
                    name: operation.list,
                    kind: .list,
                    work: "\(operation.elements)",
                    dependencies: [],
                    operation: operation
                ),
                Planned(
                    name: operation.adding,
                    kind: .adding,
                    work: elementWork,
                    dependencies: dependencies.union([operation.list]),
                    operation: operation
                ),
                Planned(
                    name: operation.name,
                    kind: .group,
                    work: "",
                    dependencies: [operation.adding],
                    operation: operation
                ),
            ]
        }
    }

    /// A value is the version, and the inputs as the file of `OPERON_INPUTS` has them, without its
    /// quotes and braces.
    var values: [String: String] {
        var values: [String: String] = [:]
        var names: [String: [String]] = [:]
        for operation in operations {
            let inputs = operation.dependencies.flatMap { names[$0] ?? [] }
                .map { "\($0):\(values[$0] ?? "")" }.joined(separator: ",")
            names[operation.name] = operation.names
            for name in operation.names { values[name] = "\(operation.version)(\(inputs))" }
        }
        return values
    }

    /// Each command appends its name to `began` first of all, and to `ran` when it has succeeded.
    var file: String {
        let repeated = Set(operations.filter(\.isRepeated).map(\.name))
        let lines = operations.map { operation in
            let name = operation.name + (operation.isRepeated ? "[$item]" : "")
            let end =
                operation.isRepeated
                ? "test ! -e \"fail.\(name)\"" : operation.fails ? "exit 1" : "true"
            let line = """
                echo "\(name)" >> began; \
                value="\(operation.version)($(cat $OPERON_INPUTS | tr -d "{}\\""))"; \
                \(end) || exit 1; printf "\\"%s\\"" "$value" > $OPERON_OUTPUT; \
                echo "$value" > "out.\(name)"; echo "\(name)" >> ran
                """
            let names = operation.dependencies
                .map { repeated.contains($0) ? "\"\($0)[*]\"" : $0 }.joined(separator: ", ")
            let fields = "priority: \(operation.priority), dependencies: [\(names)]"
            guard operation.isRepeated else {
                return "  \(operation.name): { run: '\(line)', \(fields) }"
            }
            let list = operation.list
            let print = """
                echo \(list) >> began; echo "\(operation.elements)" > $OPERON_OUTPUT; \
                echo \(list) >> ran
                """
            return """
                  \(list): { run: '\(print)' }
                  \(operation.name): { run: '\(line)', forEach: { output: \(list) }, \(fields) }
                """
        }
        return "name: g\noperations:\n" + lines.joined(separator: "\n") + "\n"
    }

    /// Writes its file, and what makes elements fail.
    func write(to workspace: Workspace) throws -> String {
        for operation in operations {
            for element in operation.elements {
                let name = "fail.\(operation.element(element))"
                if operation.failing.contains(element) {
                    _ = try workspace.write(name, "")
                } else {
                    unlink(workspace.path(name))
                }
            }
        }
        return try workspace.write("g.yaml", file)
    }
}
