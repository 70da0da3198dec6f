import OperonModel
import OperonPorts
import OperonRuntime

extension ClientSession {
    /// Asks again while the coordinator is away, for as long as a stream of events waits for it,
    /// and says so. A command calls this once the coordinator has answered: it does not end because
    /// the coordinator starts again.
    func patiently<Answer>(
        _ question: @Sendable () async throws -> Answer
    ) async throws -> Answer {
        let end = SystemClock.now() + Self.patience
        while true {
            do {
                let answer = try await question()
                news.restored()
                return answer
            } catch let error as ClientError
                where [.unreachable, .unavailable].contains(error.code) && SystemClock.now() < end
            {
                news.cut()
                // Nobody tells when the coordinator is back, so this polls.
                try await Task.sleep(for: Self.pause)
            }
        }
    }

    private static let patience = Duration.seconds(300)
    private static let pause = Duration.milliseconds(500)
}
