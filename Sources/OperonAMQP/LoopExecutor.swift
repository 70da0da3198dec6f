package import NIOCore

/// Runs tasks on an event loop: a program whose work is mostly messages saves the hand-overs
/// between threads, which cost more than the work. What blocks, or computes for long, is to run
/// elsewhere.
///
/// Its tasks have to end before the loop's group is shut down.
package final class LoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    package init(_ loop: any EventLoop) { self.loop = loop }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute {
            unsafe job.runSynchronously(on: self.asUnownedTaskExecutor())
        }
    }
}
