import OperonCore
import OperonModel

extension CoordinatorService {
    /// What Prometheus reads: the text format, version 0.0.4.
    package func metrics() -> String {
        var text = MetricsText()
        let view = clusterView(version: "")
        text.gauge(
            "operon_operations",
            "Operations by state.",
            [
                (["state": "pending"], Double(view.counts.pending)),
                (["state": "ready"], Double(view.counts.ready)),
                (["state": "dispatched"], Double(view.counts.dispatched)),
                (["state": "executing"], Double(view.counts.executing)),
            ]
        )
        text.gauge("operon_slots", "Slots of live workers.", [([:], Double(view.slots))])
        text.gauge("operon_workers", "Live workers.", [([:], Double(view.workers))])
        text.gauge("operon_broker_up", "1: connected.", [([:], scheduler.isUp ? 1 : 0)])
        text.gauge("operon_store_up", "1: keeps records.", [([:], keeping?.trouble == nil ? 1 : 0)])
        let queues = queueViews()
        text.gauge(
            "operon_queue_ready",
            "Operations that could run: what an autoscaler looks at.",
            queues.map { (["queue": $0.name], Double($0.ready)) }
        )
        text.gauge(
            "operon_queue_in_flight",
            "Operations dispatched or executing.",
            queues.map { (["queue": $0.name], Double($0.inFlight)) }
        )
        return text.text
    }
}

/// Writes Prometheus' text format.
struct MetricsText {
    private(set) var text = ""

    mutating func gauge(
        _ name: String,
        _ help: String,
        _ values: [(labels: KeyValuePairs<String, String>, value: Double)]
    ) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) gauge\n"
        for (labels, value) in values {
            let written = labels.map { "\($0.key)=\"\(Self.escaped($0.value))\"" }
            let inside = written.isEmpty ? "" : "{" + written.joined(separator: ",") + "}"
            text += "\(name)\(inside) \(value)\n"
        }
    }

    private static func escaped(_ text: String) -> String {
        var out = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": out += "\\\\"
            case "\"": out += "\\\""
            case "\n": out += "\\n"
            default: out.unicodeScalars.append(character)
            }
        }
        return out
    }
}
