import NIOConcurrencyHelpers
import OperonModel
import OperonRuntime
import Testing

@Suite(.timeLimit(.minutes(5))) struct CoordinatorPulseTests {
    /// Time that the test moves.
    private final class Hands: Sendable {
        let now = NIOLockedValueBox(Timestamp.zero)

        var source: TimeSource {
            TimeSource(
                now: { self.now.withLockedValue { $0 } },
                wall: { WallTime(nanosecondsSince1970: 0) },
                sleep: { _ in },
                sleepUntilDate: { _ in }
            )
        }

        func pass(_ duration: Duration) { now.withLockedValue { $0 = $0 + duration } }
    }

    @Test func `a coordinator that does not answer is unwell, and well again when it does`()
        async throws
    {
        let hands = Hands()
        let pulse = CoordinatorPulse(time: hands.source)
        #expect(pulse.stagnation == nil)
        #expect(pulse.unreadiness == "The coordinator starts.")
        await pulse.beat { nil }
        #expect(pulse.unreadiness == nil)

        // Its actor is busy with something else.
        let (asked, asking) = AsyncStream<Void>.makeStream()
        let (answer, answering) = AsyncStream<Void>.makeStream()
        let beat = Task {
            await pulse.beat {
                asking.yield()
                for await _ in answer { break }
                return nil
            }
        }
        for await _ in asked { break }
        hands.pass(CoordinatorPulse.patience)
        #expect(pulse.stagnation == nil)
        hands.pass(.seconds(2))
        #expect(pulse.stagnation == "The coordinator has not answered for 12 s.")
        #expect(pulse.unreadiness == pulse.stagnation)

        answering.yield()
        await beat.value
        #expect(pulse.stagnation == nil)
        #expect(pulse.unreadiness == nil)
    }

    @Test func `a coordinator that answers, but is of no use, is well and not ready`() async throws
    {
        let pulse = CoordinatorPulse(time: Hands().source)
        await pulse.beat { "There is no connection to the broker." }
        #expect(pulse.stagnation == nil)
        #expect(pulse.unreadiness == "There is no connection to the broker.")
    }
}
