import OperonCore
import OperonModel

// What simulated operations ask of simulated workers.
extension SimulatorScenario {
    /// What every graph may ask for. The first worker could run each of them.
    static let demands = [
        ResourceDemand(),
        ResourceDemand(resources: [.cpus(1)]),
        ResourceDemand(resources: [.cpus(2), .gpus(1)]),
        ResourceDemand(resources: [.gpus(2)]),
        ResourceDemand(requirements: [.equals("zone", "a")]),
        ResourceDemand(
            resources: [.cpus(0.5)],
            requirements: [WorkerRequirement("zone", .noneOf(["b"]))]
        ),
    ]

    /// What the worker of this index offers, in each of its lives.
    func offer(ofWorker index: Int) -> WorkerOffer {
        guard asking > 0 else { return WorkerOffer() }
        switch index % 3 {
        case 0:
            return WorkerOffer(
                resources: [.cpus(2), .gpus(2)],
                labels: [WorkerLabel("zone", "a")]
            )
        case 1:
            return WorkerOffer(
                resources: [.cpus(1), .gpus(1)],
                labels: [WorkerLabel("zone", "b")]
            )
        default: return WorkerOffer()
        }
    }

    /// From a stream of its own.
    package mutating func drawResources(from seed: UInt64) {
        var generator = SeededGenerator(seed: seed ^ 0x7265_736f_7572_6365)
        if generator.next() % 3 == 0 { asking = 0.2 + generator.fraction() * 0.6 }
    }

    /// Lets an operation ask for something.
    func drawDemand(_ policy: inout OperationPolicy, from generator: inout SeededGenerator) {
        guard asking > 0, generator.fraction() < asking, policy.kind != Self.externalKind
        else { return }
        policy.demand = 1 + UInt32(generator.next() % UInt64(Self.demands.count - 1))
        // What is expected decides who may pass, right or wrong.
        if generator.next() % 2 == 0 {
            policy.expectedDuration = .milliseconds(1 + Int64(generator.next() % 20_000))
        }
    }

    /// The same graph, a part of whose operations ask for something.
    func demanding(
        _ graph: CompiledGraph,
        with generator: inout SeededGenerator
    ) -> CompiledGraph {
        changed(graph) { drawDemand(&$0, from: &generator) }
    }
}
