/// The outcomes that clients were told, and whether any of them was told otherwise later.
package struct OutcomeHistory: Sendable {
    package struct Change: Hashable, Sendable, CustomStringConvertible {
        package let operation: String
        package let before: String
        /// `nil`: it had no outcome any more.
        package let after: String?

        package init(_ operation: String, before: String, after: String?) {
            self.operation = operation
            self.before = before
            self.after = after
        }

        package var description: String {
            "\(operation) was \(before), and then \(after ?? "unfinished")"
        }
    }

    package private(set) var changes: [Change] = []
    /// How often an outcome was read that had been read before.
    package private(set) var readings = 0
    private var told: [String: String] = [:]

    package init() {}

    /// - Parameter outcome: `nil`: it has none yet.
    package mutating func read(_ operation: String, _ outcome: String?) {
        guard let before = told[operation] else {
            told[operation] = outcome
            return
        }
        readings += 1
        if before != outcome {
            changes.append(Change(operation, before: before, after: outcome))
            told[operation] = outcome
        }
    }

    package subscript(operation: String) -> String? { told[operation] }
}
