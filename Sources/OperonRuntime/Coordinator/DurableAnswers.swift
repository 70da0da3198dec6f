import OperonPorts

/// The way from a client to the coordinator. What an answer tells about graphs, operations, queues
/// and keys is on the disk, except for what `live` shows.
struct DurableAnswers: Sendable {
    // Private, so that an answer needs one of these functions. Three readers hold the service
    // beyond their answer: those of events and of progress get only what is on the disk, and that
    // of a log shows what no store has yet.
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

    /// Makes a change and waits until it is on the disk, even while the store cannot write: the
    /// change takes effect anyway.
    func change<Answer: Sendable>(
        _ change: @Sendable (isolated CoordinatorService) async throws(ClientError) -> Answer
    ) async throws(ClientError) -> Answer {
        let answer = try await live(change)
        try await service.kept()
        return answer
    }

    /// Shows the present state, whatever the store has of it: workers, printed output, the
    /// coordinator with its counts. A worker itself keeps that it drains. Only a refusal waits for
    /// the disk: it may state a fact, such as that an operation has ended.
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
