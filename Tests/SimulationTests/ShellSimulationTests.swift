import OperonFaultKit
import Testing

/// The coordinator's service in the simulator. It takes a process of its own: all jobs of tasks in
/// that process run in an order that the seed determines.
@Suite struct ShellSimulationTests {
    private func simulate(_ arguments: String...) async throws -> Ended {
        try await Program("simulate-shell", arguments, environment: [:], directory: "/").end()
    }

    @Test func `every rule holds, and a seed does the same each time`() async throws {
        let first = try await simulate("--seeds", "100")
        #expect(first.end == .exit(0), "\(first.output)")
        #expect(try await simulate("--seeds", "100").output == first.output)
    }

    @Test func `every rule that is broken on purpose is noticed`() async throws {
        let ended = try await simulate("--violations", "--seeds", "300")
        #expect(ended.end == .exit(0), "\(ended.output)\n\(ended.errors)")
        #expect(ended.output.contains("answersBeforeSync: seed "))
        #expect(ended.output.contains("believesStrangers: seed "))
    }
}
