import ArgumentParser
import FoundationEssentials
import Operon

@main struct Crawl: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Finds every page of a site, by operations that add operations.",
        subcommands: [Find.self, Work.self],
        defaultSubcommand: Find.self
    )
}

/// Adds the first operation, and waits for all that come of it.
struct Find: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Crawl: in this process, or on the workers of a coordinator."
    )

    @Option(help: "A coordinator's URL. Default: none, everything runs in this process.")
    var coordinator: String?

    @Option(help: "The folder of the pages: the same for all workers.")
    var site = "Examples/crawler/Site"

    @Option(help: "Where the list of pages is written.")
    var map = "sitemap.txt"

    func run() async throws {
        let cluster = coordinator.map { Cluster.remote($0) } ?? .inProcess
        let queue = OperationQueue(name: "crawl", cluster: cluster, maxConcurrentOperationCount: 2)
        let crawl = try await queue.addOperation(Round(site: site, map: map))
        try await crawl.value
        print(try String(contentsOf: URL(filePath: map), encoding: .utf8), terminator: "")
        await cluster.close()
    }
}

/// The worker for it.
struct Work: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "worker",
        abstract: "Work for the coordinator at a broker."
    )

    @Option(help: "The broker's URL. Default: the variable OPERON_BROKER.")
    var broker: String?

    @Option(help: "Begins the names of all queues and exchanges.")
    var prefix = "operon."

    @Option(help: "How many operations run at once. Default: one per processor.")
    var slots: Int?

    func run() async throws {
        try await Worker(
            broker: broker,
            prefix: prefix,
            slots: slots,
            .on(Visit.self),
            .on(Round.self)
        ).run()
    }
}
