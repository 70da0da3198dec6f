/// What ran where and when: a row for each slot, a bar for each attempt.
package struct Timeline: Sendable {
    package struct Bar: Hashable, Sendable {
        package var name: String
        package var worker: String
        /// From the start of the timeline.
        package var start: Duration
        package var end: Duration
        package var state: Picture.State
        package var isCritical: Bool

        package init(
            name: String,
            worker: String,
            start: Duration,
            end: Duration,
            state: Picture.State,
            isCritical: Bool = false
        ) {
            self.name = name
            self.worker = worker
            self.start = start
            self.end = max(start, end)
            self.state = state
            self.isCritical = isCritical
        }
    }

    /// One slot of a worker.
    package struct Row: Hashable, Sendable {
        package let worker: String
        /// From 1.
        package let slot: Int
        /// In the order of their start; none overlaps another.
        package fileprivate(set) var bars: [Bar]
    }

    /// The most rows. Those of further slots are left out.
    package static let rowsMax = 256

    package let rows: [Row]
    package let rowsLeftOut: Int
    package let length: Duration

    /// Gives each bar the first slot of its worker that is free: which slot an operation had is
    /// known to nobody, and how many were busy is the same.
    package init(_ bars: [Bar], length: Duration) {
        var rows: [Row] = []
        var places: [String: [Int]] = [:]
        var workers: [String] = []
        for bar in bars.sorted(by: { ($0.start, $0.end, $0.name) < ($1.start, $1.end, $1.name) }) {
            var own = places[bar.worker] ?? []
            if own.isEmpty { workers.append(bar.worker) }
            let free = own.first { rows[$0].bars.last.map { $0.end <= bar.start } ?? true }
            if let free {
                rows[free].bars.append(bar)
            } else {
                own.append(rows.count)
                rows.append(Row(worker: bar.worker, slot: own.count, bars: [bar]))
                places[bar.worker] = own
            }
        }
        // The rows of a worker together, in the order in which workers began.
        let ordered = workers.flatMap { worker in (places[worker] ?? []).map { rows[$0] } }
        self.rows = Array(ordered.prefix(Self.rowsMax))
        rowsLeftOut = ordered.count - self.rows.count
        self.length = max(length, bars.lazy.map(\.end).max() ?? .zero)
    }
}
