import ArgumentParser
import FoundationEssentials
import OperonCore
import OperonModel
import OperonTestKit

/// What an operation costs in the core alone: time, and memory while it waits. One JSON object a
/// line, for each shape and size.
@main
struct CoreBenchmark: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "core-benchmark",
        abstract: "Run graphs through the scheduler, with no transport, and print what they cost."
    )

    @Argument(help: "Numbers of operations, ascending, so that memory of one run hides no other's.")
    var sizes: [Int] = [10_000, 100_000, 1_000_000]

    @Option(help: "One of: \(Shape.allCases.map(\.rawValue).joined(separator: ", ")).")
    var shape = Shape.layered

    @Option(help: "Workers, each with a connection of its own.")
    var workers = 4

    @Option(help: "Slots of each worker.")
    var slots = 8

    @Option(help: "Queues over which the operations are spread.")
    var queues = 1

    @Option(help: "Demand classes over which the operations are spread; 0: they ask for nothing.")
    var demands = 0

    @Option(
        help: """
            Processors that each worker offers; without it, more than all slots need. Demand class \
            N asks for N processors.
            """
    )
    var cpus: Int?

    @Option(help: "Operations in a dispatch, and events in a message, at most.")
    var batch = 64

    func validate() throws {
        guard let cpus else { return }
        guard cpus >= max(1, demands), cpus <= 1_000_000 else {
            throw ValidationError("--cpus must be from the number of demand classes to 1000000")
        }
    }

    func run() throws {
        for size in sizes {
            guard shape != .triggers else {
                var hour = TriggerHour(triggers: size)
                print(try hour.measure())
                continue
            }
            var run = CoreRun(
                shape: shape,
                operations: size,
                workers: workers,
                slots: slots,
                queues: queues,
                demands: demands,
                cpus: cpus,
                batch: batch
            )
            print(try run.measure())
        }
    }
}

/// What is asked of the core.
enum Shape: String, CaseIterable, ExpressibleByArgument {
    /// Layers of 500, each operation with 2.5 dependencies on the layer before.
    case layered
    /// One operation releases all others.
    case fanOut
    /// One operation waits for all others.
    case fanIn
    /// Each waits for the one before.
    case chain
    /// No dependencies.
    case independent
    /// A layered graph, cancelled at once.
    case cancelled
    /// No dependencies; the graph is suspended and resumed ten times before it runs.
    case suspended
    /// No dependencies; each operation is suspended, then each is resumed, before they run.
    case suspendedOneByOne
    /// Graphs of one operation each, which are kept when they have ended.
    case keptGraphs
    /// The same, and each is dropped when it has ended.
    case droppedGraphs
    /// As many triggers as there would be operations, each firing once a minute for an hour.
    case triggers
}
