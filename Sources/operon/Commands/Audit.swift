import ArgumentParser
import OperonArguments
import OperonModel
import OperonPorts
import OperonTerminal

struct Audit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "List who changed what, and who was refused.",
        usage: "operon audit [--since <when>] [--by <name>] [--verify] [<options>]",
        discussion: """
            The oldest entry is first. The command needs a token with the role administer, or the \
            socket of your own coordinator.
            """
    )

    @Option(
        help: ArgumentHelp(
            "Only entries from then on: a date with a time and a zone, or how long ago.",
            valueName: "when"
        )
    )
    var since: PastMomentArgument?

    @Option(
        help: ArgumentHelp(
            "Only entries of this token, of “own user” or of “any user”.",
            valueName: "name"
        )
    )
    var by: String?

    @Option(help: "List at most this many, the newest ones.")
    var limit = 1_000

    @Option(
        help: ArgumentHelp(
            "Only entries before this number; the previous page prints it.",
            valueName: "number"
        )
    )
    var before: UInt64?

    @Flag(
        help: ArgumentHelp(
            "Check the chain of all entries, and say where it is broken.",
            discussion: "Exit code 1 if it is broken."
        )
    )
    var verify = false

    @OptionGroup var coordinator: ClientArguments

    /// The most entries that the coordinator sends at once.
    private static let pageMax = 1_000

    func validate() throws {
        guard (1...1_000_000).contains(limit) else {
            throw ValidationError("--limit must be from 1 to 1000000")
        }
        if let before, before > UInt64(Int64.max) {
            throw ValidationError("--before must be at most \(Int64.max)")
        }
        let selects = since != nil || by != nil || before != nil
        if verify, selects { throw ValidationError("--verify checks all entries: give it alone") }
    }

    func run() async throws {
        try await ClientSession.run(coordinator) { session in
            if verify { return try await check(session) }
            let page = try await entries(session)
            try session.console.show(page, names: page.entries.map { String($0.number) }) {
                $0.audit(page.entries)
            }
            if page.entries.isEmpty { session.console.say(["There are no such entries."]) }
            if let next = page.next {
                session.console.say(["To list earlier ones: operon audit --before \(next)"])
            }
        }
    }

    private func entries(_ session: ClientSession) async throws -> AuditPage {
        var query = AuditQuery()
        query.since = since?.time
        query.by = by
        query.before = before
        var entries: [AuditEntry] = []
        repeat {
            query.limit = min(Self.pageMax, limit - entries.count)
            let page = try await session.client.audit(query)
            entries = page.entries + entries
            query.before = page.next
        } while query.before != nil && entries.count < limit
        return AuditPage(entries: entries, next: query.before)
    }

    private func check(_ session: ClientSession) async throws {
        let check = try await session.client.checkAudit()
        try session.console.show(check, names: ["\(check.last)"]) { $0.auditCheck(check) }
        if !check.problems.isEmpty { throw ExitCode(ExitStatus.failed) }
    }
}
