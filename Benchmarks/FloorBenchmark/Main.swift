import ArgumentParser

/// What no coordinator can beat: the cost of the broker alone, and of processes alone. Each
/// command prints one line of JSON.
@main
struct FloorBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "FloorBenchmark",
        abstract: "The floors that Operon is measured against.",
        subcommands: [PipeFloor.self, ChainFloor.self, SpawnFloor.self, PipeWorker.self]
    )
}
