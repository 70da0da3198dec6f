import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Queue: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue",
        abstract: "List, change, suspend and resume operation queues.",
        subcommands: [
            QueueList.self, QueueShow.self, QueueSet.self, QueueReset.self, QueueSuspend.self,
            QueueResume.self,
        ]
    )
}

/// The queue that a command applies to.
struct QueueArguments: ParsableArguments {
    @Argument(help: "The name of the operation queue.")
    var name: String

    func validate() throws {
        if name.isEmpty { throw ValidationError("the name of the queue is empty") }
    }
}

struct QueueList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the queues: ready and running operations, and limits.",
        usage: "operon queue list [<options>]"
    )

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator) { session in
            let queues = try await session.client.queues()
            try session.console.show(Queues(queues: queues), names: queues.map(\.name)) {
                $0.queues(queues)
            }
            if queues.isEmpty { session.console.say(["There are no queues."]) }
        }
    }

    private struct Queues: Encodable {
        let queues: [QueueView]
    }
}

struct QueueShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a queue.",
        usage: "operon queue show <name> [<options>]"
    )

    @OptionGroup var queue: QueueArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .queue(queue.name)) { session in
            let view = try await session.client.queue(queue.name)
            try session.console.show(view, names: [view.name]) { $0.queue(view) }
        }
    }
}

struct QueueSet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Change the limit, the rate or the priority of a queue.",
        usage: "operon queue set <name> [<options>]",
        discussion: """
            Creates the queue if there is none. The limit and the rate apply to the whole \
            cluster. Running operations keep running.
            """
    )

    @OptionGroup var queue: QueueArguments

    @Option(help: "How many of its operations may run at once; 0: none starts.")
    var max: Int?

    @Flag(help: "Remove the limit.")
    var unlimited = false

    @OptionGroup var rate: RateArguments

    @Flag(help: "Remove the rate.")
    var noRate = false

    @Option(help: "For operations without their own: veryLow, low, normal, high or veryHigh.")
    var priority: Named<QueuePriority>?

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        if let max, !(0...Int(Int32.max)).contains(max) {
            throw ValidationError("--max must be from 0 to \(Int32.max)")
        }
        if max != nil, unlimited {
            throw ValidationError("--max and --unlimited cannot be combined")
        }
        if rate.rate != nil, noRate {
            throw ValidationError("--rate and --no-rate cannot be combined")
        }
        if max == nil, !unlimited, priority == nil, rate.rate == nil, !noRate {
            let options = "--max, --unlimited, --rate, --no-rate and --priority"
            throw ValidationError("give at least one of \(options)")
        }
    }

    func run() async throws {
        var change = QueueChange()
        change.maxConcurrentOperationCount = max
        if unlimited { change.isUnlimited = true }
        change.priority = priority?.value
        change.rate = rate.rate
        change.burst = rate.burst
        if noRate { change.hasNoRate = true }
        try await ClientSession.run(coordinator) { session in
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.setQueue(queue.name, change)
            }
            try session.console.tell(view, names: [view.name]) { $0.queue(view) }
        }
    }
}

/// How often operations may start.
struct RateArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "How often its operations may start in the whole cluster: 10/s, 100/m, 5/30s.",
            discussion: """
                Starts, 1 to 1000000, and a period from 1ms to 365d in whole ms, s, m, h or d.
                """
        )
    )
    var rate: String?

    @Option(help: "With --rate: how many may start at once after a pause, 1 to 1000000.")
    var burst: Int?

    /// The rate; `nil`: none was given.
    var value: StartRate? { rate.flatMap { StartRate($0, burst: burst) } }

    func validate() throws {
        guard let rate else {
            if burst != nil { throw ValidationError("--burst needs --rate") }
            return
        }
        guard let value else {
            throw ValidationError("--rate must be \(StartRate.hint), not “\(rate)”")
        }
        do throws(Refusal) {
            try value.check("--rate")
        } catch {
            throw ValidationError("\(error)")
        }
    }
}

struct QueueReset: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset",
        abstract: "Remove the limit, rate, priority and suspension of a queue.",
        usage: "operon queue reset <name> [<options>]",
        discussion: "A queue without settings is removed with the last graph that names it."
    )

    @OptionGroup var queue: QueueArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .queue(queue.name)) { session in
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.resetQueue(queue.name)
            }
            try session.console.tell(view, names: [view.name]) { $0.queue(view) }
        }
    }
}

struct QueueSuspend: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend",
        abstract: "Suspend a queue: its operations do not start.",
        usage: "operon queue suspend <name> [<options>]",
        discussion: "The same as operon suspend --queue NAME."
    )

    @OptionGroup var queue: QueueArguments

    @OptionGroup var suspension: SuspensionArguments

    @OptionGroup var waiting: WaitingArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await suspension.run(coordinator, .queue(queue.name), wait: waiting.seconds)
    }
}

struct QueueResume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Resume a suspended queue.",
        usage: "operon queue resume <name> [<options>]",
        discussion: "The same as operon resume --queue NAME."
    )

    @OptionGroup var queue: QueueArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws { try await Resume.resume(.queue(queue.name), coordinator) }
}
