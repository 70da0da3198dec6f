package import OperonModel

extension StoreFormat {
    /// Decodes operations that a running operation adds, in the format of `encode`. The sender is
    /// not trusted: operations and parts are counted before any is decoded, operations are decoded
    /// one by one, and fields that only a store may set are refused (a dependency on another
    /// graph's operation by number, and the operation that added these).
    ///
    /// - Throws: `limitExceeded` or `invalid`.
    package static func decodeAddition(
        _ bytes: [UInt8],
        limits: Limits = Limits()
    ) throws(Refusal) -> GraphDescription {
        try LimitName.additionBytes.check(bytes.count, limits.additionBytes)
        let count = try readable { () throws(WireError) in try operationCount(ofAddition: bytes) }
        try LimitName.additionOperations.check(count, limits.additionOperations)
        return try readable { () throws(WireError) in
            try addition(bytes, operationCount: count)
        }
    }

    private static func readable<Value>(
        _ body: () throws(WireError) -> Value
    ) throws(Refusal) -> Value {
        do throws(WireError) {
            return try body()
        } catch {
            throw .invalid(field: "operations", why: error.message)
        }
    }

    /// Counts the operations without building anything.
    ///
    /// - Throws: `tooLarge` if there are more parts than an addition may have.
    private static func operationCount(ofAddition bytes: [UInt8]) throws(WireError) -> Int {
        var operations = 0
        var elements = 0
        var position = 0
        while let place = try piece(of: bytes, at: position) {
            var cursor = FieldCursor(place)
            while let field = try cursor.next(in: bytes) {
                if field.number == GraphField.operations { operations += 1 }
            }
            let most = ElementCount.additionMax
            elements += ElementCount.count(bytes, place, at: .stored, upTo: most - elements)
            guard elements <= most else {
                throw WireError(
                    .tooLarge,
                    "\(bytes.count) bytes of operations have more than \(most) parts"
                )
            }
            position = place.upperBound
        }
        return operations
    }

    private static func addition(
        _ bytes: [UInt8],
        operationCount: Int
    ) throws(WireError) -> GraphDescription {
        var graph = GraphDescription(name: "")
        graph.operations.reserveCapacity(operationCount)
        var position = 0
        while let place = try piece(of: bytes, at: position) {
            var cursor = FieldCursor(place)
            while let field = try cursor.next(in: bytes) {
                switch field.number {
                case GraphField.operations:
                    graph.operations.append(try stranger(Array(bytes[field.bytes])))
                case GraphField.name where position == 0:
                    graph.name = String(decoding: bytes[field.bytes], as: UTF8.self)
                case GraphField.queues where position == 0:
                    graph.queues.append(try queue(Array(bytes[field.bytes])))
                case GraphField.keys where position == 0:
                    graph.keys.append(try key(Array(bytes[field.bytes])))
                case GraphField.inOrderOfSubmission where position == 0 && field.value != 0:
                    graph.order = .submission
                case GraphField.parent:
                    throw .invalid("graph.parent", "is for a store to know")
                // Fields of later versions, and fields that an addition does not decide.
                case _: continue
                }
            }
            position = place.upperBound
        }
        return graph
    }

    /// Decodes an operation from a sender that is not the store.
    private static func stranger(_ bytes: [UInt8]) throws(WireError) -> OperationDescription {
        let description = try operation(bytes)
        guard description.dependencies.allSatisfy({ $0.resolvedID == nil }) else {
            throw .invalid(
                "dependency.elsewhere",
                "is for a store to know: name the operation as GRAPH/OPERATION"
            )
        }
        return description
    }
}
