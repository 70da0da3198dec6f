/// One entry of the audit: who did or wanted what, when and from where.
package struct AuditEntry: Hashable, Sendable, Codable {
    package enum Kind: String, Hashable, Sendable, Codable {
        /// The coordinator started, or opened the audit again.
        case started
        /// A change is about to be made.
        case asked
        /// What came of a change; `of` is the number of its `asked`.
        case done
        /// A request without the right to it.
        case refused
        /// So many further refusals in a minute, which have no entries of their own.
        case refusals
        /// The coordinator has read a file of tokens or a certificate again, or could not.
        case reloaded
        /// All entries up to `through` were removed, because they were too old or too many.
        case dropped
        /// A last entry that was not whole was removed: the coordinator was killed or lost power.
        case torn
    }

    /// From 1, without gaps.
    package var number: UInt64
    package var at: TimeText
    package var kind: Kind
    /// The name of the token; “own user” or “any user” if none was needed. Missing: unknown.
    package var by: String?
    /// The number of the user at the other end of the socket.
    package var user: UInt32?
    /// The network address of the client; `socket`: it came through the socket.
    package var from: String?
    package var method: String?
    /// The path of the request, without its parameters.
    package var path: String?
    package var status: Int?
    /// What was made or changed, such as `graph 7`.
    package var target: String?
    /// A sentence, such as why a request was refused.
    package var detail: String?
    package var of: UInt64?
    package var count: Int?
    package var through: UInt64?
    /// The hash of entry `through`.
    package var hash: String?

    package init(_ kind: Kind, at: WallTime) {
        number = 0
        self.at = TimeText(at)
        self.kind = kind
    }
}

/// A part of the audit, the oldest entry first.
package struct AuditPage: Hashable, Sendable, Codable {
    package var entries: [AuditEntry]
    /// What to give as `before` for the entries before these; missing: there are none.
    package var next: UInt64?

    package init(entries: [AuditEntry], next: UInt64?) {
        self.entries = entries
        self.next = next
    }
}

/// Which entries of the audit a client asks for.
package struct AuditQuery: Hashable, Sendable {
    /// Only entries with a lower number.
    package var before: UInt64?
    /// Only entries from this time on.
    package var since: WallTime?
    /// Only entries of this name.
    package var by: String?
    package var limit = 1_000

    package init() {}
}

/// Whether the chain of the audit holds.
package struct AuditCheckView: Hashable, Sendable, Codable {
    /// The number of the first entry that is kept; 0: there is none.
    package var first: UInt64
    /// The number of the last entry.
    package var last: UInt64
    /// The hash of the last entry. Whoever has noted it can tell later whether the entries up to
    /// this one are the same.
    package var hash: String
    /// Where the chain is broken, as sentences; at most `problemsMax`.
    package var problems: [String]

    package static let problemsMax = 20

    package init(first: UInt64, last: UInt64, hash: String, problems: [String]) {
        self.first = first
        self.last = last
        self.hash = hash
        self.problems = problems
    }
}
