import ArgumentParser
import Foundation
import OperonArguments
import OperonHTTP
import OperonModel

/// What every coordinator that is left alone needs: where it keeps its graphs, where it listens,
/// and how long finished graphs stay.
struct CoordinatorArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The file that keeps every graph; made if there is none.",
            discussion: "Default: operon.db in $STATE_DIRECTORY, else in "
                + "$XDG_STATE_HOME/operon, else in ~/.local/state/operon.",
            valueName: "path"
        ),
        completion: .file()
    )
    var store: String?

    @Option(
        help: ArgumentHelp(
            "Where the API listens; port 0 takes a free one.",
            discussion: "Any address but this machine's own needs --tls-certificate, --tls-key and "
                + "--tokens.",
            valueName: "host:port"
        )
    )
    var listen = "127.0.0.1:7350"

    @Option(
        help: ArgumentHelp(
            "The certificate of the API and those that lead to its root, in PEM.",
            valueName: "file"
        ),
        completion: .file()
    )
    var tlsCertificate: String?

    @Option(
        help: ArgumentHelp("Its private key, in PEM.", valueName: "file"),
        completion: .file()
    )
    var tlsKey: String?

    @Option(
        help: ArgumentHelp(
            "Who may use the API: a line for each client, as docs/API.md says.",
            valueName: "file"
        ),
        completion: .file()
    )
    var tokens: String?

    @Option(
        help: ArgumentHelp(
            "How long finished graphs are kept, such as 12h or 30d, or how many, such as 1000.",
            valueName: "time-or-count"
        )
    )
    var keep: [String] = ["30d"]

    @OptionGroup var log: LogArguments

    func validate() throws {
        guard (tlsCertificate == nil) == (tlsKey == nil) else {
            throw ValidationError("--tls-certificate and --tls-key belong together")
        }
        for text in keep where Retention.part(text) == nil {
            throw ValidationError("--keep \(text): neither a time such as 30d nor a count")
        }
    }

    var retention: Retention { Retention(keep) }

    /// - Throws: `Failure` for an address, a certificate or a file of tokens that cannot be used.
    func server() throws(Failure) -> HTTPServerConfiguration {
        do throws(HTTPServerError) {
            var tls: TLSFiles?
            if let tlsCertificate, let tlsKey {
                tls = TLSFiles(certificate: tlsCertificate, key: tlsKey)
            }
            return try HTTPServerConfiguration(
                listen: HTTPAddress(listen),
                tls: tls,
                tokens: try tokens.map { path throws(HTTPServerError) in
                    try AccessTokens(file: path)
                } ?? AccessTokens()
            )
        } catch {
            throw Failure(ExitStatus.usage, error.message)
        }
    }

    /// The path of the store; makes the directory of the default one.
    ///
    /// - Throws: `Failure` if there is no place for it.
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
            throw Failure(ExitStatus.usage, "name the store: --store PATH")
        }
        do {
            try FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw Failure(
                ExitStatus.usage,
                "\(directory) cannot be made: \(error.localizedDescription)"
            )
        }
        return directory + "/operon.db"
    }
}

/// How long finished graphs are kept, and how many, as the options say it.
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

    /// A whole number alone is a count; with a unit it is a time.
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
