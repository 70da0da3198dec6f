package import CoreMetrics
import NIOConcurrencyHelpers

/// A backend of swift-metrics that keeps everything in memory and writes it as Prometheus reads it:
/// the text format, version 0.0.4. Timers and recorders that aggregate are histograms; a timer's
/// label says seconds, and its values are written in seconds.
///
/// A label is one family: what is made twice under one label and the same dimensions is one value.
/// What is destroyed stays: a counter that is made again goes on.
package final class PrometheusMetrics: MetricsFactory, Sendable {
    /// Upper bounds of the buckets of a histogram, in seconds for timers; +Inf follows.
    package static let bounds: [Double] = [
        0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 3_600,
    ]

    /// Values of one family. A scrape of as many takes a fraction of a second; a monitoring system
    /// takes in no more of one label.
    package static let seriesMax = 10_000

    private let help: [String: String]
    private let families = NIOLockedValueBox<[String: Family]>([:])

    /// `help`: what each label means, in a sentence.
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

    /// The value of this label and these dimensions, made if it is new. One label is of one type:
    /// what is made under it as another is counted, and not written, and so is what is made beyond
    /// `seriesMax`.
    private func cell<Value: Cell>(
        _ label: String,
        _ dimensions: [(String, String)],
        _ type: MetricType,
        _ make: () -> Value
    ) -> Value {
        let labels = Labels(dimensions)
        return families.withLockedValue { families in
            if let known = families[label]?.cells[labels] as? Value { return known }
            let new = make()
            // In place: a copy for each new value would be quadratic in their number.
            families[label, default: Family(type: type)].add(new, labels, type)
            return new
        }
    }

    // MARK: - Text

    /// Values that are only known when somebody asks.
    package struct Gauges: Sendable {
        package var label: String
        /// Each with its dimensions.
        package var values: [(dimensions: [(String, String)], value: Double)]

        package init(
            label: String,
            values: [(dimensions: [(String, String)], value: Double)]
        ) {
            self.label = label
            self.values = values
        }
    }

    /// All values as they are now, sorted by label and dimensions.
    package var text: String { text(with: []) }

    /// The same, with values that nobody keeps: of no label that has others.
    package func text(with gauges: [Gauges]) -> String {
        var families = families.withLockedValue { $0 }
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
    /// Sorted before they are written.
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

    /// In braces, with one more pair if it is given; nothing if there is none.
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
