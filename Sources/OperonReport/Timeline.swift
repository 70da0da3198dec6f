import HeapModule

/// What ran where and when: a row for each slot, a bar for each attempt.
package struct Timeline: Sendable {
    package struct Bar: Hashable, Sendable {
        package var name: String
        package var worker: String
        /// When all that its operation depends on had ended, and so had the attempts before it,
        /// from the start of the timeline. `nil`: not known.
        package var ready: Duration?
        package var start: Duration
        package var end: Duration
        package var state: Picture.State
        package var isCritical: Bool

        package init(
            name: String,
            worker: String,
            ready: Duration? = nil,
            start: Duration,
            end: Duration,
            state: Picture.State,
            isCritical: Bool = false
        ) {
            self.name = name
            self.worker = worker
            self.ready = ready
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
        var slots: [String: (free: FreeSlots<Duration>, bars: [[Bar]])] = [:]
        var workers: [String] = []
        for bar in bars.sorted(by: { ($0.start, $0.end, $0.name) < ($1.start, $1.end, $1.name) }) {
            if slots[bar.worker] == nil { workers.append(bar.worker) }
            let slot = slots[bar.worker, default: (FreeSlots(), [])].free.take(bar.start, bar.end)
            if slot == slots[bar.worker]?.bars.count { slots[bar.worker]?.bars.append([]) }
            slots[bar.worker]?.bars[slot].append(bar)
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
}

/// The slots of one worker.
package struct FreeSlots<Time: Comparable & Sendable>: Sendable {
    private struct Busy: Comparable {
        let end: Time
        let slot: Int

        static func < (left: Busy, right: Busy) -> Bool {
            (left.end, left.slot) < (right.end, right.slot)
        }
    }

    private var busy = Heap<Busy>()
    private var free = Heap<Int>()
    private var count = 0

    package init() {}

    /// Takes the first slot that is free at the start, which is not before those of earlier calls.
    /// Slots are numbered from 0.
    package mutating func take(_ start: Time, _ end: Time) -> Int {
        while let first = busy.min, first.end <= start {
            busy.removeMin()
            free.insert(first.slot)
        }
        let slot = free.popMin() ?? count
        count = max(count, slot + 1)
        busy.insert(Busy(end: end, slot: slot))
        return slot
    }
}
