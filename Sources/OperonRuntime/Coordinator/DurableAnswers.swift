import OperonPorts

/// The only way from a client to the coordinator: everything that an answer tells is on the disk.
struct DurableAnswers: Sendable {
    // Private, so that no answer can go around this file.
    private let service: CoordinatorService

    init(of service: CoordinatorService) { self.service = service }

    /// Answers a question.
    ///
    /// - Throws: `ClientError.unavailable` while the store cannot write.
    func read<Answer: Sendable>(
        _ question: @Sendable (isolated CoordinatorService) async throws(ClientError) -> Answer
    ) async throws(ClientError) -> Answer {
        let answer = try await live(question)
        try await service.durable()
        return answer
    }

    /// Makes a change, and answers however long the store takes: the change will take effect.
    func change<Answer: Sendable>(
        _ change: @Sendable (isolated CoordinatorService) async throws(ClientError) -> Answer
    ) async throws(ClientError) -> Answer {
        let answer = try await live(change)
        try await service.kept()
        return answer
    }

    /// Shows the present state of what no store keeps: workers, printed output, the coordinator
    /// itself. Only a refusal waits for the disk: it may state a fact, such as that an operation
    /// has ended.
    func live<Answer: Sendable>(
        _ question: @Sendable (isolated CoordinatorService) async throws(ClientError) -> Answer
    ) async throws(ClientError) -> Answer {
        do throws(ClientError) {
            return try await question(service)
        } catch {
            if error.refusal != nil || error.code == .conflict { try await service.durable() }
            throw error
        }
    }
}
