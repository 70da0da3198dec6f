import ArgumentParser
import FoundationEssentials
import OperonArguments
import OperonModel
import OperonRuntime
import OperonSystem
import OperonTerminal
import OperonTrust

/// The keys by which a coordinator and its workers know each other.
struct Trust: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trust",
        abstract: "Manage the keys by which a coordinator and its workers know each other.",
        discussion: """
            What a coordinator and its workers say over the broker is sealed: only they can read \
            it, and nobody else can say it. A worker joins with a token, which names the key of \
            the coordinator and what the worker may do.

            These commands work on the files of a coordinator, on its machine and as its user. A \
            running coordinator reads changed files again within seconds.

            Exit codes: 0 success; 2 the command line was wrong, or a file cannot be used.
            """,
        subcommands: [Init.self, Token.self, Revoke.self, Rotate.self, Show.self]
    )

    /// The directory of the keys, and the form of the result.
    struct Place: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "The directory of the keys.",
                discussion: """
                    Default: the variable OPERON_TRUST, else operon/trust in $XDG_CONFIG_HOME or \
                    ~/.config.
                    """,
                valueName: "directory"
            ),
            completion: .directory
        )
        var trust: String?

        @Option(help: "text, json or quiet.")
        var output: OutputFormat = .text

        /// What the user has named; `nil`: nothing.
        private var named: String? {
            trust ?? Environment.current[TrustChoice.variable].flatMap { $0.isEmpty ? nil : $0 }
        }

        /// The keys for a token. The directory that is used if nothing is named gets keys if it has
        /// none, as it does from a coordinator.
        func keysForToken() throws(Failure) -> CoordinatorKeys {
            let directory = try directory()
            guard named == nil else {
                return try Trust.checked { () throws(TrustError) in
                    guard let keys = try directory.keys() else { throw directory.missing }
                    return keys
                }
            }
            let made = try Trust.checked { () throws(TrustError) in
                try directory.keysMadeIfMissing()
            }
            if made.areNew {
                Console(format: output, environment: Environment.current)
                    .say(["made keys in \(directory.path)"])
            }
            return made.keys
        }

        /// - Throws: `Failure` if there is no such place.
        func directory() throws(Failure) -> TrustDirectory {
            let environment = Environment.current
            if let path = named {
                guard path != TrustChoice.none, !path.isEmpty, !JoinToken.isToken(path) else {
                    throw Failure(ExitStatus.usage, "Name the directory of the keys with --trust.")
                }
                return TrustDirectory(path: path)
            }
            guard let directory = TrustDirectory.standard(environment) else {
                throw Failure(
                    ExitStatus.usage,
                    "There is no home directory: name the directory of the keys with --trust."
                )
            }
            return directory
        }

        func show(_ result: some Encodable, _ lines: [String]) throws {
            let console = Console(format: output, environment: Environment.current)
            try console.show(result) { _ in lines }
        }
    }

    fileprivate static func checked<Value>(
        _ body: () throws(TrustError) -> Value
    ) throws(Failure) -> Value {
        do throws(TrustError) {
            return try body()
        } catch {
            throw Failure(ExitStatus.usage, error.message)
        }
    }

    fileprivate struct KeyView: Encodable {
        let directory: String
        let fingerprint: String
    }

    struct Init: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "init",
            abstract: "Make keys for a coordinator.",
            discussion: """
                operon coordinator, operon run and operon trust token make keys by themselves if \
                no directory is named and there are none. Keys that are there stay as they are.
                """
        )

        @OptionGroup var place: Place

        func run() throws {
            let directory = try place.directory()
            guard let keys = try Trust.checked({ () throws(TrustError) in try directory.create() })
            else {
                throw Failure(
                    ExitStatus.usage,
                    "There are keys in \(directory.path) already: “operon trust rotate” replaces "
                        + "them."
                )
            }
            try place.show(
                KeyView(directory: directory.path, fingerprint: keys.fingerprint),
                [
                    "made keys in \(directory.path)", "fingerprint: \(keys.fingerprint)",
                    "to let workers of other users and machines join: operon trust token",
                ]
            )
        }
    }

    struct Token: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "token",
            abstract: "Print a token with which workers join.",
            discussion: """
                Start workers with --trust FILE, and a file of it that only their user can read, \
                or with the token as the variable OPERON_TRUST. Who has the token can be a worker \
                until it expires or is revoked. A worker with a state directory that has joined in \
                time stays one after that.
                """
        )

        @Option(
            help: "Queues that workers may serve, separated by commas. Default: all."
        )
        var queues: String?

        @Option(
            help: ArgumentHelp(
                "Registered kinds that workers may run, separated by commas. Default: all.",
                discussion: "Commands are of no kind: every worker may run those of its queues."
            )
        )
        var kinds: String?

        @Option(
            help: ArgumentHelp(
                "How long workers may join with it, such as 12h or 30d, or never.",
                valueName: "time"
            )
        )
        var expires = "1d"

        @Option(
            help: "Write the token to this new file, which only you can read.",
            completion: .file()
        )
        var file: String?

        @OptionGroup var place: Place

        private struct View: Encodable {
            /// `nil`: it is in the file.
            let token: String?
            let id: String
            let queues: [String]
            let kinds: [String]
            let expires: String?
        }

        func validate() throws {
            guard expires == "never" || lifetime != nil else {
                throw ValidationError("--expires \(expires): give a time such as 30d, or never")
            }
            // An empty list, such as that of an unset variable, would allow everything.
            for (option, list) in [("--queues", queues), ("--kinds", kinds)] {
                guard list.map({ !Self.names($0).isEmpty }) ?? true else {
                    throw ValidationError("\(option): name at least one, or leave the option out")
                }
            }
        }

        /// Longer ones would end after what clocks can say.
        private static let lifetimeMax = Duration.seconds(100 * 365 * 86_400)

        private var lifetime: Duration? {
            guard case .time(let time)? = Retention.part(expires), time > .zero,
                time <= Self.lifetimeMax
            else { return nil }
            return time
        }

        func run() throws {
            let keys = try place.keysForToken()
            let end = lifetime.map { WallTime.wholeSeconds(after: SystemClock.wall() + $0) }
            let grant = try Trust.checked { () throws(TrustError) in
                try WorkerGrant(
                    queues: Self.names(queues),
                    kinds: Self.names(kinds),
                    expiresAt: end
                )
            }
            let token = JoinToken(grant, by: keys)
            if let file { try Self.write(token, to: file) }
            try place.show(
                View(
                    token: file == nil ? token.text : nil,
                    id: grant.idText,
                    queues: grant.queues,
                    kinds: grant.kinds,
                    expires: end.map(DateText.text)
                ),
                file.map { ["wrote a token to \($0)"] } ?? [token.text]
            )
            // Standard output has nothing but the token, so that it can go to another program.
            let until = end.map { "until \(DateText.text($0))" } ?? "until it is revoked"
            Console(format: place.output, environment: Environment.current).say([
                "workers can join with this token \(until); to revoke it: operon trust revoke "
                    + grant.idText
            ])
        }

        private static func write(_ token: JoinToken, to file: String) throws(Failure) {
            let isNew: Bool
            do throws(SecretFile.Problem) {
                isNew = try SecretFile.create(file, with: Array((token.text + "\n").utf8))
            } catch {
                throw Failure(ExitStatus.usage, error.sentence("token", in: file))
            }
            guard isNew else { throw Failure(ExitStatus.usage, "There is a file \(file) already.") }
        }

        private static func names(_ list: String?) -> [String] {
            list?.split(separator: ",").map(String.init) ?? []
        }
    }

    struct Revoke: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "revoke",
            abstract: "Refuse the workers of a token, or one worker.",
            discussion: """
                Workers that have joined are refused from then on. What they run starts again on \
                others.
                """
        )

        @Argument(
            help: ArgumentHelp(
                "The id of a token, as “operon trust token” says it, or the key of a worker.",
                valueName: "id"
            )
        )
        var id: String

        @OptionGroup var place: Place

        private struct View: Encodable {
            let id: String
            let isNew: Bool
        }

        func run() throws {
            let directory = try place.directory()
            let isNew = try Trust.checked { () throws(TrustError) in try directory.revoke(id) }
            try place.show(
                View(id: id, isNew: isNew),
                [isNew ? "revoked \(id)" : "\(id) was revoked already"]
            )
        }
    }

    struct Rotate: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rotate",
            abstract: "Replace the coordinator's key by a new one, which the old one signs.",
            discussion: """
                Workers and tokens stay valid, because they can follow the signature. After \
                \(CoordinatorKeys.linksMax) replacements, those that were not used meanwhile \
                cannot. If a key was stolen, this does not help: remove the directory, make new \
                keys, and let all workers join again.
                """
        )

        @OptionGroup var place: Place

        func run() throws {
            let directory = try place.directory()
            let keys = try Trust.checked { () throws(TrustError) in try directory.rotate() }
            try place.show(
                KeyView(directory: directory.path, fingerprint: keys.fingerprint),
                ["replaced the key in \(directory.path)", "fingerprint: \(keys.fingerprint)"]
            )
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Show the fingerprint of the coordinator's key, and what is revoked."
        )

        @OptionGroup var place: Place

        private struct View: Encodable {
            let directory: String
            let fingerprint: String
            /// The id of the token for workers of the same user.
            let join: String?
            let revoked: Int
        }

        func run() throws {
            let directory = try place.directory()
            let view = try Trust.checked { () throws(TrustError) in
                guard let keys = try directory.keys() else { throw directory.missing }
                return View(
                    directory: directory.path,
                    fingerprint: keys.fingerprint,
                    join: directory.joinID,
                    revoked: try directory.revoked().count
                )
            }
            try place.show(
                view,
                [
                    "keys in \(view.directory)", "fingerprint: \(view.fingerprint)",
                    "token of workers of this user: \(view.join ?? "none")",
                    "revoked: \(view.revoked)",
                ]
            )
        }
    }
}

extension WallTime {
    /// The next whole second, because people compare it with their clocks.
    fileprivate static func wholeSeconds(after time: WallTime) -> WallTime {
        let nanoseconds = time.nanosecondsSince1970
        let rest = nanoseconds % 1_000_000_000
        return rest == 0 ? time : WallTime(nanosecondsSince1970: nanoseconds - rest) + .seconds(1)
    }
}
