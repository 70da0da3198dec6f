import Glibc

/// A process as /proc/PID/stat shows it (proc(5)).
struct KernelProcess: Hashable {
    let process: pid_t
    let isZombie: Bool
    let parent: pid_t
    let group: pid_t
    let session: pid_t
    /// The start time in ticks since the boot. With the process number it identifies a process for
    /// good.
    let start: UInt64

    /// Returns `nil` if there is no process with this number.
    init?(_ process: pid_t) {
        guard let bytes = SmallFile.read("/proc/\(process)/stat") else { return nil }
        self.init(process, stat: String(decoding: bytes, as: UTF8.self))
    }

    init?(_ process: pid_t, stat: String) {
        // The second field is a name in parentheses; the name may itself contain parentheses.
        guard let name = stat.lastIndex(of: ")") else { return nil }
        // The fields from the third on: state, parent, group, session, …; the 22nd is the start
        // time.
        let fields = stat[stat.index(after: name)...].split(separator: " ")
        guard fields.count > 19, let parent = pid_t(fields[1]), let group = pid_t(fields[2]),
            let session = pid_t(fields[3]),
            let start = UInt64(fields[19])
        else { return nil }
        self.process = process
        isZombie = fields[0] == "Z" || fields[0] == "X"
        self.parent = parent
        self.group = group
        self.session = session
        self.start = start
    }

    /// All visible processes; `nil`: the system has no descriptor or memory to list them.
    static func all() -> [KernelProcess]? {
        guard let folder = unsafe opendir("/proc") else {
            return SystemError.current("listing processes").isShortage ? nil : []
        }
        defer { unsafe closedir(folder) }
        var processes: [KernelProcess] = []
        while let entry = unsafe readdir(folder) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) { text in
                    unsafe String(cString: text)
                }
            }
            guard let number = pid_t(name) else { continue }
            errno = 0
            if let process = KernelProcess(number) {
                processes.append(process)
            } else if SystemError.current("looking at a process").isShortage {
                return nil
            }
        }
        return processes
    }
}
