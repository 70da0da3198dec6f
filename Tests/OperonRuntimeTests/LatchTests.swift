import OperonRuntime
import Testing

@Suite struct LatchTests {
    @Test(.timeLimit(.minutes(5))) func `everybody goes on once it is open, and later too`() async {
        let latch = Latch()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<10 { group.addTask { await latch.wait() } }
            group.addTask { latch.open() }
        }

        await latch.wait()
        #expect(latch.isOpen)
    }

    @Test(.timeLimit(.minutes(5))) func `a cancelled task does not wait`() async {
        let latch = Latch()
        let task = Task { await latch.wait() }
        task.cancel()
        await task.value

        #expect(!latch.isOpen)
    }

    @Test(.timeLimit(.minutes(5))) func `a wait with a limit ends though nothing happens`() async {
        let latch = Latch()
        await latch.wait(within: .milliseconds(1))

        #expect(!latch.isOpen)
    }
}
