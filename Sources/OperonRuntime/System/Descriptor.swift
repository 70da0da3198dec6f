import COperonProcess
import Glibc
import OperonSystem

/// An open file descriptor with one owner, closed when its owner releases it.
///
/// All of Operon's descriptors are close-on-exec, so that no child that anything in this process
/// starts inherits them.
struct Descriptor: ~Copyable, Sendable {
    let number: Int32

    /// Takes over a descriptor that a system call returned.
    init(owning number: Int32) {
        precondition(
            number >= 0,
            "A descriptor is owned only after the call that made it succeeded."
        )
        self.number = number
    }

    deinit { _ = Glibc.close(number) }
}

/// A failed system call: its `errno`, and what was being done.
package struct SystemError: Error, Hashable {
    let doing: String
    let code: Int32

    /// Reads `errno`, so it must be called directly after the failing call.
    static func current(_ doing: String) -> SystemError {
        SystemError(doing: doing, code: errno)
    }

    /// Whether the system lacks a resource that it may have again later: a descriptor, a process or
    /// memory. The failed action itself is not to blame.
    var isShortage: Bool { [EMFILE, ENFILE, EAGAIN, ENOMEM].contains(code) }

    /// The same for a write to a disk, which may have room again.
    var isShortageOrFullDisk: Bool { isShortage || [ENOSPC, EDQUOT].contains(code) }

    /// The text for an `errno`, such as "No such file or directory".
    static func text(_ code: Int32) -> String { SystemWords.text(of: code) }
}

extension SystemError: CustomStringConvertible {
    package var description: String { "\(doing): \(SystemError.text(code))" }
}

extension Descriptor {
    /// A counter to wait for, with which other threads wake one of Operon's threads.
    static func wakeup(blocking: Bool) throws(SystemError) -> Descriptor {
        try counter(flags: blocking ? EFD_CLOEXEC : EFD_CLOEXEC | EFD_NONBLOCK)
    }

    /// The same for several threads: each `signal` ends one `await`.
    static func semaphore() throws(SystemError) -> Descriptor {
        try counter(flags: EFD_CLOEXEC | EFD_SEMAPHORE)
    }

    private static func counter(flags: Int) throws(SystemError) -> Descriptor {
        let number = eventfd(0, Int32(flags))
        guard number >= 0 else { throw .current("making an eventfd") }
        return Descriptor(owning: number)
    }

    /// Adds one to the counter.
    borrowing func signal() {
        // Fails only when the counter is full, and then any waiting thread has been woken.
        _ = eventfd_write(number, 1)
    }

    /// Takes the whole counter, or one from a semaphore; a blocking counter waits until it is not
    /// zero.
    borrowing func await() {
        var value: eventfd_t = 0
        while unsafe eventfd_read(number, &value) != 0, errno == EINTR {}
    }
}

/// Both ends of a pipe: this process reads without blocking, the child writes with blocking.
struct Pipe: ~Copyable {
    let reader: Descriptor
    let writer: Descriptor

    init() throws(SystemError) {
        var ends: (reader: Int32, writer: Int32) = (-1, -1)
        guard unsafe operon_process_pipe(&ends.reader, &ends.writer) == 0 else {
            throw .current("making a pipe")
        }
        reader = Descriptor(owning: ends.reader)
        writer = Descriptor(owning: ends.writer)
        // On a new pipe this cannot fail.
        _ = fcntl(reader.number, F_SETFL, O_NONBLOCK)
    }
}
