import ArgumentParser
import Operon

/// The Mandelbrot set, by many hands.
@main struct Mandelbrot: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Renders the Mandelbrot set on the workers of a cluster.",
        discussion: """
            Start some with --worker, then: operon run --broker URL mandelbrot.jsonl
            """
    )

    @Flag(help: "Work for the coordinator at the broker.")
    var worker = false

    @Flag(help: "Print the graph that mandelbrot.jsonl is.")
    var graph = false

    @Option(help: "The broker's URL. Default: the variable OPERON_BROKER.")
    var broker: String?

    @Option(help: "Begins the names of all queues and exchanges.")
    var prefix = "operon."

    @Option(help: "What people call this worker.")
    var name: String?

    @Option(help: "How many operations run at once. Default: one per processor.")
    var slots: Int?

    func run() async throws {
        if graph {
            Picture.seahorses.graph.forEach { print($0) }
        } else if worker {
            try await Worker(
                broker: broker,
                prefix: prefix,
                name: name,
                slots: slots,
                .on(Tile.self),
                .on(Assemble.self)
            ).run()
        } else {
            throw ValidationError("choose --worker or --graph")
        }
    }
}
