import ArgumentParser
import OperonModel
import OperonPorts
import OperonRuntime

/// What a million operations cost a coordinator that keeps them: time, its file, its memory; and
/// how long one takes to know them again. One JSON object for each step.
///
/// Each step is a call of its own, so that no step's memory hides another's.
@main
struct CoordinatorBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "coordinator-benchmark",
        abstract: "Run graphs through a whole coordinator with SQLite and a worker, all in here.",
        subcommands: [Run.self, Wait.self, Restart.self, Cancel.self]
    )
}

struct GraphArguments: ParsableArguments {
    @Argument(help: "The store; it must not exist.")
    var path: String

    @Option(help: "Operations of the graph, which do nothing.")
    var operations = 1_000_000

    @Option(help: "One of: \(Shape.allCases.map(\.rawValue).joined(separator: ", ")).")
    var shape = Shape.layered
}

/// Who depends on whom.
enum Shape: String, CaseIterable, ExpressibleByArgument {
    /// Layers of 500, each operation with 2.5 dependencies on the layer before.
    case layered
    case independent
}

struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Submit a graph to a new store and run it to its end."
    )

    @OptionGroup var graph: GraphArguments

    func run() async throws {
        let bench = try await Bench.open(graph.path)
        var meter = Meter("run", graph.operations)
        try await bench.serve { bench in
            let id = try await bench.submit(graph, isSuspended: false, &meter)
            await bench.service.waitUntilFinished(id)
            try await bench.service.durable()
            meter.lap("run")
            let counts = try await bench.client.graph("\(id)").counts
            guard counts.succeeded == graph.operations else {
                throw BenchmarkError(description: "not all of them succeeded: \(counts)")
            }
        }
        try meter.say(fileAt: graph.path)
    }
}

struct Wait: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Submit a graph that waits in a suspended queue, and die."
    )

    @OptionGroup var graph: GraphArguments

    func run() async throws {
        let bench = try await Bench.open(graph.path)
        var meter = Meter("wait", graph.operations)
        try await bench.serve { bench in
            _ = try await bench.submit(graph, isSuspended: true, &meter)
            // Without the last words that a coordinator has otherwise.
            try meter.say(fileAt: graph.path)
            Process.die()
        }
    }
}

struct Restart: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Open what waits, and start the first of it."
    )

    @Argument(help: "A store that `wait` left.")
    var path: String

    func run() async throws {
        var meter = Meter("restart", 0)
        let bench = try await Bench.open(path)
        meter.lap("restore")
        try await bench.serve { bench in
            _ = try await bench.client.resume(.queue(QueueSettings.defaultName))
            await bench.started.wait()
            meter.lap("firstStart")
            meter.operations = try await bench.client.graph("@latest").counts.total
            try meter.say(fileAt: path)
            Process.die()
        }
    }
}

struct Cancel: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Open what waits, and cancel its graph in one call."
    )

    @Argument(help: "A store that `wait` left.")
    var path: String

    func run() async throws {
        var meter = Meter("cancel", 0)
        let bench = try await Bench.open(path)
        meter.lap("restore")
        try await bench.serve { bench in
            var request = CancelRequest()
            request.reason = "enough"
            let answer = try await bench.client.cancel(.graph("@latest"), request)
            meter.lap("cancel")
            let view = try await bench.client.graph("@latest")
            meter.lap("question")
            meter.operations = view.counts.total
            guard answer.isEffective, view.counts.cancelled == view.counts.total else {
                throw BenchmarkError(description: "not all of them were cancelled: \(view)")
            }
            try meter.say(fileAt: path)
            Process.die()
        }
    }
}
