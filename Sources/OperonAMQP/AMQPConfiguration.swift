package import OperonCore
package import OperonModel
package import OperonPorts
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The configuration of a transport over a broker; it is fixed when the transport starts.
package struct AMQPConfiguration: Sendable {
    package var address: BrokerAddress
    /// The start of the name of every queue and exchange. Each prefix has one coordinator.
    package var prefix: String
    /// A connection ends after twice this time of silence. RabbitMQ recommends at least 5 s.
    package var heartbeat: Duration
    /// The interval between workers' beats. A beat is worth reading for three of these intervals.
    package var beat: Duration
    package var limits: Limits
    /// By how many bytes seals make messages longer.
    var sealBytes = Limits.sealBytes
    /// What another coordinator is told about the holder of the prefix.
    package var holder: PrefixHolder
    /// The current workers, for the same answer.
    package let attendance = Attendance()

    /// Throws `PortError.invalidAddress` for a URL or prefix that cannot be used.
    package init(
        url: String,
        prefix: String = "operon.",
        beat: Duration = .seconds(2),
        limits: Limits = Limits(),
        holder: PrefixHolder = .thisProcess()
    ) throws(PortError) {
        address = try BrokerAddress(url: url)
        // AMQP names hold 255 bytes; our names add at most 60 to the prefix.
        guard prefix.utf8.count <= 128, !prefix.hasPrefix("amq.") else {
            throw PortError(
                .invalidAddress,
                "The prefix must have at most 128 bytes and not begin with “amq.”, "
                    + "which belongs to the broker."
            )
        }
        self.prefix = prefix
        heartbeat = address.heartbeatSeconds.map { .seconds(Int($0)) } ?? .seconds(5)
        self.beat = beat
        self.limits = limits
        self.holder = holder
    }
}

/// The holder of a prefix, with enough facts for a person to find the process.
package struct PrefixHolder: Hashable, Sendable {
    package var host: String
    package var processID: Int32
    /// When the process started, in seconds since 1970.
    package var since: Int64
    /// Its workers and their slots at the time of the answer; `nil` if the answer does not contain
    /// them.
    package var workers: Int?
    package var slots: Int?

    package init(host: String, processID: Int32, since: Int64) {
        self.host = host
        self.processID = processID
        self.since = since
    }

    package static func thisProcess() -> PrefixHolder {
        var name = [CChar](repeating: 0, count: 256)
        let status = unsafe gethostname(&name, name.count - 1)
        let bytes = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        let host = status == 0 ? String(decoding: bytes, as: UTF8.self) : "unknown host"
        return PrefixHolder(host: host, processID: getpid(), since: Int64(time(nil)))
    }
}

/// The workers of a coordinator, for other coordinators that ask who holds the prefix. The program
/// updates it; the connection reads it.
package final class Attendance: Sendable {
    private let slots = Mutex<[Incarnation: Int]>([:])

    package init() {}

    package func note(_ notices: [Scheduler.Notice]) {
        for notice in notices {
            switch notice {
            case .workerJoined(let worker, _, let count):
                slots.withLock { $0[worker.incarnation] = count }
            case .workerLost(let worker):
                slots.withLock { $0[worker.incarnation] = nil }
            default: continue
            }
        }
    }

    var counts: (workers: Int, slots: Int) {
        slots.withLock { ($0.count, $0.values.reduce(0, +)) }
    }
}

extension AMQPConfiguration {
    /// The most bytes of a message as it is sent.
    var bodyBytesMax: Int { limits.messageBytes + sealBytes }

    /// The holder of the prefix with its current number of workers.
    var currentHolder: PrefixHolder {
        var holder = holder
        (holder.workers, holder.slots) = attendance.counts
        return holder
    }
}

extension PrefixHolder {
    /// Five lines, which `init(answer:)` reads.
    var answer: [UInt8] {
        let lines = [host, "\(processID)", "\(since)", "\(workers ?? 0)", "\(slots ?? 0)"]
        return Array(lines.joined(separator: "\n").utf8)
    }

    /// `nil` if no coordinator would send this. The answer comes from another process, which may
    /// have another version.
    init?(answer: [UInt8]) {
        guard answer.count <= 1_024 else { return nil }
        let lines = String(decoding: answer, as: UTF8.self).split(separator: "\n")
        guard lines.count >= 3, let processID = Int32(lines[1]), let since = Int64(lines[2])
        else { return nil }
        let printable = lines[0].unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }
        host = String(String.UnicodeScalarView(printable))
        self.processID = processID
        self.since = since
        // Older versions send only three lines.
        guard lines.count >= 5 else { return }
        workers = Int(lines[3])
        slots = Int(lines[4])
    }

    /// “host, process 12, since 2026-11-21 03:20:00 UTC”
    package var sentence: String { "\(host), process \(processID), since \(Self.utc(since))" }

    private static func utc(_ seconds: Int64) -> String {
        var moment = time_t(seconds)
        var parts = unsafe tm()
        guard unsafe gmtime_r(&moment, &parts) != nil else { return "\(seconds) s after 1970" }
        func two(_ value: Int32) -> String { value < 10 ? "0\(value)" : "\(value)" }
        return unsafe "\(parts.tm_year + 1_900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) "
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) UTC"
    }
}
