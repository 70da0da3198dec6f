/// What a token allows. Each role includes those before it.
package enum AccessRole: String, Hashable, Comparable, CaseIterable, Sendable, Codable {
    /// To look.
    case view
    /// To submit graphs, and to add to, close and cancel those that the same token has submitted.
    case submit
    /// To change everything in the cluster.
    case operate
    /// To create and revoke tokens, and to read the audit.
    case administer

    /// The role with this name in a file of tokens or in an option; `read` is the old name of
    /// `view`.
    package init?(name: some StringProtocol) {
        self.init(rawValue: name == "read" ? "view" : String(name))
    }

    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    package static func < (left: AccessRole, right: AccessRole) -> Bool { left.rank < right.rank }

    /// All names, as a sentence lists them.
    package static let names = allCases.map(\.rawValue).joined(separator: ", ")
}
