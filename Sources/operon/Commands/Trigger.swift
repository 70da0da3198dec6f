import ArgumentParser
import OperonArguments
import OperonGraphFile
import OperonModel
import OperonPorts
import OperonTerminal

struct Trigger: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trigger",
        abstract: "Add triggers that submit graphs, and list, fire, suspend and remove them.",
        subcommands: [
            TriggerAdd.self, TriggerList.self, TriggerShow.self, TriggerFire.self,
            TriggerSuspend.self, TriggerResume.self, TriggerRemove.self, TriggerHistory.self,
            TriggerNext.self,
        ]
    )
}

/// The trigger that a command applies to.
struct TriggerArguments: ParsableArguments {
    @Argument(help: "The name of the trigger.")
    var name: String

    func validate() throws {
        if name.isEmpty { throw ValidationError("the name of the trigger is empty") }
    }
}

struct TriggerAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Add a trigger from a trigger file.",
        usage: "operon trigger add <file> [<options>]",
        discussion: """
            The coordinator keeps the trigger and the text of its graph file. To change either, \
            add the trigger again with --replace. Adding the same trigger again has no effect.
            """
    )

    @Argument(help: "The trigger file: YAML or JSON.", completion: .file())
    var file: String

    @Flag(help: "Replace another trigger of the same name. Its history stays.")
    var replace = false

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        let trigger: TriggerDescription
        do throws(GraphFileError) {
            trigger = try TriggerFile.read(path: file)
        } catch {
            let isGraph =
                error.problems.contains { $0.code == .unknownKey && $0.thing == "operations" }
                && error.problems.contains { $0.code == .missingKey && $0.thing == "on" }
            let name = TerminalText.line(CommandText.quoted(file))
            guard isGraph else { throw Failure(error) }
            throw Failure(
                ExitStatus.usage,
                "\(name) is a graph. To submit it: operon submit \(name)"
            )
        }
        let body = GraphFileCodec().encode(trigger)
        try await ClientSession.run(coordinator) { session in
            let view: TriggerView
            do throws(ClientError) {
                view = try await session.change { () async throws(ClientError) in
                    try await session.client.addTrigger(
                        body,
                        contentType: "application/json",
                        replace: replace
                    )
                }
            } catch {
                guard error.code == .conflict, !replace else { throw error }
                let name = TerminalText.line(CommandText.quoted(file))
                var hinted = error
                hinted.message += " To replace it: operon trigger add \(name) --replace"
                throw hinted
            }
            try session.console.tell(view, names: [view.name]) { $0.added(view) }
        }
    }
}

struct TriggerList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the triggers: what fires them, and when they fire next.",
        usage: "operon trigger list [<options>]"
    )

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator) { session in
            let triggers = try await session.client.triggers()
            try session.console.show(Triggers(triggers: triggers), names: triggers.map(\.name)) {
                $0.triggers(triggers)
            }
            if triggers.isEmpty {
                session.console.say([
                    "There are no triggers yet. To add one: operon trigger add FILE"
                ])
            }
        }
    }

    private struct Triggers: Encodable {
        let triggers: [TriggerView]
    }
}

struct TriggerShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a trigger: its settings, its state and its last firing.",
        usage: "operon trigger show <name> [<options>]"
    )

    @OptionGroup var trigger: TriggerArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .trigger(trigger.name)) { session in
            let view = try await session.client.trigger(trigger.name)
            try session.console.show(view, names: [view.name]) { $0.trigger(view) }
        }
    }
}

