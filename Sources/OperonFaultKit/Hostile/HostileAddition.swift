/// Operations as a running operation adds them: pieces of `StoredGraph`, each behind its length in
/// eight bytes. Some are sound, most are not.
package struct HostileAddition: Sendable {
    /// An operation that an addition may depend on by its numbers.
    package struct Place: Sendable {
        package var graph: UInt64
        package var index: UInt64

        package init(graph: UInt64, index: UInt64) {
            self.graph = graph
            self.index = index
        }
    }

    /// The queue of what may be accepted.
    package let queue: String
    /// Names that a sound addition draws from: few, so that what is accepted stays small, because
    /// the same name of the same parent is the same operation.
    private static let names = (0..<40).map { "child\($0)" }

    package init(queue: String) { self.queue = queue }

    package func bytes(_ values: inout HostileValues) -> (kind: String, bytes: [UInt8]) {
        switch values.below(12) {
        case 0: ("sound", framed(graph(1 + values.below(3), &values, wrongPercent: 0)))
        case 1, 2, 3: ("graph elsewhere", framed(elsewhere(&values)))
        case 4: ("wrong length", wrongLength(&values))
        case 5: ("damaged", values.damaged(framed(graph(2, &values, wrongPercent: 5))))
        case 6: ("random", values.bytes())
        case 7 where values.isRare(8): ("many elements", framed(manyElements(&values)))
        case 8 where values.isRare(4):
            ("deep", framed(HostileValues.deepGroups(values.pick([100, 10_000, 100_000]))))
        default: ("wrong fields", framed(graph(1 + values.below(4), &values, wrongPercent: 15)))
        }
    }

    private func framed(_ piece: [UInt8]) -> [UInt8] {
        Self.length(UInt64(piece.count)) + piece
    }

    private static func length(_ count: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) }
    }

    private func wrongLength(_ values: inout HostileValues) -> [UInt8] {
        let piece = graph(1, &values, wrongPercent: 0)
        return Self.length(values.number()) + piece.prefix(values.below(piece.count + 1))
    }

    // MARK: - Pieces

    private func graph(
        _ count: Int,
        _ values: inout HostileValues,
        wrongPercent: Int
    ) -> [UInt8] {
        let usual = values.wrongPercent
        values.wrongPercent = wrongPercent
        defer { values.wrongPercent = usual }
        let isWrong = wrongPercent > 0
        var message = RawMessage()
        if isWrong {
            message.string(1, values.text(or: ""))
            if values.isIn(20) { message.append(settings(&values)) }
            if values.isIn(10) { message.integer(4, values.number()) }
            if values.isIn(20) { message.integer(5, values.number()) }
        }
        for _ in 0..<count { message.data(3, operation(&values, isWrong: isWrong)) }
        return message.bytes
    }

    /// Queues and keys, which an addition has no business to define.
    private func settings(_ values: inout HostileValues) -> [UInt8] {
        var message = RawMessage()
        var queue = RawMessage()
        queue.string(1, values.text(or: self.queue))
        queue.integer(2, values.number())
        queue.integer(3, values.number())
        queue.zigzag(4, values.signed())
        message.data(2, queue.bytes)
        var key = RawMessage()
        key.string(1, values.text())
        key.integer(2, values.number())
        message.data(6, key.bytes)
        return message.bytes
    }

    private func operation(_ values: inout HostileValues, isWrong: Bool) -> [UInt8] {
        var message = RawMessage()
        message.string(1, values.text(or: values.pick(Self.names)))
        message.string(4, values.text(or: queue))
        guard isWrong else {
            message.integer(12, 1_000_000)
            return message.bytes
        }
        for _ in 0..<values.below(3) { message.data(3, dependency(&values)) }
        if values.isIn(30) { message.zigzag(5, values.signed(or: 4)) }
        if values.isIn(20) { message.integer(6, values.number(or: 1)) }
        for field: UInt64 in [7, 9, 16, 17, 18] where values.isIn(25) {
            message.integer(field, signed: values.signed())
        }
        if values.isIn(30) { message.data(8, retry(&values)) }
        for _ in 0..<(values.isIn(20) ? values.below(4) : 0) {
            message.string(10, values.text())
        }
        message.append(work(&values))
        return message.bytes
    }

    private func dependency(_ values: inout HostileValues) -> [UInt8] {
        var message = RawMessage()
        message.string(1, values.text(or: values.pick(Self.names)))
        message.integer(2, values.number(or: UInt64(values.below(4))))
        if values.isIn(40) {
            var place = RawMessage()
            place.integer(1, values.number())
            place.integer(2, values.number())
            message.data(3, place.bytes)
        }
        if values.isIn(10) { message.integer(4, values.number(or: 1)) }
        return message.bytes
    }

    /// One sound operation that depends on one of another graph, which the store alone may say.
    private func elsewhere(_ values: inout HostileValues) -> [UInt8] {
        var operation = RawMessage()
        operation.string(1, values.pick(Self.names))
        operation.string(4, queue)
        var dependency = RawMessage()
        let graph = values.pick([4_000_000_000, values.number()])
        dependency.string(1, values.pick(["\(graph)/0", "0/0", values.text()]))
        var place = RawMessage()
        place.integer(1, graph)
        place.integer(2, values.number())
        dependency.data(3, place.bytes)
        operation.data(3, dependency.bytes)
        operation.message(11)
        return RawMessage { $0.data(3, operation.bytes) }.bytes
    }

    private func retry(_ values: inout HostileValues) -> [UInt8] {
        var message = RawMessage()
        message.integer(1, values.number())
        message.integer(2, signed: values.signed())
        message.fixed(3, values.real().bitPattern)
        message.integer(4, signed: values.signed())
        message.fixed(5, values.real().bitPattern)
        return message.bytes
    }

    private func work(_ values: inout HostileValues) -> [UInt8] {
        var message = RawMessage()
        switch values.below(7) {
        case 0: message.message(11)
        case 1: message.integer(12, signed: values.signed())
        case 2: message.data(13, command(&values))
        case 3:
            var registered = RawMessage()
            registered.string(1, values.text())
            if values.flag() { registered.data(2, payload(&values)) }
            message.data(14, registered.bytes)
        case 4: message.data(19, payload(&values))
        case 5: break  // None at all.
        default: message.integer(12, 1_000_000)
        }
        return message.bytes
    }

    /// One that does nothing, if it is ever started.
    private func command(_ values: inout HostileValues) -> [UInt8] {
        var message = RawMessage()
        message.string(1, "true")
        for _ in 0..<values.below(3) {
            message.string(1, values.text())
            var variable = RawMessage()
            variable.string(1, values.text(or: "OPERON_BROKER"))
            variable.string(2, values.text())
            message.data(2, variable.bytes)
            message.string(3, values.text(or: "OPERON_BROKER"))
        }
        if values.isIn(20) {
            message.string(4, String(repeating: "d", count: values.byteCount()))
        }
        message.integer(5, signed: values.signed())
        if values.isIn(20) { message.integer(20, values.number()) }
        if values.isIn(20) { message.integer(21, signed: values.signed()) }
        return message.bytes
    }

    package func payload(_ values: inout HostileValues) -> [UInt8] {
        var message = RawMessage()
        if values.isIn(40) { message.string(1, values.text()) }
        message.data(2, values.bytes())
        return message.bytes
    }

    /// Two bytes each, which take hundreds once they are read.
    private func manyElements(_ values: inout HostileValues) -> [UInt8] {
        let count = values.pick([10_001, 262_145, 1_000_001])
        let element: [UInt8] = values.pick([[0x1A, 0], [0x12, 0], [0x32, 0]])
        guard values.flag() else { return HostileValues.repeated(element, count) }
        // In one operation: dependencies, keys, or arguments.
        let inner: [UInt8] = values.pick([[0x1A, 0], [0x52, 0]])
        return RawMessage { graph in
            graph.data(3, HostileValues.repeated(inner, count))
        }.bytes
    }
}
