#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The seeds that are being run. A trap in the core ends the process before a seed has a result:
/// these are then printed, so that it can be found. With a rule that is broken on purpose, the
/// option for it is to be added.
enum SeedsUnderWay {
    /// A seed for each thread; 0: none. A handler of signals may neither allocate nor lock.
    nonisolated(unsafe) private static let seeds: UnsafeMutableBufferPointer<UInt64> = {
        let seeds = UnsafeMutableBufferPointer<UInt64>.allocate(capacity: threadsMax)
        unsafe seeds.initialize(repeating: 0)
        return unsafe seeds
    }()
    /// What handled traps before: it prints the backtrace.
    nonisolated(unsafe) private static var previous = sigaction()

    /// What `precondition` compiles to: SIGILL on x86-64, SIGTRAP on arm64.
    private static let traps = [SIGILL, SIGTRAP]
    private static let threadsMax = 256

    /// Prints them if the process traps.
    static func printIfTrapped() {
        _ = unsafe seeds
        #if canImport(Glibc)
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_handler = { signal in
            SeedsUnderWay.report()
            // The instruction that trapped is run again, by the handler before this one.
            unsafe sigaction(signal, &SeedsUnderWay.previous, nil)
        }
        // Both have the same handler, that of the runtime or none.
        for trap in traps { unsafe sigaction(trap, &action, &previous) }
        #endif
    }

    static func begin(_ seed: UInt64, thread: Int) {
        if thread < threadsMax { unsafe seeds[thread] = seed }
    }

    /// In decimal digits, with nothing but the stack.
    private static func report() {
        for thread in 0..<threadsMax {
            let seed = unsafe seeds[thread]
            guard seed != 0 else { continue }
            unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 64) { text in
                var end = 0
                func append(_ byte: UInt8) {
                    unsafe text[end] = byte
                    end += 1
                }
                for byte in "trapped: simulate --check-every 1 --seeds 1 --from ".utf8 {
                    append(byte)
                }
                var divisor: UInt64 = 1
                while seed / divisor >= 10 { divisor *= 10 }
                while divisor > 0 {
                    append(UInt8(ascii: "0") + UInt8(seed / divisor % 10))
                    divisor /= 10
                }
                append(UInt8(ascii: "\n"))
                _ = unsafe write(STDERR_FILENO, text.baseAddress, end)
            }
        }
    }
}
