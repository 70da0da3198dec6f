import COperonProcess
import Glibc

/// An event that happens once, and that one thread waits for. It takes no descriptor, so a process
/// that has none left can wait for its last words.
@safe final class ThreadSignal: @unchecked Sendable {
    // POSIX semaphores are used by several threads at the same address.
    private let semaphore: UnsafeMutablePointer<sem_t>

    init() {
        unsafe semaphore = .allocate(capacity: 1)
        // Fails only for values that are too large.
        unsafe sem_init(semaphore, 0, 0)
    }

    deinit {
        unsafe sem_destroy(semaphore)
        unsafe semaphore.deallocate()
    }

    /// Ends the wait.
    func send() { unsafe sem_post(semaphore) }

    /// Returns after `send`, or after this many seconds.
    func wait(seconds: Double) {
        var end = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &end)
        let nanoseconds = Int(end.tv_nsec) + Int(seconds * 1e9)
        end.tv_sec += nanoseconds / 1_000_000_000
        end.tv_nsec = nanoseconds % 1_000_000_000
        unsafe operon_process_wait_semaphore(semaphore, &end)
    }
}
