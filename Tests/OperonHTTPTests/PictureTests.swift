import Foundation
import OperonHTTP
import OperonModel
import OperonPorts
import Testing

/// What shows all operations of a graph: records, states, the picture and the timeline.
@Suite(.timeLimit(.minutes(5))) struct PictureTests {
    private static func decoded<View: Decodable>(
        _ served: ServedCluster,
        _ path: String
    ) async throws -> View {
        let answer = try await served.raw("GET", path)
        #expect(answer.status == 200, "\(path)")
        return try JSONDecoder().decode(View.self, from: Data(answer.body))
    }

    @Test func `records come in pages, with names, states, dependencies and attempts`()
        async throws
    {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            _ = try await served.coordinator.submit(Submission(graph: .diamond))
            try await served.cluster.join("worker", slots: 1)
            try await served.cluster.wait(for: OperationSelector("diamond", "top"), .executing)
            try await served.cluster.finish(OperationSelector("diamond", "top"))
            try await served.client { client in
                let first = try await client.records(of: "diamond", after: nil, limit: 3)
                #expect(first.operationCount == 4 && first.next == 3)
                #expect(first.records.map(\.name) == ["top", "left", "right"])
                #expect(first.records.map(\.dependencies) == [[], [0], [0]])
                #expect(first.records[0].state == .succeeded)
                #expect(first.workers == ["worker"])
                let attempt = try #require(first.records[0].attempts?.first)
                #expect(attempt.number == 1 && attempt.worker == 0 && attempt.endedAt != nil)
                #expect(attempt.ending == "succeeded")
                let last = try await client.records(of: "diamond", after: first.next, limit: 3)
                #expect(last.records.map(\.name) == ["end"] && last.next == nil)
                #expect(last.records[0].dependencies == [1, 2])
                let states = try await client.states(of: "diamond").runs
                #expect(states.first == StateRunsView.Run(state: .succeeded, count: 1))
                #expect(states.reduce(0) { $0 + $1.count } == 4)
                let behind = try await client.records(of: "diamond", after: .max, limit: 3)
                #expect(behind.records.isEmpty && behind.next == nil)
            }
        }
    }

    @Test func `a picture has a box for each operation, and its states follow`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            _ = try await served.coordinator.submit(Submission(graph: .diamond))
            let path = "/v1/graphs/diamond/picture"
            let picture: GraphPictureView = try await Self.decoded(served, path)
            #expect(picture.boxes.map(\.title) == ["top", "left", "right", "end"])
            #expect(picture.boxes.map(\.layer) == [0, 1, 1, 2])
            #expect(picture.boxes.map(\.index) == [0, 1, 2, 3])
            #expect(picture.arrows.count == 4 && picture.left == 0)
            #expect(picture.boxes.allSatisfy { $0.states == ["pending": 1] || $0.layer == 0 })
            for arrow in picture.arrows {
                let (from, to) = (picture.boxes[arrow.from], picture.boxes[arrow.to])
                #expect(abs((arrow.points.first ?? 0) - from.x - from.width) < 0.1)
                #expect(arrow.points.dropLast().last == to.x)
            }
            _ = try await served.coordinator.cancel(.graph("diamond"), CancelRequest())
            let states: PictureStatesView = try await Self.decoded(served, path + "?states=true")
            #expect(states.operations == 4)
            #expect(states.states == Array(repeating: ["cancelled": 1], count: 4))
        }
    }

    @Test func `a large graph is folded`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let elements = (0..<2_000).map { ("render[\($0)]", ["start"]) }
            let names = elements.map(\.0)
            let graph = GraphDescription.of(
                "large",
                [("start", [])] + elements + [("render", names), ("end", ["render"])]
            )
            _ = try await served.coordinator.submit(Submission(graph: graph))
            let path = "/v1/graphs/large/picture"
            let picture: GraphPictureView = try await Self.decoded(served, path)
            #expect(picture.operations == 2_003)
            #expect(picture.boxes.map(\.title) == ["start", "render[*]", "end"])
            #expect(picture.boxes.map(\.count) == [1, 2_001, 1])
            #expect(picture.boxes.map(\.index) == [0, nil, 2_002])
            #expect(picture.boxes[1].first == 1)
        }
    }

    @Test func `the operations of a box are listed, in pages and by state`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            // More than fit one by one, and no repeated operations: each layer is a box.
            let layers = (0..<600).map { ("op\($0)", $0 % 2 == 0 ? [] : ["op\($0 - 1)"]) }
            let graph = GraphDescription.of("layered", layers)
            _ = try await served.coordinator.submit(Submission(graph: graph))
            let path = "/v1/graphs/layered/operations"
            let odd = stride(from: 1, to: 600, by: 2).map { "op\($0)" }
            let first: OperationPage = try await Self.decoded(served, path + "?box=1&limit=200")
            #expect(first.box == "layer 2")
            #expect(first.operations.map(\.name) == Array(odd.prefix(200)))
            let next = try #require(first.next)
            #expect(next == 401)
            let rest: OperationPage = try await Self.decoded(
                served,
                path + "?box=1&limit=200&after=\(next)"
            )
            #expect(rest.operations.map(\.name) == Array(odd.dropFirst(200)) && rest.next == nil)
            let ready: OperationPage = try await Self.decoded(served, path + "?box=1&state=ready")
            #expect(ready.operations.isEmpty && ready.next == nil)
            let named: OperationPage = try await Self.decoded(
                served,
                path + "?box=1&namePrefix=op59"
            )
            #expect(
                named.operations.map(\.name) == [
                    "op59", "op591", "op593", "op595", "op597", "op599",
                ]
            )
            for (query, status) in [
                ("box=2", 404), ("box=-1", 400), ("box=x", 400), ("box=1&numbers=1", 400),
            ] {
                #expect(
                    try await served.raw("GET", path + "?" + query).status == status,
                    "\(query)"
                )
            }
        }
    }

    @Test func `operations are listed by their numbers and by how their names begin`()
        async throws
    {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            // More than the coordinator looks through at a time.
            let last = 40_000
            var graph = GraphDescription.of("long", (0...last).map { ("a\($0)", []) })
            graph.operations[last].queue = "other"
            _ = try await served.coordinator.submit(Submission(graph: graph))
            let path = "/v1/graphs/long/operations"
            let numbered: OperationPage = try await Self.decoded(
                served,
                path + "?numbers=39999,3,3,999999999,20000&after=4&limit=1"
            )
            #expect(numbered.operations.map(\.index) == [20_000] && numbered.next == 39_999)
            let end: OperationPage = try await Self.decoded(served, path + "?namePrefix=a4000")
            #expect(end.operations.map(\.name) == ["a4000", "a40000"] && end.next == nil)
            let none: OperationPage = try await Self.decoded(served, path + "?namePrefix=b&after=7")
            #expect(none.operations.isEmpty && none.next == nil && none.box == nil)
            let queue: QueuePage = try await Self.decoded(
                served,
                "/v1/queues/default/operations?namePrefix=a3999&limit=2"
            )
            #expect(queue.operations.map(\.name) == ["a3999", "a39990"])
            let after = try #require(queue.next)
            let more: QueuePage = try await Self.decoded(
                served,
                "/v1/queues/default/operations?namePrefix=a3999&after=\(after)"
            )
            #expect(more.operations.count == 9 && more.next == nil)
            let most = (0..<OperationQuery.numbersMax).map(String.init).joined(separator: ",")
            #expect(try await served.raw("GET", path + "?numbers=" + most).status == 200)
            for numbers in ["", ",", "1,", "-1", "x", "1.5", "9999999999", most + ",1"] {
                let answer = try await served.raw("GET", path + "?numbers=" + numbers)
                #expect(answer.status == 400, "\(numbers.prefix(20))")
            }
            try await served.client { client in
                var query = OperationQuery()
                (query.numbers, query.namePrefix) = ([2, 20, 30], "a2")
                let page = try await client.operations(of: "long", query)
                #expect(page.operations.map(\.index) == [2, 20])
                var ofQueue = QueueOperationQuery()
                ofQueue.namePrefix = "a40000"
                // Behind many of another queue.
                let found = try await client.operations(ofQueue: "other", ofQueue)
                #expect(found.operations.map(\.index) == [UInt32(last)])
            }
        }
    }

    @Test func `a timeline has a bar for each attempt`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            let path = "/v1/graphs/diamond/timeline"
            _ = try await served.coordinator.submit(Submission(graph: .diamond))
            let empty: TimelineView = try await Self.decoded(served, path)
            #expect(empty.rows.isEmpty && empty.isLive)
            try await served.cluster.join("worker", slots: 2)
            for name in ["top", "left", "right", "end"] {
                let selector = OperationSelector("diamond", name)
                try await served.cluster.wait(for: selector, .executing)
                try await served.cluster.finish(selector)
            }
            try await served.cluster.wait(for: OperationSelector("diamond", "end"), .finished)
            let timeline: TimelineView = try await Self.decoded(served, path + "?from=0&bars=100")
            #expect(!timeline.isLive && timeline.left == 0)
            #expect(timeline.rows.allSatisfy { $0.worker == "worker" && $0.slot >= 1 })
            let bars = timeline.rows.flatMap(\.bars)
            #expect(bars.reduce(0) { $0 + $1.count } == 4)
            #expect(bars.allSatisfy { $0.state == "succeeded" && $0.to >= $0.from })
            for query in ["from=-1", "to=x", "from=2&to=1", "bars=0", "bars=20001", "from=nan"] {
                #expect(try await served.raw("GET", path + "?" + query).status == 400, "\(query)")
            }
        }
    }

    @Test func `the status of the cluster is a stream that all readers share`() async throws {
        try await ServedCluster.run { (served: ServedCluster) async throws in
            try await served.client { client in
                var updates = try await client.statusUpdates().makeAsyncIterator()
                let first = try #require(try await updates.next()?.view)
                #expect(first.openGraphs == 0)
                _ = try await served.coordinator.submit(Submission(graph: .diamond))
                let second = try #require(try await updates.next()?.view)
                #expect(second.openGraphs == 1 && second.lastEvent ?? 0 > first.lastEvent ?? 0)
            }
        }
    }
}
