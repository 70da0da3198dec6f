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
    /// what is made under it as another is counted, and not written.
    private func cell<Value: Cell>(
        _ label: String,
        _ dimensions: [(String, String)],
        _ type: MetricType,
        _ make: () -> Value
    ) -> Value {
        let labels = Labels(dimensions)
        return families.withLockedValue { families in
            var family = families[label] ?? Family(type: type)
            if let known = family.cells[labels] as? Value { return known }
            let new = make()
            if family.type == type { family.cells[labels] = new }
            families[label] = family
            return new
        }
    }

    // MARK: - Text

    /// All values as they are now, sorted by label and dimensions.
    package var text: String {
        let families = families.withLockedValue { $0 }
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
