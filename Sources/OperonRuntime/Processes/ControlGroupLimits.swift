import OperonModel

/// What the group of an attempt is told of its limits.
struct ControlGroupLimits: Hashable, Sendable {
    /// Thousandths of processors; `nil`: no limit.
    let cpus: Int?
    /// Bytes; `nil`: no limit.
    let memory: Int?

    init(_ amounts: ResourceAmounts) {
        cpus = amounts[ResourceAmount.cpusName]
        memory = amounts[ResourceAmount.memoryName]
    }

    static let swapFile = "memory.swap.max"

    /// The names of the files, and what is written to them, in this order.
    var files: [(name: String, text: String)] {
        var files: [(name: String, text: String)] = []
        if let cpus { files.append(("cpu.max", Self.quota(cpus))) }
        if let memory {
            files.append(("memory.max", String(memory)))
            files.append((Self.swapFile, "0"))
            // One process alone is rarely of use without the others.
            files.append(("memory.oom.group", "1"))
        }
        return files
    }

    /// Microseconds of processor time in each period, and the period.
    static func quota(_ thousandths: Int) -> String {
        // The kernel takes quotas from a millisecond, and periods of at most a second. In its usual
        // period of 100 ms a process waits less for its next turn.
        let period = thousandths < 10 ? 1_000_000 : 100_000
        let quota = min(thousandths, quotaMax / 1_000) * (period / ResourceAmount.cpuUnit)
        return "\(quota) \(period)"
    }

    /// Below the kernel's largest quota, which is 2⁴⁴ µs.
    private static let quotaMax = 1 << 43

    /// A line about the part of the group in the end of an attempt; `nil`: it had none.
    func note(
        on group: ControlGroups.End,
        _ end: RunningProcess.End,
        _ result: AttemptEnd
    ) -> String? {
        if case .failed = result, end.stopReason == nil, group.isOutOfMemory {
            guard group.hasReachedLimit, let memory else {
                return "killed by the kernel: the machine, or a control group around the worker, "
                    + "had no memory left"
            }
            let text = ResourceText.text(memory, of: ResourceAmount.memoryName)
            return "killed by the kernel for using more than its memory of \(text)"
        }
        guard group.isLeft else { return nil }
        return "some of its processes may be left, and still have a part of its resources"
    }
}
