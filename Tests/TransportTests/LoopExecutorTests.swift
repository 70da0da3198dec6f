import NIOCore
import NIOPosix
import OperonAMQP
import Testing

@Suite struct LoopExecutorTests {
    @Test func `a task that prefers an event loop runs on its thread, before and after it waits`()
        async throws
    {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let loop = group.next()
        let other = group.next()
        let answers = try await withThrowingTaskGroup(of: [Bool].self) { tasks in
            tasks.addTask(executorPreference: LoopExecutor(loop)) {
                let before = loop.inEventLoop
                try await other.submit {}.get()
                return [before, loop.inEventLoop]
            }
            return try await tasks.next()
        }
        #expect(answers == [true, true])
        try await group.shutdownGracefully()
    }
}
