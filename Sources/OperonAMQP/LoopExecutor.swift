package import NIOCore

/// Runs tasks on an event loop. A program whose work is mostly messages then avoids switching
/// between threads, which costs more than the work. Code that blocks or computes for long must run
/// elsewhere.
///
/// Its tasks must end before the loop's group is shut down.
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
