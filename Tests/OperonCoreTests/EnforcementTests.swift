import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Operations whose resources a worker must enforce.
struct EnforcementTests {
    private static let amounts: ResourceAmounts = [.cpus(2), .memory(bytes: 1 << 30)]

    private func enforced(_ name: String) -> OperationDescription {
        var operation = OperationDescription(
            name: name,
            work: .command(CommandDescription(arguments: ["true"]))
        )
        operation.resources = Self.amounts
        operation.enforcesResources = true
        return operation
    }

    // MARK: - Where

    @Test func `it goes to a worker that enforces, though another one has less to spare`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 4, offer: WorkerOffer(resources: Self.amounts))
        let able = bench.join(
            slots: 4,
            offer: WorkerOffer(resources: [.cpus(8), .memory(bytes: 8 << 30)], enforces: true)
        )
        var free = enforced("free")
        free.enforcesResources = false

        try bench.submit([enforced("enforced"), free])

        #expect(bench.attempt("enforced").worker == able)
        #expect(bench.attempt("free").worker != able)
    }

    @Test func `without such a worker it waits, says why, and holds up no other`() throws {
        var bench = SchedulerBench()
        bench.join(slots: 1, offer: WorkerOffer(resources: Self.amounts))
        var free = enforced("free")
        free.enforcesResources = false

        try bench.submit([enforced("enforced"), free])

        #expect(bench.granted == ["free"])
        let demand = ResourceDemand(resources: Self.amounts, isEnforced: true)
        #expect(bench.explain("enforced") == [.noWorkerForDemand(demand)])
        let late = bench.join(
            slots: 1,
            offer: WorkerOffer(resources: Self.amounts, enforces: true)
        )
        #expect(bench.attempt("enforced").worker == late)
    }

    @Test func `what a worker lacks is said in words`() {
        let demand = ResourceDemand(resources: Self.amounts, isEnforced: true)
        let offer = WorkerOffer(resources: Self.amounts)

        #expect(
            demand.unmet(by: offer)
                == ["enforce needs a worker that was started with --control-group"]
        )
        #expect(!demand.isMet(by: offer))
        #expect(demand.isMet(by: WorkerOffer(resources: Self.amounts, enforces: true)))
        #expect(demand.text == "cpus 2, memory 1GiB, enforcement (--control-group)")
    }

    // MARK: - What may ask for it

    @Test(arguments: [
        (Work.nothing, amounts, "only a command can be held to its resources"),
        (
            Work.command(CommandDescription(arguments: ["true"])), [.gpus(1)] as ResourceAmounts,
            "its resources have neither cpus nor memory"
        ),
    ])
    func `a graph that asks for what cannot be enforced is refused`(
        work: Work,
        resources: ResourceAmounts,
        why: String
    ) {
        var operation = OperationDescription(name: "a", work: work)
        operation.resources = resources
        operation.enforcesResources = true

        #expect(throws: Refusal.invalid(field: "enforce of “a”", why: why)) {
            try GraphDescription(name: "g", operations: [operation]).check(Limits())
        }
    }

    // MARK: - On the worker

    @Test(arguments: [true, false])
    func `a worker fails what it cannot enforce, and starts what it can`(enforces: Bool) {
        var bench = WorkerBench {
            $0.offer = WorkerOffer(resources: Self.amounts, enforces: enforces)
        }
        bench.join()

        bench.dispatch([1]) {
            $0.work = .command(CommandDescription(arguments: ["true"]))
            $0.resources = Self.amounts
            $0.isEnforced = true
        }

        let effects = bench.drain()
        guard !enforces else {
            #expect(effects.started == [1])
            return
        }
        #expect(effects.starts.isEmpty)
        let why = "its resources are to be enforced, and its worker makes no control groups"
        #expect(
            effects.events
                == [.finished(WorkerBench.held(1), bench.result(.failed(.undecodable(why))))]
        )
        // It has taken nothing.
        bench.dispatch([2]) { $0.resources = Self.amounts }
        #expect(bench.effects.started == [2])
    }
}
