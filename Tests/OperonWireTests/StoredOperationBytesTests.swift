import OperonModel
import Testing

@testable import OperonWire

/// Operations in the form in which a store keeps them, written field by field.
@Suite struct StoredOperationBytesTests {
    /// With each field that is written field by field, and with the values that Protocol Buffers
    /// leave out.
    private static let samples: [OperationDescription] = {
        var all = OperationDescription(
            name: String(repeating: "n", count: 200),
            work: .registered(
                kind: "Kind µ",
                input: Payload(contentType: "application/json; version=2", bytes: [1, 2, 3])
            )
        )
        all.summary = "what it is for"
        all.dependencies = DependencyCondition.allCases.map { DependencyDescription("d", $0) }
        all.dependencies[0].takesElements = true
        all.queue = "q"
        all.priority = .veryLow
        all.qualityOfService = .userInteractive
        all.timeout = .seconds(5)
        all.expectedDuration = .nanoseconds(1)
        all.exclusive = ["database", ""]
        all.delay = .zero
        all.notBefore = WallTime(nanosecondsSince1970: -1)
        all.deadline = WallTime(nanosecondsSince1970: .max)
        all.cancelSiblings = true
        let works: [Work] = [
            .nothing, .wait(.zero), .wait(.seconds(70)),
            .registered(kind: "", input: .empty),
            .registered(kind: "Kind", input: .empty),
            .registered(kind: "Kind", input: Payload(bytes: Array("{}".utf8))),
            .registered(kind: "Kind", input: Payload(bytes: Array(repeating: 7, count: 300))),
            .registered(kind: "Kind", input: Payload(contentType: "", bytes: [])),
            .registered(kind: "Kind", input: Payload(contentType: "text/plain", bytes: [])),
        ]
        var samples = [all] + works.map { OperationDescription(name: "a", work: $0) }
        for priority in QueuePriority.allCases {
            all.priority = priority
            samples.append(all)
        }
        for quality in QualityOfService.allCases {
            all.qualityOfService = quality
            samples.append(all)
        }
        var empty = OperationDescription(name: "", work: .nothing)
        empty.queue = ""
        empty.dependencies = [DependencyDescription("")]
        return samples + [empty]
    }()

    /// With a property that only the generated encoder writes.
    private static let others: [OperationDescription] = {
        func changed(_ change: (inout OperationDescription) -> Void) -> OperationDescription {
            var operation = OperationDescription(name: "a", work: .nothing)
            change(&operation)
            return operation
        }
        return [
            changed { $0.work = .command(CommandDescription(arguments: ["true"])) },
            changed { $0.work = .external(input: Payload(bytes: [1])) },
            changed { $0.retry = RetryPolicy(limit: 2) },
            changed { $0.inFlight = InFlightLimit(group: "g", limit: 3) },
            changed { $0.enforcesResources = true },
            changed { $0.resources = [.cpus(1)] },
            changed { $0.workers = [.equals("zone", "a")] },
            changed { operation in
                var elsewhere = DependencyDescription("other/b")
                elsewhere.resolvedID = OperationID(graph: GraphID(rawValue: 1), index: 0)
                operation.dependencies = [elsewhere]
            },
        ]
    }()

    @Test(arguments: samples)
    func `the quick way writes the same bytes as the general one`(
        _ operation: OperationDescription
    ) throws {
        var quick = StoredOperationBytes()
        let isWritten = quick.write(operation)

        #expect(isWritten)
        #expect(try quick.bytes == StoreFormat.encodeInGeneral(operation))
    }

    @Test(arguments: others)
    func `what the quick way does not know is left to the general one`(
        _ operation: OperationDescription
    ) {
        var quick = StoredOperationBytes()
        let isWritten = quick.write(operation)

        #expect(!isWritten)
    }

    @Test func `a graph is read back as it was, whichever way its operations were written`() throws
    {
        var graph = GraphDescription(name: "graph", operations: Self.samples + Self.others)
        graph.queues = [QueueSettings(name: "q", maxConcurrentOperationCount: 3)]
        graph.keys = [KeySettings(name: "database", limit: 2)]
        graph.order = .submission
        let bytes = try StoreFormat.encode(graph, failFast: true, parent: 0)

        let read = try StoreFormat.decodeGraph(bytes)

        // An empty name stands for the default queue.
        graph.operations[Self.samples.count - 1].queue = QueueSettings.defaultName
        #expect(read.graph == graph)
        #expect(read.failFast)
        #expect(read.parent == 0)
    }

    @Test(arguments: samples)
    func `a dispatch takes the same work as the description`(
        _ operation: OperationDescription
    ) throws {
        var stored = StoredOperations()
        try stored.append(
            StoreFormat.encode(GraphDescription(name: "", operations: [operation]), failFast: false)
        )

        let dispatched = try stored.dispatchedDescription(of: 0)

        #expect(try dispatched.work == stored.description(of: 0).work)
    }

    /// The work of a registered kind as a store would not write it: fields in other forms, twice,
    /// unknown, or cut off.
    private static let strange: [[UInt8]] = {
        let kind = RawField(number: 1, form: 2, content: Array("Kind".utf8))
        let input = RawField(number: 2, form: 2, content: [0x12, 1, 7])
        var fields: [[RawField]] = [[kind, input], [input, kind], [kind, kind], [input, input]]
        for form in [0, 1, 5] as [UInt64] {
            let content = [UInt8](repeating: 0x41, count: form == 1 ? 8 : form == 5 ? 4 : 0)
            for number in [1, 2, 3] as [UInt64] {
                let odd = RawField(number: number, form: form, value: 9, content: content)
                fields += [[odd], [kind, odd], [odd, input]]
                let inside = RawField(number: 2, form: 2, content: odd.bytes)
                fields.append([kind, inside])
            }
        }
        fields.append([RawField(number: 1, form: 2, content: [0xFF]), input])
        return fields.map { $0.flatMap(\.bytes) } + [[0x0A], [0x0A, 9, 1], [0x12, 2, 0x12, 5]]
    }()

    @Test(arguments: strange)
    func `strange bytes of registered work are read as the generated decoder reads them`(
        _ bytes: [UInt8]
    ) throws {
        let name = RawField(number: OperationField.name, form: 2, content: [0x61])
        let work = RawField(number: OperationField.registered, form: 2, content: bytes)
        let operation = RawField(
            number: GraphField.operations,
            form: 2,
            content: name.bytes + work.bytes
        )
        let length = (0..<8).map { UInt8(truncatingIfNeeded: operation.bytes.count >> (8 * $0)) }
        var stored = StoredOperations()
        try stored.append(length + operation.bytes)

        let whole = Result { try stored.description(of: 0).work }
        let quick = Result { try stored.dispatchedDescription(of: 0).work }

        switch (whole, quick) {
        case (.success(let whole), .success(let quick)): #expect(quick == whole)
        case (.failure, .failure): break
        default: Issue.record("\(quick) instead of \(whole)")
        }
    }
}
