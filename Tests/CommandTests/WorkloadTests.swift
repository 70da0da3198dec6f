import Testing

/// Real workflows, replayed: every operation once, each behind its dependencies. How long they take
/// is measured by scripts/replay-workloads, on a machine that does nothing else.
@Suite(.serialized) struct WorkloadTests {
    private static let bound = 1.0

    @Test(arguments: Workload.names, Place.allCases)
    func `a recorded workflow runs every operation once and in order`(
        name: String,
        place: Place
    ) async throws {
        let workload = try Workload(name)
        let scale = workload.scale(bound: Self.bound, slots: 8)

        try await Workspace.run { workspace in
            if place == .broker { try workspace.startWorkers(4, slots: 2) }
            let options = ["--replay", "\(scale)", "--output", "json"]
            let run = try workspace.startRun(workload.path, on: place, slots: 8, options)
            let ended = try await run.end()

            let report = try ended.report()
            #expect(ended.end == .exit(0))
            #expect(report.operations.count == workload.dependencies.count)
            #expect(place == .broker ? (2...8).contains(report.slots) : report.slots == 8)
            report.expectSuccess(attempts: 1)
            report.expectOrder(workload.dependencies)
            // The bound is that of the recorded run times, so no run is shorter.
            #expect(report.makespan >= Self.bound)
            #expect(report.lowerBound <= report.makespan)
        }
    }
}
