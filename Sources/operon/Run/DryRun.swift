import Logging
import OperonArguments
import OperonCore
import OperonGraphFile
import OperonModel
import OperonRuntime
import OperonTerminal

/// What `run --dry-run` prints.
struct DryRun {
    let graph: LoadedGraph
    let console: Console
    /// Whether elements of a repeated operation that have the same line share it.
    let folds: Bool

    /// What `--output json` prints.
    private struct Plan: Encodable {
        var operations: [Planned] = []
    }

    private struct Planned: Encodable {
        let name: String
        let kind: String
        /// `nil`: it is no command.
        var command: [String]?
        let isUpToDate: Bool
    }

    /// Prints all operations, each after those that it depends on.
    func print() throws {
        guard case .order(let order) = graph.compiled.topology.sorted() else {
            preconditionFailure("a compiled graph has no cycle")
        }
        let forecast = FileForecast(of: graph.description, order: order, look: FileLook.look)
        var plan = Plan()
        var lines: [String] = []
        for index in order {
            let operation = graph.description.operations[Int(index)]
            let isUpToDate = forecast.upToDate.contains(index)
            var planned = Planned(
                name: operation.name,
                kind: operation.work.kind,
                isUpToDate: isUpToDate
            )
            if case .command(let command) = operation.work { planned.command = command.arguments }
            plan.operations.append(planned)
            let name = TerminalText.line(operation.name)
            let what = isUpToDate ? ["up to date"] : Self.what(operation)
            // A script of several lines stands below its name.
            lines +=
                what.count == 1 ? ["\(name): \(what[0])"] : ["\(name):"] + what.map { "    " + $0 }
        }
        let names = plan.operations.filter { !$0.isUpToDate }.map(\.name)
        try console.show(plan, names: names) { _ in lines }
    }

    /// Prints what a run that continues the one in a store would do.
    func print(resuming path: String, again: Set<String>) async throws {
        struct Found: Error {
            let forecast: ContinuationView?
        }
        let logger = Logger(label: "operon") { _ in SwiftLogNoOpLogHandler() }
        do {
            // The store is opened as by a run, which then goes no further.
            _ = try await CoordinatorHost.open(path: path, .init(), logger: logger, warn: { _ in })
            {
                scheduler,
                restored in
                if let restored, !restored.isRun {
                    throw Failure(ExitStatus.usage, RunSession.foreignStore(path))
                }
                throw Found(
                    forecast: try restored?.forecast(
                        of: graph.description,
                        failFast: graph.compiled.failFast,
                        again: again,
                        scheduler
                    )
                )
            }
        } catch let found as Found {
            guard let forecast = found.forecast else { return try print() }
            let view = graph.shown(forecast)
            let names = view.operations.filter { $0.stays == nil }.map(\.name)
            try console.show(view, names: names) {
                ContinuationText(view, $0.style).plan(folds: folds)
            }
        }
    }

    private static func what(_ operation: OperationDescription) -> [String] {
        switch operation.work {
        case .nothing: return ["nothing"]
        case .wait(let duration): return ["wait \(TimeFormat.short(duration))"]
        case .registered(Work.forEachKind, _):
            return ["adds an operation for each element that it finds"]
        case .registered(let kind, _): return ["operation \(TerminalText.line(kind))"]
        case .external: return ["external"]
        case .command(let command):
            var lines = CommandText.line(command.arguments)
                .split(separator: "\n", omittingEmptySubsequences: false)
                .map { TerminalText.line(String($0)) }
            while lines.count > 1, lines.last == "" { lines.removeLast() }
            return lines
        }
    }
}
