import OperonModel
import Testing

@testable import OperonWire

/// What happened, as a store keeps it.
@Suite struct ClusterEventTests {
    /// With each field, and with the values that Protocol Buffers leave out.
    private static let samples: [ClusterEvent] = {
        var samples = ClusterEvent.Kind.allCases.map { kind in
            ClusterEvent(kind, at: WallTime(nanosecondsSince1970: 1_700_000_000_123_456_789))
        }
        var all = ClusterEvent(.finished, at: WallTime(nanosecondsSince1970: -1))
        all.graph = GraphID(rawValue: 300)
        all.operation = OperationID(graph: GraphID(rawValue: 300), index: 70_000)
        all.count = 1_000_000
        all.outcome = .skipped
        all.isUpToDate = true
        all.attempt = AttemptID(epoch: Epoch(rawValue: 128), number: .max)
        all.ending = .crashed
        all.worker = Incarnation(rawValue: 0x0123_4567_89AB_CDEF)
        all.workerName = "worker ä"
        all.queue = String(repeating: "q", count: 200)
        all.by = "someone"
        all.reason = "because\n"
        all.key = "database µ"
        all.trigger = "night ä"
        all.firing = .max
        samples.append(all)
        var zeros = ClusterEvent(.granted, at: WallTime(nanosecondsSince1970: 0))
        zeros.graph = GraphID(rawValue: 0)
        zeros.operation = OperationID(graph: GraphID(rawValue: 0), index: 0)
        zeros.outcome = .succeeded
        samples.append(zeros)
        all.error = .exit(code: 3)
        samples.append(all)
        return samples
    }()

    @Test(arguments: samples)
    func `what happened is read back as it was`(_ event: ClusterEvent) throws {
        #expect(try StoreFormat.decodeEvent(StoreFormat.encode(event)) == event)
    }

    @Test(arguments: samples)
    func `the quick way writes the same bytes as the general one`(_ event: ClusterEvent) throws {
        #expect(try StoreFormat.encode(event) == StoreFormat.encodeInGeneral(event))
    }
}
