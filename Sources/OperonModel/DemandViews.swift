// What clients see of resources and demands: see Views.swift.

/// An amount that a worker offers, in whole processors, bytes or units.
package struct ResourceView: Hashable, Sendable, Codable {
    package var name: String
    package var offered: Double
    package var free: Double

    package init(_ offered: ResourceAmount, left: Int) {
        self.init(name: offered.name, offered: Double(offered.amount), left: Double(left))
    }

    /// - Parameters:
    ///   - offered: In the base unit of the resource.
    ///   - left: The same.
    package init(name: String, offered: Double, left: Double) {
        self.name = name
        self.offered = ResourceText.wholeUnits(offered, of: name)
        free = ResourceText.wholeUnits(left, of: name)
    }
}

/// Operations of a submission that no worker known now could ever run. They wait for a worker that
/// can.
package struct WarningView: Hashable, Sendable, Codable {
    /// `noWorker`, or one of the codes of reasons: `noWorkerForKind`, `noWorkerForQueue`,
    /// `noWorkerForResources`.
    package var code: String
    /// A sentence for a person.
    package var text: String
    /// What is missing: the kind, the queue, or what the worker that comes closest lacks; empty for
    /// `noWorker`.
    package var missing: String
    /// The first few of the operations.
    package var operations: [OperationName] = []
    /// How many more operations there are than those listed.
    package var more = 0

    package init(code: String, text: String, missing: String) {
        self.code = code
        self.text = text
        self.missing = missing
    }

    /// The most warnings that one answer has.
    package static let listedMax = 8
}
