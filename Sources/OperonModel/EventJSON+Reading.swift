extension EventJSON {
    /// Reads what `line` writes, for clients that follow events: there are three for each
    /// operation.
    ///
    /// - Returns: `nil` if the JSON is not exactly what `line` writes for some event without an
    ///   error, or if a text in it has an escape. It may still be the JSON of an event: of a later
    ///   version, for instance.
    package static func view(_ line: [UInt8]) -> EventView? {
        var reader = ObjectReader(line)
        guard reader.open(), let date = reader.text("at"), let at = DateText.moment(date),
            // A date has other forms, too.
            DateText.text(at) == date
        else { return nil }
        let attempt = reader.text("attempt")
        let by = reader.text("by")
        let count: UInt32? = reader.number("count")
        let ending = reader.text("ending")
        let firing: UInt64? = reader.number("firing")
        let graph: UInt32? = reader.number("graph")
        let graphName = reader.text("graphName")
        let isUpToDate = reader.flag("isUpToDate")
        let key = reader.text("key")
        guard let kind = reader.text("kind") else { return nil }
        let operation = reader.operation("operation")
        let outcomeName = reader.text("outcome")
        let outcome = outcomeName.flatMap { name in OutcomeKind.allCases.first { $0.name == name } }
        let queue = reader.text("queue")
        let reason = reader.text("reason")
        guard let sequence: UInt64 = reader.number("sequence") else { return nil }
        let trigger = reader.text("trigger")
        let worker = reader.text("worker")
        guard reader.close(), reader.isAtEnd, (outcomeName == nil) == (outcome == nil) else {
            return nil
        }
        var view = EventView(
            sequence: sequence,
            at: TimeText(at),
            kind: EventKind(rawValue: kind)
        )
        (view.attempt, view.by, view.count, view.ending) = (attempt, by, count, ending)
        (view.graph, view.graphName, view.isUpToDate) = (graph, graphName, isUpToDate)
        (view.key, view.operation, view.outcome) = (key, operation, outcome)
        (view.queue, view.reason) = (queue, reason)
        (view.trigger, view.firing, view.worker) = (trigger, firing, worker)
        return view
    }
}

/// Reads the fields of one object in the order of the calls. After the first thing that is not as
/// expected, nothing is found any more.
private struct ObjectReader {
    private let bytes: [UInt8]
    private var position = 0
    private var isFirst = true
    private var isRegular = true

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { isRegular && position == bytes.count }

    mutating func open() -> Bool {
        isFirst = true
        return take(UInt8(ascii: "{"))
    }

    mutating func close() -> Bool {
        isFirst = false
        return take(UInt8(ascii: "}"))
    }

    /// `nil`: the next field has another name, or nothing is regular any more.
    mutating func text(_ name: StaticString) -> String? {
        guard begin(name), take(UInt8(ascii: "\"")) else { return nil }
        let start = position
        while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
            // Escapes are left to a whole reader of JSON; control characters are not JSON.
            guard bytes[position] >= 0x20, bytes[position] != UInt8(ascii: "\\") else {
                return fail()
            }
            position += 1
        }
        let end = position
        guard take(UInt8(ascii: "\"")) else { return nil }
        let text = Array(bytes[start..<end])
        // What misleads a reader is written with an escape.
        guard PrintableJSON.escaped(text) == text else { return fail() }
        return String(validating: text, as: UTF8.self) ?? fail()
    }

    /// Reads a number as `String(_:)` writes it.
    mutating func number<Number: FixedWidthInteger & UnsignedInteger>(
        _ name: StaticString
    ) -> Number? {
        guard begin(name) else { return nil }
        let start = position
        var number: Number = 0
        let zero = UInt8(ascii: "0")
        while position < bytes.count, (zero...zero + 9).contains(bytes[position]) {
            let (tens, isOver) = number.multipliedReportingOverflow(by: 10)
            let (sum, isOverNow) = tens.addingReportingOverflow(Number(bytes[position] - zero))
            guard !isOver, !isOverNow else { return fail() }
            number = sum
            position += 1
        }
        guard position > start, position == start + 1 || bytes[start] != zero else {
            return fail()
        }
        return number
    }

    mutating func flag(_ name: StaticString) -> Bool? {
        guard begin(name) else { return nil }
        if take("true") { return true }
        return take("false") ? false : fail()
    }

    mutating func operation(_ name: StaticString) -> OperationName? {
        guard begin(name), open() else { return nil }
        guard let graph: UInt32 = number("graph"), let index: UInt32 = number("index"),
            let text = text("name"), close()
        else { return fail() }
        return OperationName(graph: graph, index: index, name: text)
    }

    private mutating func fail<Value>() -> Value? {
        isRegular = false
        return nil
    }

    /// Whether the next field has this name; then its value is next.
    private mutating func begin(_ name: StaticString) -> Bool {
        let start = position
        let wasFirst = isFirst
        guard isFirst || has(UInt8(ascii: ",")) else { return false }
        if !isFirst { position += 1 }
        isFirst = false
        guard take("\""), take(name), take("\":") else {
            (position, isFirst) = (start, wasFirst)
            return false
        }
        return true
    }

    private func has(_ byte: UInt8) -> Bool {
        isRegular && position < bytes.count && bytes[position] == byte
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard has(byte) else { return fail() ?? false }
        position += 1
        return true
    }

    /// Takes these bytes if they are next.
    private mutating func take(_ text: StaticString) -> Bool {
        let expected = text.description.utf8
        let end = position + expected.count
        guard isRegular, end <= bytes.count, bytes[position..<end].elementsEqual(expected) else {
            return false
        }
        position = end
        return true
    }
}
