import Foundation
import Operon
import Testing

/// Each form in which a program can name our types beside Foundation's: compiled above, and meant.
@Suite struct ImportTests {
    private static let forms: [any Operon.Operation.Type] = [
        Wave.self, Bare.self, Scoped.self, Qualified.self, Selected.self, Nested.self,
    ]

    @Test func `every form makes an operation of ours`() {
        #expect(
            Self.forms.map { $0.kind }
                == ["Wave", "Bare", "Scoped", "Qualified", "Selected", "Nested"]
        )
    }

    @Test func `every form makes a queue of ours`() {
        let queues: [Operon.OperationQueue] = [
            bareQueue(), scopedQueue(), qualifiedQueue, selectedQueue, nestedQueue(),
        ]
        #expect(
            queues.map(\.name) == ["bare", "scoped", "qualified", "selected", "nested"]
        )
    }

    @Test func `a bare name runs`() async throws {
        #expect(try await waves() == "Hello, Ada!")
    }
}
