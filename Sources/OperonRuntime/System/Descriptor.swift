import COperonProcess
import Glibc

/// An open file descriptor with one owner, closed when its owner lets go of it.
///
/// All of ours are close-on-exec, so that no child that anything in this process starts inherits
/// them.
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

/// A system call that failed: its `errno`, and what was being done.
package struct SystemError: Error, Hashable {
    let doing: String
    let code: Int32

    /// Reads `errno`: to be called at once after the failing call.
    static func current(_ doing: String) -> SystemError {
        SystemError(doing: doing, code: errno)
    }

    /// Whether the system lacks something that it may have again later: a descriptor, a process or
    /// memory. It says nothing about what was to be done.
    var isShortage: Bool { [EMFILE, ENFILE, EAGAIN, ENOMEM].contains(code) }

    /// The same of what is written to a disk: it may have room again.
    var isShortageOrFullDisk: Bool { isShortage || [ENOSPC, EDQUOT].contains(code) }

    /// "No such file or directory".
    static func text(_ code: Int32) -> String {
        // glibc's strerror answers per thread since 2.32.
        guard let text = unsafe strerror(code) else { return "error \(code)" }
        return unsafe String(cString: text)
    }
}

extension SystemError: CustomStringConvertible {
    package var description: String { "\(doing): \(SystemError.text(code))" }
}

extension Descriptor {
    /// A counter that can be waited for: how other threads wake one of ours.
    static func wakeup(blocking: Bool) throws(SystemError) -> Descriptor {
        try counter(flags: blocking ? EFD_CLOEXEC : EFD_CLOEXEC | EFD_NONBLOCK)
    }

    /// The same for several threads of ours: each `signal` ends one `await`.
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
        // Fails only when the counter is full, and then whoever waits is awake.
        _ = eventfd_write(number, 1)
    }

    /// Takes what is in the counter, one of a semaphore; waits for it if the counter is blocking.
    borrowing func await() {
        var value: eventfd_t = 0
        while unsafe eventfd_read(number, &value) != 0, errno == EINTR {}
    }
}

/// Both ends of a pipe: ours to read without blocking, the child's to write with blocking.
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
        // On a new pipe of ours this has no way to fail.
        _ = fcntl(reader.number, F_SETFL, O_NONBLOCK)
    }
}
