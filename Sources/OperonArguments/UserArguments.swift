import ArgumentParser
import OperonModel

/// The users as which a worker runs commands.
package struct UserArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Run commands as this user, or those of one queue: QUEUE=USER. May be repeated.",
            discussion: """
                The worker runs as root. Commands run as the user, with its groups, HOME, USER and \
                LOGNAME, and get no more rights (as with --no-new-privileges). Such a worker \
                watches no sources of triggers.
                """,
            valueName: "user"
        ),
        transform: { try Self.pair($0) }
    )
    private var runAs: [Pair] = []

    @Flag(help: "Let commands get no more rights by executing a program, such as sudo.")
    package var noNewPrivileges = false

    private struct Pair {
        let queue: String?
        let user: String
    }

    package init() {}

    /// Users by the names of queues; that of `nil` is for all other queues.
    package var users: [(queue: String?, user: String)] { runAs.map { ($0.queue, $0.user) } }

    private static func pair(_ text: String) throws -> Pair {
        // The names of users have no “=”, those of queues may.
        let place = text.lastIndex(of: "=")
        let queue = place.map { String(text[..<$0]) }
        let user = place.map { String(text[text.index(after: $0)...]) } ?? text
        guard !user.isEmpty, queue?.isEmpty != true else {
            throw ValidationError("it must have the form USER or QUEUE=USER")
        }
        guard user.utf8.count <= userBytesMax, !user.hasControl else {
            throw ValidationError("the name of the user is too long, or has a control character")
        }
        do throws(Refusal) {
            if let queue { try Limits().check(name: queue, of: "queue") }
        } catch {
            throw ValidationError("\(error)")
        }
        return Pair(queue: queue, user: user)
    }

    /// As long as Linux lets a name of a user be.
    private static let userBytesMax = 256
}
