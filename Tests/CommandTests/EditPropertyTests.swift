import Foundation
import Glibc
import OperonCore
import OperonFaultKit
import Testing

/// Random graphs, random edits, and kill -9 at any moment: what an operation has at the end is what
/// a run of the last file alone would have given, and what succeeded and stayed did not run again.
@Suite struct EditPropertyTests {
    /// The value of an operation names its version and the values of all its dependencies, so it
    /// shows of which versions they were.
    private struct Model {
        struct Operation {
            let name: String
            var version = 1
            var dependencies: [String]
            var fails = false
            /// Not empty: it is repeated for these elements, which are found while the graph runs.
            var elements: [Int] = []
            /// Whether they fail is not in the file: mended, they are the same as before.
            var failing: Set<Int> = []

            /// The names of what leaves a value.
            var names: [String] {
                elements.isEmpty ? [name] : elements.map { "\(name)[\($0)]" }
            }
        }

        var operations: [Operation]
        private var nextNumber: Int

        init(_ count: Int, _ generator: inout SeededGenerator) {
            operations = []
            nextNumber = 0
            for _ in 0..<count { add(&generator) }
        }

        private mutating func add(_ generator: inout SeededGenerator) {
            let names = operations.map(\.name)
                .filter { _ in Int.random(in: 0..<3, using: &generator) == 0 }
            var operation = Operation(name: "o\(nextNumber)", dependencies: names)
            if Int.random(in: 0..<3, using: &generator) == 0 {
                operation.elements = Array(1...Int.random(in: 1...4, using: &generator))
                // It could take the outputs of other elements only one by one.
                let repeated = operations.filter { !$0.elements.isEmpty }.map(\.name)
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

        /// Nothing comes back as it was before: whatever runs twice without a kill is a mistake.
        mutating func edit(_ generator: inout SeededGenerator) {
            for index in operations.indices {
                switch Int.random(in: 0..<5, using: &generator) {
                case 0: operations[index].version += 1
                case 1 where !operations[index].elements.isEmpty:
                    let element = operations[index].elements.randomElement(using: &generator) ?? 1
                    operations[index].failing.formSymmetricDifference([element])
                case 1:
                    operations[index].fails.toggle()
                    operations[index].version += 1
                case 2 where !operations[index].dependencies.isEmpty:
                    operations[index].dependencies.removeFirst()
                default: continue
                }
            }
            if Bool.random(using: &generator), operations.count > 2 {
                let place = Int.random(in: 0..<operations.count, using: &generator)
                let gone = operations.remove(at: place).name
                for index in operations.indices {
                    operations[index].dependencies.removeAll { $0 == gone }
                }
            }
            if Bool.random(using: &generator) { add(&generator) }
        }

        mutating func mend() {
            for index in operations.indices {
                operations[index].failing = []
                guard operations[index].fails else { continue }
                operations[index].fails = false
                operations[index].version += 1
            }
        }

        /// A value is the version, and the inputs as the file of `OPERON_INPUTS` has them, without
        /// its quotes and braces.
        var values: [String: String] {
            var values: [String: String] = [:]
            var names: [String: [String]] = [:]
            for operation in operations {
                let inputs = operation.dependencies.flatMap { names[$0] ?? [] }.sorted()
                    .map { "\($0):\(values[$0] ?? "")" }.joined(separator: ",")
                names[operation.name] = operation.names
                for name in operation.names { values[name] = "\(operation.version)(\(inputs))" }
            }
            return values
        }

        var file: String {
            let repeated = Set(operations.filter { !$0.elements.isEmpty }.map(\.name))
            let lines = operations.map { operation in
                let isRepeated = repeated.contains(operation.name)
                let name = operation.name + (isRepeated ? "[$item]" : "")
                let end =
                    isRepeated
                    ? "test ! -e fail.\(name)" : operation.fails ? "exit 1" : "true"
                let line = """
                    value="\(operation.version)($(cat $OPERON_INPUTS | tr -d "{}\\""))"; \
                    \(end) || exit 1; printf "\\"%s\\"" "$value" > $OPERON_OUTPUT; \
                    echo "$value" > "out.\(name)"; echo "\(name) $value" >> ran
                    """
                let names = operation.dependencies
                    .map { repeated.contains($0) ? "\"\($0)[*]\"" : $0 }.joined(separator: ", ")
                guard isRepeated else {
                    return "  \(name): { run: '\(line)', dependencies: [\(names)] }"
                }
                let list = "\(operation.name).list"
                return """
                      \(list): { run: 'echo "\(operation.elements)" > $OPERON_OUTPUT' }
                      \(operation.name):
                        run: '\(line)'
                        forEach: { output: \(list) }
                        dependencies: [\(names)]
                    """
            }
            return "name: g\noperations:\n" + lines.joined(separator: "\n") + "\n"
        }
    }

    @Test(arguments: 0..<10 as Range<UInt64>)
    func `whatever is edited and killed, the end is that of the last file`(
        seed: UInt64
    ) async throws {
        try await Workspace.run { workspace in
            var generator = SeededGenerator(seed: seed)
            var model = Model(Int.random(in: 3...7, using: &generator), &generator)
            var kills = 0
            for round in 0..<4 {
                if round > 0 { model.edit(&generator) }
                let run = try start(model, workspace)
                let more = Int.random(in: 0...4, using: &generator)
                let before = workspace.lines(of: "ran").count
                while !run.hasEnded, workspace.lines(of: "ran").count < before + more {
                    // Its process tells nobody that it has written the line.
                    try await Task.sleep(for: .milliseconds(5))
                }
                if !run.hasEnded {
                    run.signal(SIGKILL)
                    kills += 1
                }
                _ = try await run.end()
                try await workspace.waitUntilNoProcess(named: "sh")
            }
            model.mend()
            let last = try await start(model, workspace).end()
            #expect(last.end == .exit(0), "\(last.errors)")
            for (name, value) in model.values {
                let found = try workspace.read("out.\(name)")
                #expect(found == value + "\n", "\(name) of \(seed) in \(model.file)")
            }
            let ran = workspace.lines(of: "ran")
            // A kill may come after an operation has ended and before the store knows it.
            #expect(ran.count - Set(ran).count <= kills, "\(ran)")
        }
    }

    private func start(_ model: Model, _ workspace: Workspace) throws -> Program {
        let file = try workspace.write("g.yaml", model.file)
        for operation in model.operations {
            for (element, name) in zip(operation.elements, operation.names) {
                if operation.failing.contains(element) {
                    _ = try workspace.write("fail.\(name)", "")
                } else {
                    unlink(workspace.path("fail.\(name)"))
                }
            }
        }
        let arguments = ["run", "--local", "-j1", file, "--store", "r.db", "--resume"]
        return try workspace.start("operon", arguments)
    }
}
