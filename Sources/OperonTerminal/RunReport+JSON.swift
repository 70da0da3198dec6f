import OperonModel

extension RunReport {
    /// Writes the JSON form in pieces of about `pieceBytes` bytes, so that a report of a million
    /// operations is never one string. Each operation is one line; keys have a fixed order.
    package func writeJSON(pieceBytes: Int = 64 << 10, _ write: ([UInt8]) -> Void) {
        var json = JSONText()
        json.bytes.reserveCapacity(pieceBytes + 4_096)
        writeHead(to: &json)
        for (index, operation) in operations.enumerated() {
            json.raw(index == 0 ? "\n" : ",\n")
            operation.write(to: &json)
            if json.bytes.count >= pieceBytes {
                write(PrintableJSON.escaped(json.bytes))
                json.bytes.removeAll(keepingCapacity: true)
            }
        }
        json.raw(operations.isEmpty ? "]}\n" : "\n]}\n")
        write(PrintableJSON.escaped(json.bytes))
    }

    /// The JSON form in one piece.
    package func json() -> [UInt8] {
        var result: [UInt8] = []
        writeJSON { result += $0 }
        return result
    }

    private func writeHead(to json: inout JSONText) {
        json.raw("{\"version\":\(RunReport.version)")
        json.key("graph")
        json.string(graph)
        json.key("startedAt")
        json.string(TimeFormat.iso8601(startedAt))
        let counts = self.counts
        json.key("counts")
        json.raw("{\"succeeded\":\(counts.succeeded),\"failed\":\(counts.failed)")
        json.raw(",\"cancelled\":\(counts.cancelled),\"skipped\":\(counts.skipped)")
        json.raw(",\"unfinished\":\(counts.unfinished),\"total\":\(counts.total)}")
        json.seconds("makespan", makespan)
        json.seconds("lowerBound", lowerBound)
        json.seconds("criticalPath", criticalPath)
        json.seconds("work", work)
        json.raw(",\"slots\":\(slots)")
        json.key("operations")
        json.raw("[")
    }
}

extension OperationReport {
    fileprivate func write(to json: inout JSONText) {
        json.raw("{\"name\":")
        json.string(name)
        json.key("outcome")
        if let outcome { json.string(outcome.name) } else { json.raw("null") }
        if isUpToDate { json.raw(",\"isUpToDate\":true") }
        if let error { json.error(error) }
        if outcome == .cancelled {
            json.key("reason")
            json.string(reason)
        }
        json.seconds("start", start)
        json.seconds("end", end)
        json.key("worker")
        if let worker { json.string(worker) } else { json.raw("null") }
        json.key("attempts")
        json.raw("[")
        for (index, attempt) in attempts.enumerated() {
            if index > 0 { json.raw(",") }
            attempt.write(to: &json)
        }
        json.raw("]")
        if let cause {
            json.raw(",\"cause\":{\"dependency\":")
            json.string(cause.dependency)
            json.key("root")
            json.string(cause.root)
            json.key("rootOutcome")
            json.string(cause.rootOutcome.name)
            json.raw("}")
        }
        if !log.isEmpty {
            json.key("log")
            json.string(log)
            if logBytesBefore > 0 {
                json.key("isLogCut")
                json.raw("true")
            }
        }
        json.raw("}")
    }
}

extension AttemptReport {
    fileprivate func write(to json: inout JSONText) {
        json.raw("{\"number\":\(number)")
        json.key("worker")
        json.string(worker)
        json.seconds("start", start)
        json.seconds("end", end)
        json.key("ended")
        json.string(ended.rawValue)
        if let error { json.error(error) }
        json.raw("}")
    }
}

/// JSON that is being written. The caller writes the commas between keys: one before every `key`
/// except the first of an object.
struct JSONText {
    var bytes: [UInt8] = []

    mutating func raw(_ text: String) { bytes += text.utf8 }

    mutating func string(_ text: String) {
        bytes += PrintableJSON.escaped(JSONString.quoted(text))
    }

    /// `,"name":` — for Operon's own keys, which need no escapes.
    mutating func key(_ name: String) { raw(",\"\(name)\":") }

    mutating func seconds(_ name: String, _ duration: Duration?) {
        key(name)
        raw(duration.map(TimeFormat.decimalSeconds) ?? "null")
    }

    /// The code and the sentence of the error, and the values that belong to the code.
    mutating func error(_ error: OperationError) {
        key("error")
        raw("{\"code\":")
        string(error.code)
        key("message")
        string(error.description)
        switch error {
        case .exit(let code): raw(",\"exitCode\":\(code)")
        case .signal(let name):
            key("signal")
            string(name)
        case .thrown(let type, _, _):
            key("type")
            string(type)
        case .kindUnknown(let kind):
            key("kind")
            string(kind)
        case .inputTooLarge(let bytes, let limit), .outputTooLarge(let bytes, let limit):
            raw(",\"bytes\":\(bytes),\"limit\":\(limit)")
        case .conditionFailed(let name):
            key("condition")
            string(name)
        case .timeout, .deadline, .workerLost, .undecodable, .versionUnsupported: break
        }
        raw("}")
    }
}
