import FoundationEssentials
import OperonCore
import OperonModel
import OperonTestKit

/// One graph through one scheduler, with workers that finish everything at once.
struct CoreRun {
    let shape: Shape
    let operations: Int
    let batch: Int
    let queues: Int
    let demands: Int
    private var cluster: InstantCluster

    init(
        shape: Shape,
        operations: Int,
        workers: Int,
        slots: Int,
        queues: Int,
        demands: Int,
        cpus: Int?,
        batch: Int
    ) {
        self.shape = shape
        self.operations = operations
        self.queues = queues
        self.demands = demands
        self.batch = batch
        cluster = InstantCluster(workers: workers, slots: slots, cpus: cpus, batch: batch)
    }

    /// The line to print.
    mutating func measure() throws -> String {
        if shape == .keptGraphs || shape == .droppedGraphs { return try measureGraphs() }
        let before = try ResidentMemory.current()
        var graphs = GraphGenerator(seed: 1)
        let compiled = graph(of: topology(from: &graphs))
        let clock = ContinuousClock()
        let submitted = clock.measure { cluster.submit(compiled) }
        let waiting = try ResidentMemory.current()
        let done = clock.measure { act() }
        guard cluster.isFinished else {
            throw BenchmarkError(description: "the graph did not finish")
        }
        let total = submitted + done
        return """
            {"shape":"\(shape.rawValue)","operations":\(operations),\
            "edges":\(compiled.topology.edgeCount),"queues":\(queues),"demands":\(demands),\
            "workers":\(cluster.workerCount),"slots":\(cluster.slots),\
            "seconds":\(rounded(total.seconds, 4)),\
            "submitSeconds":\(rounded(submitted.seconds, 4)),\
            "nanosecondsPerOperation":\(rounded(total.seconds * 1e9 / Double(operations), 1)),\
            "bytesPerOperation":\(rounded(Double(waiting - before) / Double(operations), 1)),\
            "peakBytes":\(try ResidentMemory.peak())}
            """
    }

    /// Many graphs instead of one, so that what is kept of each shows.
    private mutating func measureGraphs() throws -> String {
        let before = try ResidentMemory.current()
        let compiled = CompiledGraph(
            name: shape.rawValue,
            topology: GraphTopology(dependencyOffsets: [0, 0], dependencyEdges: []),
            queues: [QueueSettings(name: QueueSettings.defaultName)],
            kinds: [Work.nothingKind],
            keys: [],
            policies: [OperationPolicy()],
            policy: [0],
            rank: [0]
        )
        for number in 0..<UInt32(operations) {
            let graph = GraphID(rawValue: number)
            cluster.submit(compiled)
            cluster.runToTheEnd()
            if shape == .droppedGraphs { cluster.drive(.graphsForgotten([graph])) }
        }
        let after = try ResidentMemory.current()
        return """
            {"shape":"\(shape.rawValue)","graphs":\(operations),\
            "bytesPerGraph":\(rounded(Double(after - before) / Double(operations), 1)),\
            "peakBytes":\(try ResidentMemory.peak())}
            """
    }

    private mutating func act() {
        let graph = GraphID(rawValue: 0)
        switch shape {
        case .layered, .fanOut, .fanIn, .chain, .independent, .keptGraphs, .droppedGraphs,
            .triggers:
            break
        case .cancelled: cluster.drive(.cancelRequested(.graph(graph), reason: "", cascade: false))
        case .suspended:
            for _ in 0..<10 {
                cluster.drive(.suspensionRequested(.graph(graph), Suspension()))
                cluster.drive(.suspensionRequested(.graph(graph), nil))
            }
        case .suspendedOneByOne:
            for suspension in [Suspension(), nil] {
                for index in 0..<UInt32(operations) {
                    let target = Scheduler.Target.operation(
                        OperationID(graph: graph, index: index)
                    )
                    cluster.drive(.suspensionRequested(target, suspension))
                }
            }
        }
        cluster.runToTheEnd()
    }

    private func topology(from generator: inout GraphGenerator) -> GraphTopology {
        switch shape {
        case .layered, .cancelled: generator.layered(operations: operations, width: 500)
        case .fanOut: topology { $0 == 0 ? 0..<0 : 0..<1 }
        case .fanIn: topology { $0 == operations - 1 ? 0..<operations - 1 : 0..<0 }
        case .chain: topology { $0 == 0 ? 0..<0 : $0 - 1..<$0 }
        case .independent, .suspended, .suspendedOneByOne, .keptGraphs, .droppedGraphs, .triggers:
            topology { _ in 0..<0 }
        }
    }

    private func topology(_ dependencies: (Int) -> Range<Int>) -> GraphTopology {
        var offsets: [UInt32] = [0]
        var edges: [Edge] = []
        for index in 0..<operations {
            for dependency in dependencies(index) {
                edges.append(Edge(UInt32(dependency), .unlessFailed))
            }
            offsets.append(UInt32(edges.count))
        }
        return GraphTopology(dependencyOffsets: offsets, dependencyEdges: edges)
    }

    private func graph(of topology: GraphTopology) -> CompiledGraph {
        // Each queue has operations of each demand class.
        let policies = (0..<UInt32(queues * max(1, demands))).map { number in
            var policy = OperationPolicy()
            policy.queue = number % UInt32(queues)
            policy.demand = demands == 0 ? 0 : 1 + number / UInt32(queues)
            policy.expectedDuration = .zero
            return policy
        }
        let count = UInt32(policies.count)
        var graph = CompiledGraph(
            name: shape.rawValue,
            topology: topology,
            queues: (0..<queues).map { QueueSettings(name: "queue\($0)") },
            kinds: [Work.nothingKind],
            keys: [],
            policies: policies,
            policy: (0..<UInt32(operations)).map { $0 % count },
            rank: Array(repeating: 0, count: operations)
        )
        graph.demands += (0..<demands).map { ResourceDemand(resources: [.cpus(Double($0 + 1))]) }
        return graph
    }
}

func rounded(_ value: Double, _ digits: Int) -> Double {
    var scale = 1.0
    for _ in 0..<digits { scale *= 10 }
    return (value * scale).rounded() / scale
}

struct BenchmarkError: Error, CustomStringConvertible {
    let description: String
}

/// Pages of this process that are in memory, in bytes.
enum ResidentMemory {
    static func current() throws -> Int { try status("VmRSS:") }

    static func peak() throws -> Int { try status("VmHWM:") }

    private static func status(_ field: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        for line in status.split(separator: "\n") where line.hasPrefix(field) {
            let words = line.split { $0 == " " || $0 == "\t" }
            if words.count > 1, let kibibytes = Int(words[1]) { return kibibytes * 1_024 }
        }
        throw BenchmarkError(description: "/proc/self/status has no \(field)")
    }
}
