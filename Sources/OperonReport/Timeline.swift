import HeapModule

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
        var slots: [String: Slots] = [:]
        var workers: [String] = []
        for bar in bars.sorted(by: { ($0.start, $0.end, $0.name) < ($1.start, $1.end, $1.name) }) {
            if slots[bar.worker] == nil { workers.append(bar.worker) }
            slots[bar.worker, default: Slots()].add(bar)
        }
        // The rows of a worker together, in the order in which workers began.
        let ordered = workers.flatMap { worker in
            (slots[worker]?.bars ?? []).enumerated().map { place, own in
                Row(worker: worker, slot: place + 1, bars: own)
            }
        }
        rows = Array(ordered.prefix(Self.rowsMax))
        rowsLeftOut = ordered.count - rows.count
        self.length = max(length, bars.lazy.map(\.end).max() ?? .zero)
    }

    /// The slots of one worker.
    private struct Slots {
        private struct Busy: Comparable {
            let end: Duration
            let slot: Int

            static func < (left: Busy, right: Busy) -> Bool {
                (left.end, left.slot) < (right.end, right.slot)
            }
        }

        private(set) var bars: [[Bar]] = []
        private var busy = Heap<Busy>()
        private var free = Heap<Int>()

        /// Adds a bar that does not start before those that were added.
        mutating func add(_ bar: Bar) {
            while let first = busy.min, first.end <= bar.start {
                busy.removeMin()
                free.insert(first.slot)
            }
            let slot = free.popMin() ?? bars.count
            if slot == bars.count { bars.append([]) }
            bars[slot].append(bar)
            busy.insert(Busy(end: bar.end, slot: slot))
        }
    }
}
