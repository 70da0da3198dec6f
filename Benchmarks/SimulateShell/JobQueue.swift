#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The jobs of all tasks and actors in this process. They run on the thread that calls `runOne`,
/// one at a time, in an order that a seed determines.
///
/// Swift's runtime hands every job that may run on any thread to `swift_task_enqueueGlobal_hook`,
/// if that is set. Tests of asynchronous code use it in the same way (Point-Free's
/// swift-concurrency-extras, `withMainSerialExecutor`).
enum JobQueue {
    private typealias Original = @convention(thin) (UnownedJob) -> Void
    private typealias Hook = @convention(thin) (UnownedJob, Original) -> Void
    private typealias DelayOriginal = @convention(thin) (UInt64, UnownedJob) -> Void
    private typealias DelayHook = @convention(thin) (UInt64, UnownedJob, DelayOriginal) -> Void

    /// Only one thread uses it.
    nonisolated(unsafe) private static var jobs: [UnownedJob] = []
    private static let runner = Runner()

    /// The executor that jobs see.
    private final class Runner: TaskExecutor {
        func enqueue(_ job: consuming ExecutorJob) { JobQueue.add(UnownedJob(job)) }
    }

    /// To be called before the first task is made.
    static func install() {
        let hook: UnsafeMutablePointer<Hook?> = unsafe pointer("swift_task_enqueueGlobal_hook")
        unsafe hook.pointee = { job, _ in JobQueue.add(job) }
        let delay: UnsafeMutablePointer<DelayHook?> =
            unsafe pointer("swift_task_enqueueGlobalWithDelay_hook")
        unsafe delay.pointee = { _, _, _ in JobQueue.refuseDelay() }
        // It has more parameters, which nobody looks at.
        let deadline: UnsafeMutablePointer<Hook?> =
            unsafe pointer("swift_task_enqueueGlobalWithDeadline_hook")
        unsafe deadline.pointee = { _, _ in JobQueue.refuseDelay() }
    }

    private static func pointer<Value>(_ name: String) -> UnsafeMutablePointer<Value> {
        guard let symbol = unsafe dlsym(nil, name) else {
            preconditionFailure("this runtime of Swift has no \(name)")
        }
        return unsafe symbol.assumingMemoryBound(to: Value.self)
    }

    private static func refuseDelay() -> Never {
        preconditionFailure("something sleeps by the clock of the machine, not by that of the seed")
    }

    static var isEmpty: Bool { unsafe jobs.isEmpty }

    private static func add(_ job: UnownedJob) { unsafe jobs.append(job) }

    /// Runs one of the jobs that are ready, which this number selects; returns whether there was
    /// one.
    static func runOne(_ draw: UInt64) -> Bool {
        guard unsafe !jobs.isEmpty else { return false }
        let last = unsafe jobs.count - 1
        unsafe jobs.swapAt(Int(draw % UInt64(last + 1)), last)
        unsafe jobs.removeLast().runSynchronously(on: runner.asUnownedTaskExecutor())
        return true
    }
}
