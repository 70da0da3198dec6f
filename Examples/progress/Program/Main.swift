import ArgumentParser
import Foundation
import Hummingbird
import Operon

@main struct ProgressService: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Counts primes for whoever asks, and says how far it is.",
        subcommands: [Serve.self, Work.self],
        defaultSubcommand: Serve.self
    )
}

/// The HTTP service.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve: operations run in this process, or on the workers of a coordinator."
    )

    @Option(help: "A coordinator's URL. Default: none, everything runs in this process.")
    var coordinator: String?

    @Option(help: "Where to listen, on this machine only. 0: any free port.")
    var port = 8080

    func run() async throws {
        let cluster = coordinator.map { Cluster.remote($0) } ?? .inProcess
        let app = Application(
            router: Counts(cluster: cluster).router,
            configuration: .init(address: .hostname("127.0.0.1", port: port)),
            // It connects when the server starts, and closes when that is shut down.
            services: [cluster],
            onServerRunning: { channel in
                // Not kept in a buffer: whoever started this may be waiting for it.
                let port = channel.localAddress?.port ?? 0
                FileHandle.standardOutput.write(Data("listening on port \(port)\n".utf8))
            }
        )
        try await app.runService()
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
        try await Worker(broker: broker, prefix: prefix, slots: slots, .on(CountPrimes.self)).run()
    }
}
