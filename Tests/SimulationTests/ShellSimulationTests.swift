import OperonFaultKit
import Testing

/// The coordinator's service in the simulator. It takes a process of its own: all jobs of tasks in
/// that process run in an order that the seed determines. `scripts/check` breaks every rule on
/// purpose, with a release build.
@Suite struct ShellSimulationTests {
    private func simulate(_ arguments: String...) async throws -> Ended {
        try await Program("simulate-shell", arguments, environment: [:], directory: "/").end()
    }

    @Test func `every rule holds, and a seed does the same each time`() async throws {
        let first = try await simulate("--seeds", "20")
        #expect(first.end == .exit(0), "\(first.output)")
        #expect(try await simulate("--seeds", "20").output == first.output)
    }
}
