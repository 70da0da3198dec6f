/// How much of each kind a hostile program has sent, and what became of it.
package struct HostileTally: Sendable {
    package private(set) var sent: [String: Int] = [:]
    package private(set) var answers: [String: Int] = [:]
    package private(set) var bytes = 0

    package init() {}

    package mutating func send(_ kind: String, bytes: Int) {
        sent[kind, default: 0] += 1
        self.bytes += bytes
    }

    package mutating func answer(_ kind: String) { answers[kind, default: 0] += 1 }

    package var total: Int { sent.values.reduce(0, +) }

    /// One line for each kind, in the order of their names, and one for all.
    package var lines: [String] {
        let sentLines = sent.sorted { $0.key < $1.key }.map { "sent \($0.value) × \($0.key)" }
        let answerLines = answers.sorted { $0.key < $1.key }.map { "got \($0.value) × \($0.key)" }
        return sentLines + answerLines + ["sent \(total) in all, \(bytes) bytes"]
    }
}
