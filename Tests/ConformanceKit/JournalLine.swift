import Foundation
import Glibc

/// One line of a journal: what an operation says of itself, whoever runs it.
///
/// The system under test has no part in it: a line is one `write` to a file that was opened with
/// `O_APPEND`, so the lines of several processes never mix.
package struct JournalLine: Hashable, Sendable {
    package enum Event: String, Sendable {
        case started
        case finished
        /// It was asked to stop, and did.
        case stopped
        case threw
    }

    /// What the test calls the operation.
    package var operation: String
    package var event: Event
    package var process: Int32
    package var thread: Int32
    /// Nanoseconds of the clock that all processes of a machine share and nobody sets.
    package var time: UInt64
    /// The name of the queue that the operation sees.
    package var queue: String

    package init(_ operation: String, _ event: Event, queue: String) {
        self.operation = operation
        self.event = event
        process = getpid()
        thread = Self.thread()
        time = Self.now()
        self.queue = queue
    }

    package init?(_ text: Substring) {
        let fields = text.split(separator: "\t", omittingEmptySubsequences: false)
        guard fields.count == 6, let event = Event(rawValue: String(fields[1])),
            let process = Int32(fields[2]), let thread = Int32(fields[3]),
            let time = UInt64(fields[4])
        else { return nil }
        operation = String(fields[0])
        self.event = event
        self.process = process
        self.thread = thread
        self.time = time
        queue = String(fields[5])
    }

    private var text: String {
        "\(operation)\t\(event)\t\(process)\t\(thread)\t\(time)\t\(queue)\n"
    }

    /// Appends it.
    ///
    /// - Throws: `JournalError` if it is not there as a whole.
    package func write(to path: String) throws {
        let file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC)
        guard file >= 0 else { throw JournalError("\(path) cannot be opened: error \(errno)") }
        defer { close(file) }
        let bytes = Array(text.utf8)
        guard Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw JournalError("\(path) takes no line: error \(errno)")
        }
    }

    /// The kernel's number of the calling thread; that of the main one is the process's.
    private static func thread() -> Int32 {
        var buffer = [CChar](repeating: 0, count: 64)
        // `PROCESS/task/THREAD`
        let count = readlink("/proc/thread-self", &buffer, buffer.count)
        let text = buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }
        return String(decoding: text, as: UTF8.self).split(separator: "/").last
            .flatMap { Int32($0) } ?? 0
    }

    package static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

/// A journal that cannot be written.
package struct JournalError: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
