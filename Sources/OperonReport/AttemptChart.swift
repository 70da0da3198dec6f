/// The attempts of a graph in the rows of a timeline, from which any part can be cut in a bounded
/// number of bars.
package struct AttemptChart: Sendable {
    /// An attempt. Times are seconds.
    package struct Bar: Hashable, Sendable {
        package var operation: UInt32
        /// The number of the attempt.
        package var attempt: UInt32
        /// When all that its operation depends on in its graph had ended, and so had the attempts
        /// before it. `.infinity`: not known.
        package var ready: Double
        package var start: Double
        /// `.infinity`: it is in flight.
        package var end: Double
        package var state: State
        package var isCritical: Bool

        package init(
            operation: UInt32,
            attempt: UInt32,
            ready: Double,
            start: Double,
            end: Double,
            state: State,
            isCritical: Bool
        ) {
            self.operation = operation
            self.attempt = attempt
            self.ready = ready
            self.start = start
            self.end = max(start, end)
            self.state = state
            self.isCritical = isCritical
        }
    }

    /// How an attempt is or ended. What needs attention more comes later.
    package enum State: UInt8, Comparable, Sendable {
        case succeeded
        case executing
        /// It gave its slot back, to go on later.
        case returned
        case cancelled
        case lost
        case failed

        package static func < (left: State, right: State) -> Bool {
            left.rawValue < right.rawValue
        }
    }

    /// One slot of a worker.
    package struct Row: Sendable {
        /// The number of the worker.
        package let worker: Int
        /// From 1.
        package let slot: Int
        /// In the order of their start; none overlaps another.
        fileprivate var bars: [Bar] = []
    }

    /// A bar of a part of the chart: one attempt, or several that are too short to be told apart.
    package struct Cut: Hashable, Sendable {
        package var first: Bar
        /// The part of the gap before the first attempt in which that attempt was waiting begins
        /// at this time. `nil`: there is none, or it is too short to be seen.
        package var waitedFrom: Double?
        package var end: Double
        package var count: Int
        package var state: State
        package var isCritical: Bool
    }

    /// The most rows. Those of further slots are left out.
    package static let rowsMax = 256

    package let rows: [Row]
    package let rowsLeftOut: Int

    /// - Parameter bars: With the numbers of their workers.
    package init(_ bars: [(worker: Int, bar: Bar)]) {
        let sorted = bars.sorted { left, right in
            (left.bar.start, left.bar.end, left.bar.operation)
                < (right.bar.start, right.bar.end, right.bar.operation)
        }
        var workers: [Int] = []
        var known: [Int: (slots: FreeSlots<Double>, rows: [Row])] = [:]
        for (worker, bar) in sorted {
            if known[worker] == nil { workers.append(worker) }
            let slot = known[worker, default: (FreeSlots(), [])].slots.take(bar.start, bar.end)
            if slot == known[worker]?.rows.count {
                known[worker]?.rows.append(Row(worker: worker, slot: slot + 1))
            }
            known[worker]?.rows[slot].bars.append(bar)
        }
        // The rows of a worker together, in the order in which workers began.
        let all = workers.flatMap { known[$0]?.rows ?? [] }
        rows = Array(all.prefix(Self.rowsMax))
        rowsLeftOut = all.count - rows.count
    }

    /// The bars of a row within a part of the chart, and the one behind it if it was waiting there.
    ///
    /// - Parameter barsMax: Attempts that are shorter than this part of the time are put together
    ///   with their neighbours.
    package func bars(of row: Row, from: Double, to: Double, barsMax: Int) -> [Cut] {
        // A third are long, a third follow a long one, a third begin this far behind another.
        let least = (to - from) / Double(max(1, barsMax / 3))
        var cuts: [Cut] = []
        let first = Self.firstIndex(endingAt: from, in: row.bars)
        // Half a pixel of a wide screen.
        let leastWait = (to - from) / 4_000
        var freeAt = first > 0 ? row.bars[first - 1].end : 0
        for bar in row.bars[first...] {
            let waitStart = max(bar.ready, freeAt)
            let wait = bar.start - waitStart
            let waitedFrom = wait > leastWait ? waitStart : nil
            freeAt = bar.end
            guard bar.start <= to || waitedFrom.map({ $0 <= to }) == true else { break }
            // Also where a part has no length: any number may begin at one moment.
            let isShort = bar.end - bar.start <= least
            if isShort, wait <= least, let last = cuts.last, last.end - last.first.start <= least,
                bar.end - last.first.start <= 2 * least
            {
                let place = cuts.count - 1
                cuts[place].end = bar.end
                cuts[place].count += 1
                cuts[place].state = max(last.state, bar.state)
                cuts[place].isCritical = last.isCritical || bar.isCritical
            } else {
                cuts.append(
                    Cut(
                        first: bar,
                        waitedFrom: waitedFrom,
                        end: bar.end,
                        count: 1,
                        state: bar.state,
                        isCritical: bar.isCritical
                    )
                )
            }
        }
        return cuts
    }

    /// The first bar that ends at this time or later. The bars of a row do not overlap, so their
    /// ends are in order, too.
    private static func firstIndex(endingAt time: Double, in bars: [Bar]) -> Int {
        var range = bars.startIndex..<bars.endIndex
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            if bars[middle].end < time {
                range = middle + 1..<range.upperBound
            } else {
                range = range.lowerBound..<middle
            }
        }
        return range.lowerBound
    }
}
