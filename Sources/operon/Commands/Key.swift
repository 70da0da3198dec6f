import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Key: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List keys, who holds them, and set how many operations may.",
        discussion: "Operations hold the keys that their “exclusive” names while they run.",
        subcommands: [KeyList.self, KeyShow.self, KeySet.self, KeyReset.self]
    )
}

/// The key that a command applies to.
struct KeyArguments: ParsableArguments {
    @Argument(help: "The name of the key, as “exclusive” in the graph file has it.")
    var name: String

    func validate() throws {
        if name.isEmpty { throw ValidationError("a key has a name") }
    }
}

struct KeyList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the keys: their limits, who holds them, and how many wait.",
        usage: "operon key list [<options>]"
    )

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator) { session in
            let keys = try await session.client.keys()
            try session.console.show(Keys(keys: keys), names: keys.map(\.name)) {
                $0.keys(keys)
            }
            if keys.isEmpty {
                session.console.say(["There is no key yet: no operation is exclusive."])
            }
        }
    }

    private struct Keys: Encodable {
        let keys: [KeyView]
    }
}

struct KeyShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a key.",
        usage: "operon key show <name> [<options>]"
    )

    @OptionGroup var key: KeyArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .key(key.name)) { session in
            let view = try await session.client.key(key.name)
            try session.console.show(view, names: [view.name]) { $0.key(view) }
        }
    }
}

struct KeySet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Set how many operations may hold a key, or make one.",
        usage: "operon key set <name> --limit <limit> [<options>]",
        discussion: """
            It holds for the whole cluster, and counts more than what graph files say from then \
            on. What has the key keeps it.
            """
    )

    @OptionGroup var key: KeyArguments

    @Option(help: "How many operations may hold it at once, from 1.")
    var limit: Int

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        guard (1...Int(Int32.max)).contains(limit) else {
            throw ValidationError("--limit takes a number from 1 to \(Int32.max)")
        }
    }

    func run() async throws {
        let settings = KeySettings(name: key.name, limit: limit)
        try await ClientSession.run(coordinator) { session in
            let view = try await session.client.setKey(settings)
            try session.console.tell(view, names: [view.name]) { $0.key(view) }
        }
    }
}

struct KeyReset: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset",
        abstract: "Remove the limit of a key: one operation at a time may hold it.",
        usage: "operon key reset <name> [<options>]",
        discussion: "A key without a limit of its own disappears with the last graph that names it."
    )

    @OptionGroup var key: KeyArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .key(key.name)) { session in
            let view = try await session.client.resetKey(key.name)
            try session.console.tell(view, names: [view.name]) { $0.key(view) }
        }
    }
}