struct TriggerFire: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fire",
        abstract: "Fire a trigger on “event”.",
        usage: "operon trigger fire <name> [<options>]",
        discussion: """
            Prints the number of the firing once the coordinator has stored it. The graph is \
            submitted after that; operon trigger history shows its number.
            """
    )

    @OptionGroup var trigger: TriggerArguments

    @Option(help: ArgumentHelp("Data for the graph, in JSON.", valueName: "json"))
    var data: String?

    @Option(
        help: ArgumentHelp(
            "A key of your choice: repeated calls with the same key fire the trigger once.",
            valueName: "key"
        )
    )
    var idempotencyKey: String?

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        if idempotencyKey == "" { throw ValidationError("the key of --idempotency-key is empty") }
        if data == "" { throw ValidationError("the data of --data are empty; null is JSON") }
    }

    func run() async throws {
        try await ClientSession.run(coordinator, about: .trigger(trigger.name)) { session in
            let firing = try await session.change { () async throws(ClientError) in
                try await session.client.fireTrigger(
                    trigger.name,
                    data: data.map { Array($0.utf8) } ?? [],
                    idempotencyKey: idempotencyKey
                )
            }
            switch session.console.format {
            case .text, .quiet: session.console.write([String(firing.number)])
            case .json: try session.console.show(firing) { _ in [] }
            }
            session.console.say(session.console.speech.fired(firing))
        }
    }
}

struct TriggerSuspend: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend",
        abstract: "Suspend a trigger: it submits nothing.",
        usage: "operon trigger suspend <name> [<options>]",
        discussion: """
            Ticks that come meanwhile are missed ticks. Events are merged into one firing, which \
            submits the graph when the trigger is resumed.
            """
    )

    @OptionGroup var trigger: TriggerArguments

    @OptionGroup var suspension: SuspensionArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        let request = suspension.request
        try await ClientSession.run(coordinator, about: .trigger(trigger.name)) { session in
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.suspendTrigger(trigger.name, request)
            }
            try session.console.tell(view, names: [view.name]) { $0.suspended(view) }
        }
    }
}

struct TriggerResume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Resume a suspended trigger.",
        usage: "operon trigger resume <name> [<options>]"
    )

    @OptionGroup var trigger: TriggerArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .trigger(trigger.name)) { session in
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.resumeTrigger(trigger.name)
            }
            try session.console.tell(view, names: [view.name]) { $0.resumed(view) }
        }
    }
}

struct TriggerRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Remove a trigger with its history.",
        usage: "operon trigger remove <name> [<options>]",
        discussion: """
            Graphs that it has submitted keep running. If the trigger has onRemove, that graph is \
            submitted now.
            """
    )

    @OptionGroup var trigger: TriggerArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .trigger(trigger.name)) { session in
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.removeTrigger(trigger.name)
            }
            try session.console.tell(view, names: [view.name]) { $0.removed(view) }
        }
    }
}

struct TriggerHistory: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "List the firings of a trigger, the newest first.",
        usage: "operon trigger history <name> [<options>]"
    )

    @OptionGroup var trigger: TriggerArguments

    @Option(help: "How many firings to list, from 1 to 1000.")
    var limit = 50

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        if !(1...1_000).contains(limit) {
            throw ValidationError("--limit must be from 1 to 1000")
        }
    }

    func run() async throws {
        try await ClientSession.run(coordinator, about: .trigger(trigger.name)) { session in
            let firings = try await session.client.firings(ofTrigger: trigger.name, limit: limit)
            try session.console.show(
                Firings(firings: firings),
                names: firings.map { String($0.number) }
            ) { $0.firings(firings) }
            if firings.isEmpty { session.console.say(["The trigger has not fired yet."]) }
        }
    }

    private struct Firings: Encodable {
        let firings: [FiringView]
    }
}

struct TriggerNext: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "next",
        abstract: "List the next ticks of a trigger, in its time zone and in UTC.",
        usage: "operon trigger next <name> [<options>]"
    )

    @OptionGroup var trigger: TriggerArguments

    @Option(help: "How many ticks to list, from 1 to 1000.")
    var limit = 10

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        if !(1...1_000).contains(limit) {
            throw ValidationError("--limit must be from 1 to 1000")
        }
    }

    func run() async throws {
        try await ClientSession.run(coordinator, about: .trigger(trigger.name)) { session in
            let ticks = try await session.client.nextTicks(ofTrigger: trigger.name, count: limit)
            try session.console.show(
                Ticks(ticks: ticks),
                names: ticks.map(\.at.description)
            ) { $0.ticks(ticks) }
            if ticks.isEmpty { session.console.say(["The trigger has no further tick."]) }
        }
    }

    private struct Ticks: Encodable {
        let ticks: [TickView]
    }
}
