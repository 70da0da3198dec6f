package import CoreMetrics
import Synchronization

/// A swift-metrics backend that keeps all values in memory and writes them in the Prometheus text
/// format, version 0.0.4. Timers and aggregating recorders are histograms. The label of a timer
/// says seconds, and its values are written in seconds.
///
/// Each label is one metric family: two metrics with the same label and dimensions share one value.
/// Destroying a metric has no effect: if a counter is made again, it continues from its old value.
package final class PrometheusMetrics: MetricsFactory, Sendable {
    /// The upper bounds of the histogram buckets, in seconds for timers; a bucket up to +Inf
    /// follows.
    package static let bounds: [Double] = [
        0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 3_600,
    ]

    /// The most values that one family may have. A scrape of this many takes a fraction of a
    /// second, and a monitoring system accepts no more for one label.
    package static let seriesMax = 10_000

    private let help: [String: String]
    private let families = Mutex<[String: Family]>([:])

    /// - Parameter help: the meaning of each label, in a sentence.
    package init(help: [String: String] = [:]) { self.help = help }

    // MARK: - MetricsFactory

    package func makeCounter(
        label: String,
        dimensions: [(String, String)]
    ) -> any CounterHandler {
        cell(label, dimensions, .counter) { CounterCell() }
    }

    package func makeFloatingPointCounter(
        label: String,
        dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        cell(label, dimensions, .counter) { FloatingCounterCell() }
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        cell(label, dimensions, .gauge) { GaugeCell() }
    }

    package func makeRecorder(
        label: String,
        dimensions: [(String, String)],
        aggregate: Bool
    ) -> any RecorderHandler {
        guard aggregate else { return cell(label, dimensions, .gauge) { GaugeCell() } }
        return cell(label, dimensions, .histogram) { HistogramCell(Self.bounds) }
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        cell(label, dimensions, .histogram) { HistogramCell(Self.bounds) }
    }

    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}
    package func destroyMeter(_ handler: any MeterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}

    /// The value with this label and these dimensions, created if it is new. A label has one type.
    /// A value that is made with another type, or beyond `seriesMax`, accepts updates but is not
    /// written.
    private func cell<Value: Cell>(
        _ label: String,
        _ dimensions: [(String, String)],
        _ type: MetricType,
        _ make: () -> Value
    ) -> Value {
        let labels = Labels(dimensions)
        return families.withLock { families in
            if let known = families[label]?.cells[labels] as? Value { return known }
            let new = make()
            // Modified in place: copying the family for each new value would take quadratic time.
            families[label, default: Family(type: type)].add(new, labels, type)
            return new
        }
    }

    // MARK: - Text

    /// Values that are computed for each scrape.
    package struct Gauges: Sendable {
        package var label: String
        /// Each value with its dimensions.
        package var values: [(dimensions: [(String, String)], value: Double)]

        package init(
            label: String,
            values: [(dimensions: [(String, String)], value: Double)]
        ) {
            self.label = label
            self.values = values
        }
    }

    /// All current values, sorted by label and dimensions.
    package var text: String { text(with: []) }

    /// The same, with computed values. Their labels must not be labels of stored values.
    package func text(with gauges: [Gauges]) -> String {
        var families = families.withLock { $0 }
        for gauges in gauges {
            var family = Family(type: .gauge)
            for (dimensions, value) in gauges.values {
                let cell = GaugeCell()
                cell.set(value)
                family.add(cell, Labels(dimensions), .gauge)
            }
            families[gauges.label] = family
        }
        var text = ""
        for (label, family) in families.sorted(by: { $0.key < $1.key }) {
            if let help = help[label] { text += "# HELP \(label) \(Labels.escaped(help))\n" }
            text += "# TYPE \(label) \(family.type.rawValue)\n"
            for (labels, cell) in family.cells.sorted(by: { $0.key < $1.key }) {
                cell.write(label, labels, to: &text)
            }
        }
        return text
    }
}

private enum MetricType: String, Sendable {
    case counter
    case gauge
    case histogram
}

private struct Family: Sendable {
    let type: MetricType
    /// Unordered; sorted when they are written.
    var cells: [Labels: any Cell] = [:]

    mutating func add(_ cell: any Cell, _ labels: Labels, _ type: MetricType) {
        guard self.type == type, cells.count < PrometheusMetrics.seriesMax else { return }
        cells[labels] = cell
    }
}

/// The dimensions of a value, sorted by name.
struct Labels: Hashable, Comparable, Sendable {
    private let text: String

    init(_ dimensions: [(String, String)]) {
        text = dimensions.sorted { $0.0 < $1.0 }
            .map { "\($0.0)=\"\(Self.escaped($0.1, inQuotes: true))\"" }
            .joined(separator: ",")
    }

    static func < (left: Labels, right: Labels) -> Bool { left.text < right.text }

    /// The labels in braces, with `more` as another pair if it is given; empty if there are none.
    func written(with more: String? = nil) -> String {
        let all = [text, more ?? ""].filter { !$0.isEmpty }.joined(separator: ",")
        return all.isEmpty ? "" : "{\(all)}"
    }

    static func escaped(_ text: String, inQuotes: Bool = false) -> String {
        var out = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": out += "\\\\"
            case "\"" where inQuotes: out += "\\\""
            case "\n": out += "\\n"
            default: out.unicodeScalars.append(character)
            }
        }
        return out
    }
}
