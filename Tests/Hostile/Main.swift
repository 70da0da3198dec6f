import ArgumentParser
import Foundation
import OperonFaultKit

/// An operation, a worker or a client that sends everything that its login lets it send.
@main
struct Hostile: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hostile",
        abstract: "Send a coordinator or a worker everything that it should withstand.",
        discussion: "Prints how much of each kind it has sent, and what it was answered.",
        subcommands: [OperationCommand.self, WorkerCommand.self, ClientCommand.self]
    )
}

struct PlanOptions: ParsableArguments {
    @Option(help: "The same seed sends the same.")
    var seed: UInt64 = 1

    @Option(help: "How long it goes on.")
    var seconds = 20.0

    @Option(help: "How much it sends in a second.")
    var rate = 200.0

    @Option(help: "Connections that are open at a time.")
    var connections = 200

    @Option(help: "A name that exists: of an operation, a queue, a worker.")
    var name: [String] = []

    var plan: HostilePlan {
        HostilePlan(
            seed: seed,
            duration: .seconds(seconds),
            rate: rate,
            connectionsMax: connections
        )
    }
}

struct OperationCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "operation",
        abstract: "As the process of an operation, to its worker's socket."
    )

    @OptionGroup var options: PlanOptions

    @Option(help: "The queue of what it adds.")
    var queue = "hostile"

    func run() throws {
        // The worker may close a connection at any time.
        signal(SIGPIPE, SIG_IGN)
        let tally = try HostileOperation.run(
            options.plan,
            environment: ProcessInfo.processInfo.environment,
            queue: queue,
            names: options.name
        )
        print(tally.lines.joined(separator: "\n"))
    }
}

struct WorkerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "worker",
        abstract: "With a worker's login on the broker."
    )

    @OptionGroup var options: PlanOptions

    @Option(help: "amqp://USER:PASSWORD@HOST:PORT")
    var broker: String

    @Option var prefix = "operon."

    @Option(help: "The queue whose operations it takes.")
    var queue = "hostile"

    func run() throws {
        let tally = try HostileWorker.run(
            options.plan,
            broker: broker,
            prefix: prefix,
            queue: queue,
            names: options.name
        )
        print(tally.lines.joined(separator: "\n"))
    }
}

struct ClientCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "client",
        abstract: "To the coordinator's API; what --name names it does not change."
    )

    @OptionGroup var options: PlanOptions

    @Option(help: "HOST:PORT, or the path of a socket.")
    var address: String

    @Option(help: "A token that may do everything.")
    var token: String?

    @Option(help: "A token that may only read.")
    var readToken: String?

    func run() throws {
        let tally = try HostileClient.run(
            options.plan,
            at: Endpoint(address),
            tokens: HostileCalls.Tokens(operate: token, read: readToken),
            spared: options.name
        )
        print(tally.lines.joined(separator: "\n"))
    }
}
