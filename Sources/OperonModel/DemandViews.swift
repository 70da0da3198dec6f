// What clients see of resources and demands: see Views.swift.

/// An amount that a worker offers, in whole processors, bytes or units.
package struct ResourceView: Hashable, Sendable, Codable {
    package var name: String
    package var offered: Double
    package var free: Double

    /// The most resources of all workers together that one answer lists.
    package static let listedMax = 100

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

/// Operations that ask the same of their worker, and wait or run.
package struct DemandView: Hashable, Sendable, Codable {
    /// What they ask for, in words: `gpus 1, memory 8GiB`; `nothing but a slot`.
    package var text: String
    /// What each of them takes besides a slot, by resource, in whole processors, bytes or units.
    package var resources: [String: Double]
    /// What the labels of its worker must be, as Kubernetes writes label selectors; empty:
    /// anything.
    package var workers: String
    /// Whether their worker must hold them to their processors and memory; `nil`: no.
    package var enforce: Bool?
    package var ready: Int
    /// Operations that are dispatched or executing.
    package var inFlight: Int
    /// How many of the ready operations no worker known now could ever run.
    package var unrunnable: Int
    /// What is missing for most of these, in words; `nil`: nothing.
    package var missing: String?

    package init(_ demand: ResourceDemand, ready: Int, inFlight: Int, unrunnable: Int) {
        text = demand.isEmpty ? "nothing but a slot" : demand.text
        let amounts = demand.resources.all.map { one in
            (one.name, ResourceText.wholeUnits(Double(one.amount), of: one.name))
        }
        resources = Dictionary(amounts) { first, _ in first }
        workers = demand.selector
        enforce = demand.isEnforced ? true : nil
        self.ready = ready
        self.inFlight = inFlight
        self.unrunnable = unrunnable
    }

    /// Whether the operations ask for nothing but a slot.
    package var isPlain: Bool { resources.isEmpty && workers.isEmpty }

    /// The most demands that one answer lists.
    package static let listedMax = 100
}
