import COperonProcess
import Glibc
package import OperonModel

/// One process, told from every other that has its number before or after it.
package struct ProcessIdentity: Hashable, Sendable, CustomStringConvertible {
    package let process: Int32
    /// When it started, in ticks since the boot.
    package let start: UInt64
    /// The random number that Linux draws at each boot.
    package let boot: String

    /// The process that has this number now.
    ///
    /// - Throws: `absent`, `invalid` for a number that no process can have, or `system`.
    package init(running process: Int32) throws(TriggerSourceError) {
        guard process > 0 else {
            throw TriggerSourceError(.invalid, "\(process) is not the number of a process")
        }
        guard let known = KernelProcess(process), !known.isZombie else {
            throw TriggerSourceError(.absent, "there is no process \(process)")
        }
        guard let boot = Self.currentBoot() else {
            throw TriggerSourceError(.system, "/proc/sys/kernel/random/boot_id cannot be read")
        }
        self.process = process
        start = known.start
        self.boot = boot
    }

    /// Reads what `description` wrote; `nil`: something else did.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].utf8.count == Self.bootBytes,
            parts[0].utf8.allSatisfy({ Self.bootCharacters.contains($0) }),
            let process = Int32(parts[1]), process > 0, let start = UInt64(parts[2])
        else { return nil }
        boot = String(parts[0])
        self.process = process
        self.start = start
    }

    package var description: String { "\(boot):\(process):\(start)" }

    /// A UUID.
    private static let bootBytes = 36
    private static let bootCharacters = Set("0123456789abcdef-".utf8)

    private static func currentBoot() -> String? {
        guard let bytes = SmallFile.read("/proc/sys/kernel/random/boot_id") else { return nil }
        let text = bytes.prefix { bootCharacters.contains($0) }
        return text.count == bootBytes ? String(decoding: text, as: UTF8.self) : nil
    }

    /// A descriptor that becomes readable when the process has ended; `nil`: it has ended already.
    func descriptor() throws(SystemError) -> ProcessDescriptor? {
        guard Self.currentBoot() == boot else { return nil }
        let number = operon_process_open(process)
        guard number >= 0 else {
            let error = SystemError.current("watching process \(process)")
            guard error.code == ESRCH else { throw error }
            return nil
        }
        let descriptor = ProcessDescriptor(Descriptor(owning: number), of: process)
        // The number was taken before this look, so if the process is the right one now, the
        // descriptor belongs to it.
        guard let known = KernelProcess(process) else {
            if descriptor.hasEnded { return nil }
            throw SystemError(doing: "reading what process \(process) is", code: EMFILE)
        }
        return known.start == start ? descriptor : nil
    }
}

/// A descriptor of any process on this machine (pidfd_open(2)).
final class ProcessDescriptor: Sendable {
    private let descriptor: Descriptor
    private let process: Int32

    init(_ descriptor: consuming Descriptor, of process: Int32) {
        self.descriptor = descriptor
        self.process = process
    }

    var number: Int32 { descriptor.number }

    /// Whether the process has ended, or was collected.
    var hasEnded: Bool {
        var polled = pollfd(fd: descriptor.number, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&polled, 1, 0) > 0
    }

    enum End {
        case exited(code: Int32)
        case signaled(Int32)
        /// Its parent has not collected it yet.
        case notYetKnown
        case unknown
    }

    /// How the process ended, without collecting it.
    func end() -> End {
        let end = operon_process_observe(descriptor.number, process)
        switch end.state {
        case 0: return .notYetKnown
        case 1: return end.signaled != 0 ? .signaled(end.value) : .exited(code: end.value)
        default: return .unknown
        }
    }
}
