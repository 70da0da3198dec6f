import ArgumentParser
import OperonArguments
import OperonHTTP
import OperonModel

/// The options of every long-running coordinator: where it keeps its graphs, where it listens, and
/// how long it keeps finished graphs.
struct CoordinatorArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The file that keeps the graphs; created if there is none.",
            discussion: "Default: operon.db in $STATE_DIRECTORY, $XDG_STATE_HOME/operon or "
                + "~/.local/state/operon.",
            valueName: "path"
        ),
        completion: .file()
    )
    var store: String?

    @Option(
        help: ArgumentHelp(
            "Where the API listens: unix:PATH or HOST:PORT; port 0 chooses a free port.",
            discussion: """
                Default: the socket operon.sock in $XDG_STATE_HOME/operon or \
                ~/.local/state/operon. Your commands and programs find it there, and other users \
                cannot use it. On a TCP address of this machine, clients need a token: one from \
                --tokens, else the one in the file token beside that socket, which is created at \
                the first start. Your commands and programs find that token too. Any other \
                address needs --tls-certificate, --tls-key and --tokens.
                """,
            valueName: "address"
        )
    )
    var listen: String?

    @Flag(
        help: ArgumentHelp(
            "Require no token on a TCP address of this machine.",
            discussion: """
                Every user of this machine can then run commands as you, and read every file \
                that you can read.
                """
        )
    )
    var allowAnyUser = false

    @Option(
        help: ArgumentHelp(
            "A name by which browsers call the coordinator; may be repeated.",
            discussion: """
                Other names are refused then, except localhost, and those of requests that show a \
                token. A coordinator that only this machine can reach refuses them anyway.
                """,
            valueName: "name"
        )
    )
    var host: [String] = []

    @Option(
        help: ArgumentHelp(
            "The certificate of the API and its chain, in PEM.",
            valueName: "file"
        ),
        completion: .file()
    )
    var tlsCertificate: String?

    @Option(
        help: ArgumentHelp("The private key of the certificate, in PEM.", valueName: "file"),
        completion: .file()
    )
    var tlsKey: String?

    @Option(
        help: ArgumentHelp(
            "Who may use the API: one line per client; see docs/API.md.",
            discussion: """
                This file, the certificate and its key are read again after SIGHUP, and within \
                seconds when they have changed.
                """,
            valueName: "file"
        ),
        completion: .file()
    )
    var tokens: String?

    @Option(
        help: ArgumentHelp(
            "How long to keep entries of the audit, such as 90d. Default: until they take 1 GiB.",
            valueName: "time"
        )
    )
    var auditKeep: String?

    @Option(
        help: ArgumentHelp(
            "How long to keep finished graphs, such as 12h or 30d, or how many, such as 1000.",
            valueName: "time-or-count"
        )
    )
    var keep: [String] = ["30d"]

    @Flag(
        help: ArgumentHelp(
            "Let triggers watch files, pipes, processes and signals of this machine.",
            discussion: """
                Clients that may change something can then learn which files and processes there \
                are, and run programs as the coordinator's user. operon up always does.
                """
        )
    )
    var watchMachine = false

    @OptionGroup var log: LogArguments

    func validate() throws {
        guard (tlsCertificate == nil) == (tlsKey == nil) else {
            throw ValidationError("--tls-certificate and --tls-key must be given together")
        }
        guard !allowAnyUser || (listen != nil && tokens == nil) else {
            throw ValidationError(
                "--allow-any-user needs --listen HOST:PORT and no --tokens"
            )
        }
        for text in keep where Retention.part(text) == nil {
            throw ValidationError("--keep \(text): give a time such as 30d, or a count")
        }
        if let auditKeep, (auditTime ?? .zero) <= .zero {
            throw ValidationError("--audit-keep \(auditKeep): give a time such as 90d")
        }
    }

    /// How long entries of the audit are kept; `nil`: until there are too many.
    var auditTime: Duration? {
        guard let auditKeep, case .time(let time)? = Retention.part(auditKeep) else { return nil }
        return time
    }

    var retention: Retention { Retention(keep) }

    /// - Throws: `Failure` for an address, a certificate or a token file that cannot be used.
    func server(environment: [String: String]) throws(Failure) -> HTTPServerConfiguration {
        do throws(HTTPServerError) {
            var given =
                try tokens.map { path throws(HTTPServerError) in
                    try AccessTokens(file: path)
                } ?? AccessTokens()
            let address =
                if let listen { try ListenAddress(listen) } else {
                    try Self.ownSocket(environment)
                }
            switch address {
            case .socket(let path):
                guard tlsCertificate == nil, !allowAnyUser else {
                    throw HTTPServerError(
                        .invalid,
                        "--tls-certificate, --tls-key and --allow-any-user do not apply to "
                            + "unix:\(path)."
                    )
                }
                var made = HTTPServerConfiguration(socket: path, tokens: given)
                made.tokensFile = tokens
                for name in host { try made.add(host: name) }
                return made
            case .tcp(let address):
                var tls: TLSFiles?
                if let tlsCertificate, let tlsKey {
                    tls = TLSFiles(certificate: tlsCertificate, key: tlsKey)
                }
                if given.isEmpty, address.isLoopback, !allowAnyUser {
                    given.add("", token: try OwnToken.loadOrMake(Self.ownToken(environment)))
                }
                var made = try HTTPServerConfiguration(
                    listen: address,
                    tls: tls,
                    tokens: given,
                    allowsAnyUser: allowAnyUser
                )
                made.tokensFile = tokens
                for name in host { try made.add(host: name) }
                return made
            }
        } catch {
            throw Failure(ExitStatus.usage, error.message)
        }
    }

    /// The socket where this user's commands look for the coordinator. Creates its folder.
    private static func ownSocket(
        _ environment: [String: String]
    ) throws(HTTPServerError) -> ListenAddress {
        guard let folder = StateFolder.path(environment),
            let socket = StateFolder.socket(environment)
        else {
            throw HTTPServerError(
                .invalid,
                "No place for the socket: set XDG_STATE_HOME or HOME, or give --listen unix:PATH."
            )
        }
        try StateFolder.make(folder)
        return .socket(socket)
    }

    private static func ownToken(
        _ environment: [String: String]
    ) throws(HTTPServerError) -> String {
        guard let file = StateFolder.token(environment) else {
            throw HTTPServerError(
                .invalid,
                "No place for the token: set XDG_STATE_HOME or HOME, or give --tokens FILE."
            )
        }
        return file
    }

    /// The path of the store. Creates the directory of the default path.
    ///
    /// - Throws: `Failure` if no directory for the store can be found or created.
    func storePath(environment: [String: String]) throws(Failure) -> String {
        if let store { return store }
        let directory: String
        if let given = environment["STATE_DIRECTORY"]?.split(separator: ":").first {
            directory = String(given)
        } else if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") {
            directory = state + "/operon"
        } else if let home = environment["HOME"], home.hasPrefix("/") {
            directory = home + "/.local/state/operon"
        } else {
            throw Failure(
                ExitStatus.usage,
                "There is no place for the store: set XDG_STATE_HOME or HOME, or give --store PATH."
            )
        }
        do {
            try UserFile.makeDirectories(directory, mode: 0o700)
        } catch {
            throw Failure(ExitStatus.usage, "The folder \(directory) cannot be created: \(error).")
        }
        return directory + "/operon.db"
    }
}

/// Parses the option that says how long, and how many, finished graphs are kept.
extension Retention {
    enum Part: Hashable {
        case time(Duration)
        case count(Int)
    }

    init(_ texts: [String]) {
        self.init()
        for text in texts {
            switch Self.part(text) {
            case .time(let value): time = value
            case .count(let value): graphs = value
            case nil: continue
            }
        }
    }

    /// A whole number alone is a count; a number with a unit is a time.
    static func part(_ text: String) -> Part? {
        if let count = Int(text) { return count >= 0 ? .count(count) : nil }
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        guard let last = text.last, let unit = units[last],
            let number = Int64(text.dropLast()), number >= 0
        else { return nil }
        let (seconds, overflow) = number.multipliedReportingOverflow(by: unit)
        return overflow ? nil : .time(.seconds(seconds))
    }
}
