import OperonModel
import OperonPorts
import OperonRuntime
import OperonTestKit
import Testing

/// What is told of what was decided while nothing could be kept.
@Suite(.timeLimit(.minutes(5))) struct StoreTroubleTests {
    private func graph(_ name: String) -> Submission {
        let wait = OperationDescription(name: "a", work: .wait(.seconds(3_600)))
        return Submission(graph: GraphDescription(name: name, operations: [wait]))
    }

    @Test func `whoever may wait is told when there is room again`() async throws {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        try await PruningTests.withService(store) { service, client in
            _ = try await client.submit(graph("before"))
            await store.fail(Array(repeating: StoreError(.full, "full"), count: 4))
            async let later = client.submit(graph("later"))
            // Nobody says when a commit has failed.
            while await service.trouble == nil { try await Task.sleep(for: .milliseconds(1)) }
            let error = await #expect(throws: ClientError.self) { try await service.durable() }
            #expect(error?.code == .unavailable)
            #expect(await service.untilDurable())
            #expect(await service.trouble == nil)
            let name = try await later.name
            #expect(name == "later")
        }
    }

    @Test func `nobody waits for a coordinator that ends`() async throws {
        let store = InMemoryStore(reign: Reign(rawValue: 5))
        try await PruningTests.withService(store) { service, client in
            await store.fail(Array(repeating: StoreError(.full, "full"), count: 1_000))
            let never = Task { try await client.submit(graph("never")) }
            while await service.trouble == nil { try await Task.sleep(for: .milliseconds(1)) }
            let isDurable = Task { await service.untilDurable() }
            await service.shutDown(kill: true)
            #expect(await isDurable.value == false)
            // Afterwards as well.
            #expect(await service.untilDurable() == false)
            await #expect(throws: ClientError.self) { try await never.value }
        }
    }
}
