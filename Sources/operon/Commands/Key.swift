import ArgumentParser
import OperonModel
import OperonPorts
import OperonTerminal

struct Key: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "List keys and their holders, and set their limits.",
        discussion: "A running operation holds the keys in its field “exclusive”.",
        subcommands: [KeyList.self, KeyShow.self, KeySet.self, KeyReset.self]
    )
}

/// The key that a command applies to.
struct KeyArguments: ParsableArguments {
    @Argument(help: "The name of the key, as in “exclusive” of a graph file.")
    var name: String

    func validate() throws {
        if name.isEmpty { throw ValidationError("the name of the key is empty") }
    }
}

struct KeyList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the keys: limit, holders and waiting operations.",
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
                session.console.say(["There are no keys: no operation has “exclusive”."])
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
        abstract: "Set how many operations may hold a key at once.",
        usage: "operon key set <name> --limit <limit> [<options>]",
        discussion: """
            The limit and the rate apply to the whole cluster and take precedence over graph \
            files. Without --rate, the key has no rate. The command creates the key if there is \
            none. Operations that hold the key keep it.
            """
    )

    @OptionGroup var key: KeyArguments

    @Option(help: "How many operations may hold it at once, at least 1.")
    var limit: Int

    @OptionGroup var rate: RateArguments

    @OptionGroup var coordinator: ClientArguments

    func validate() throws {
        guard (1...Int(Int32.max)).contains(limit) else {
            throw ValidationError("--limit must be from 1 to \(Int32.max)")
        }
    }

    func run() async throws {
        let settings = KeySettings(name: key.name, limit: limit, rate: rate.value)
        try await ClientSession.run(coordinator) { session in
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.setKey(settings)
            }
            try session.console.tell(view, names: [view.name]) { $0.key(view) }
        }
    }
}

struct KeyReset: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset",
        abstract: "Remove the limit and the rate of a key: one operation at a time may hold it.",
        usage: "operon key reset <name> [<options>]",
        discussion: """
            Graphs that are submitted later may set a limit again. A key without a limit of its \
            own is removed with the last graph that names it.
            """
    )

    @OptionGroup var key: KeyArguments

    @OptionGroup var coordinator: ClientArguments

    func run() async throws {
        try await ClientSession.run(coordinator, about: .key(key.name)) { session in
            let view = try await session.change { () async throws(ClientError) in
                try await session.client.resetKey(key.name)
            }
            try session.console.tell(view, names: [view.name]) { $0.key(view) }
        }
    }
}
