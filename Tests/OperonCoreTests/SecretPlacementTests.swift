import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Where commands with secrets run.
struct SecretPlacementTests {
    private func secret(_ name: String) -> OperationDescription {
        var command = CommandDescription(arguments: ["true"])
        command.secrets = ["PASSWORD": "db"]
        return OperationDescription(name: name, work: .command(command))
    }

    private var able: WorkerOffer {
        var offer = WorkerOffer()
        offer.secrets = true
        return offer
    }

    @Test func `it goes to a worker that knows secrets`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 4)
        let worker = bench.join(slots: 4, offer: able)

        try bench.submit([secret("secret")])

        #expect(bench.attempt("secret").worker == worker)
    }

    @Test func `without such a worker it waits, says why, and holds up no other`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 1)
        let plain = OperationDescription(
            name: "plain",
            work: .command(CommandDescription(arguments: ["true"]))
        )

        try bench.submit([secret("secret"), plain])

        #expect(bench.granted == ["plain"])
        let demand = ResourceDemand(needsSecrets: true)
        #expect(bench.explain("secret") == [.noWorkerForDemand(demand)])
        let late = bench.join(slots: 1, offer: able)
        #expect(bench.attempt("secret").worker == late)
    }

    @Test func `what a worker lacks is said in words`() {
        let demand = ResourceDemand(needsSecrets: true)

        #expect(demand.unmet(by: WorkerOffer()).count == 1)
        #expect(demand.unmet(by: WorkerOffer())[0].contains("--secrets"))
        #expect(!demand.isMet(by: WorkerOffer()))
        #expect(demand.isMet(by: able))
        #expect(demand.text == "secrets (--secrets)")
        #expect(!demand.isEmpty)
    }
}
