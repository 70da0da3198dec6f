import CoreMetrics
import Synchronization

/// One value of one metric family.
protocol Cell: Sendable {
    func write(_ label: String, _ labels: Labels, to text: inout String)
}

final class CounterCell: Cell, CounterHandler {
    private let value = Mutex<Int64>(0)

    func increment(by amount: Int64) {
        value.withLock { value in
            let (sum, overflow) = value.addingReportingOverflow(amount)
            value = overflow ? .max : sum
        }
    }

    func reset() { value.withLock { $0 = 0 } }

    func write(_ label: String, _ labels: Labels, to text: inout String) {
        text += "\(label)\(labels.written()) \(value.withLock { $0 })\n"
    }
}

final class FloatingCounterCell: Cell, FloatingPointCounterHandler {
    private let value = Mutex(0.0)

    func increment(by amount: Double) { value.withLock { $0 += amount } }

    func reset() { value.withLock { $0 = 0 } }

    func write(_ label: String, _ labels: Labels, to text: inout String) {
        text += "\(label)\(labels.written()) \(Number.text(value.withLock { $0 }))\n"
    }
}

final class GaugeCell: Cell, MeterHandler, RecorderHandler {
    private let value = Mutex(0.0)

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { self.value.withLock { $0 = value } }
    func increment(by amount: Double) { value.withLock { $0 += amount } }
    func decrement(by amount: Double) { value.withLock { $0 -= amount } }
    func record(_ value: Int64) { set(value) }
    func record(_ value: Double) { set(value) }

    func write(_ label: String, _ labels: Labels, to text: inout String) {
        text += "\(label)\(labels.written()) \(Number.text(value.withLock { $0 }))\n"
    }
}

final class HistogramCell: Cell, RecorderHandler, TimerHandler {
    private struct State {
        /// The count of each bucket by itself, not cumulative; the last bucket has no upper bound.
        var counts: [UInt64]
        var sum = 0.0
    }

    private let bounds: [Double]
    private let state: Mutex<State>

    init(_ bounds: [Double]) {
        self.bounds = bounds
        state = Mutex(State(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        let bucket = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[bucket] += 1
            state.sum += value
        }
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }

    func write(_ label: String, _ labels: Labels, to text: inout String) {
        let state = state.withLock { $0 }
        var total: UInt64 = 0
        for (place, count) in state.counts.enumerated() {
            total += count
            let bound = place < bounds.count ? Number.text(bounds[place]) : "+Inf"
            text += "\(label)_bucket\(labels.written(with: "le=\"\(bound)\"")) \(total)\n"
        }
        text += "\(label)_sum\(labels.written()) \(Number.text(state.sum))\n"
        text += "\(label)_count\(labels.written()) \(total)\n"
    }
}

enum Number {
    /// Formats a number; whole numbers have no fraction.
    static func text(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)"
    }
}
