import Glibc
package import OperonModel

/// What this machine lets this process use, as a worker offers it.
package struct Machine: Hashable, Sendable {
    /// The processors that this process may use, by the kernel's numbers.
    package var processors: [Int]
    /// Thousandths of processors: as many as there are, or what its control groups allow.
    package var cpus: Int
    /// Bytes: what the machine has, or what its control groups allow; `nil`: not known.
    package var memory: Int?
    /// The graphics processors, as their driver names them.
    package var gpus: [String]
    /// The name of the label that tells machines apart.
    static let hostLabel = "host"

    /// `arch`, `host`, `name` (that of a worker to which nobody has given another) and `os`.
    package var labels: [WorkerLabel]

    /// Reads it from the files of the kernel.
    ///
    /// - Parameters:
    ///   - environment: Variables of this process that hide some of the graphics processors.
    ///   - root: The folder in which `proc`, `sys` and `dev` are; another one in tests.
    package init(
        environment: [String: String],
        processors: [Int] = OwnProcess.processors,
        root: String = ""
    ) {
        let groups = Self.controlGroups(root)
        self.processors = processors
        let count = processors.isEmpty ? OwnProcess.processorCount : processors.count
        let quotas = groups.compactMap { Self.text($0 + "/cpu.max").flatMap(Self.quota) }
        cpus = min(count * ResourceAmount.cpuUnit, quotas.min() ?? .max)
        let bounds = groups.compactMap { Self.text($0 + "/memory.max").flatMap(Self.number) }
        let memories = bounds + [Self.installedMemory(root)].compactMap { $0 }
        memory = memories.min()
        gpus = Self.graphics(environment, root)
        labels = [
            WorkerLabel("arch", Self.architecture),
            WorkerLabel(Self.hostLabel, OwnProcess.hostName),
            WorkerLabel("name", OwnProcess.workerName),
            WorkerLabel("os", "linux"),
        ]
    }

    /// What a worker on this machine offers.
    ///
    /// - Parameters:
    ///   - resources: Amounts that are offered instead of those of the machine, or besides them.
    ///   - labels: The same for labels.
    package func offer(
        resources: ResourceAmounts = [],
        labels: [WorkerLabel] = []
    ) -> WorkerOffer {
        let maximum = ResourceAmount.amountMax
        var offer = WorkerOffer(labels: self.labels)
        offer.resources[ResourceAmount.cpusName] = min(max(1, cpus), maximum)
        offer.resources[ResourceAmount.memoryName] = memory.map { min(max(1, $0), maximum) }
        if !gpus.isEmpty { offer.resources[ResourceAmount.gpusName] = gpus.count }
        for one in resources.all { offer.resources[one.name] = one.amount }
        for label in labels { offer.set(label) }
        return offer
    }

    /// The same, if a coordinator takes it.
    package func checkedOffer(
        resources: ResourceAmounts,
        labels: [WorkerLabel]
    ) throws(WorkerOfferError) -> WorkerOffer {
        let offer = offer(resources: resources, labels: labels)
        do throws(Refusal) {
            try offer.check(Limits())
        } catch {
            throw WorkerOfferError(error)
        }
        return offer
    }

    /// The names of that many graphics processors: those of the machine, or, where it has others
    /// than the offer says, numbers from 0.
    package func gpus(_ count: Int) -> [String] {
        count <= gpus.count ? Array(gpus.prefix(count)) : (0..<count).map(String.init)
    }

    private static var architecture: String {
        #if arch(x86_64)
        "x86_64"
        #elseif arch(arm64)
        "arm64"
        #else
        "unknown"
        #endif
    }

    // MARK: - Control groups (cgroups(7), version 2)

    /// The folder of this process's group, and of all groups around it.
    private static func controlGroups(_ root: String) -> [String] {
        guard let lines = text(root + "/proc/self/cgroup") else { return [] }
        let line = lines.split(separator: "\n").first { $0.hasPrefix("0::/") }
        guard let path = line?.dropFirst("0::/".count) else { return [] }
        var folder = root + "/sys/fs/cgroup"
        var folders = [folder]
        for part in path.split(separator: "/") {
            folder += "/" + part
            folders.append(folder)
        }
        return folders
    }

    /// Thousandths of processors of `QUOTA PERIOD`; `nil`: `max`.
    private static func quota(_ text: String) -> Int? {
        let parts = text.split { $0 == " " || $0 == "\n" }
        guard parts.count == 2, let quota = Int(parts[0]), let period = Int(parts[1]),
            quota > 0, period > 0
        else { return nil }
        let (product, overflow) = quota.multipliedReportingOverflow(by: ResourceAmount.cpuUnit)
        return overflow ? nil : max(1, product / period)
    }

    /// `nil`: `max`.
    private static func number(_ text: String) -> Int? {
        Int(text.prefix { $0.isASCII && $0.isNumber })
    }

    private static func installedMemory(_ root: String) -> Int? {
        guard let lines = text(root + "/proc/meminfo") else { return nil }
        for line in lines.split(separator: "\n") where line.hasPrefix("MemTotal:") {
            let digits = line.drop { !$0.isNumber }.prefix { $0.isNumber }
            guard let kibibytes = Int(digits) else { return nil }
            let (bytes, overflow) = kibibytes.multipliedReportingOverflow(by: 1_024)
            return overflow ? nil : bytes
        }
        return nil
    }

    // MARK: - Graphics processors

    private static func graphics(_ environment: [String: String], _ root: String) -> [String] {
        let nvidia = numbers(of: "nvidia", in: root + "/dev").map(String.init)
        if !nvidia.isEmpty { return visible(nvidia, environment["CUDA_VISIBLE_DEVICES"]) }
        let amd = numbers(of: "renderD", in: root + "/dev/dri").filter { number in
            let link = root + "/sys/class/drm/renderD\(number)/device/driver"
            return target(of: link)?.split(separator: "/").last == "amdgpu"
        }
        return visible(amd.indices.map(String.init), environment["ROCR_VISIBLE_DEVICES"])
    }

    /// Whoever started the worker may have left it only some of them. One that is listed twice is
    /// still one.
    private static func visible(_ all: [String], _ list: String?) -> [String] {
        guard let list else { return all }
        var names: Set<String> = []
        return list.split(separator: ",").map { String($0) }
            .filter { !$0.hasPrefix("-") && names.insert($0).inserted }
    }

    /// The numbers of the files in a folder that are called so, followed by a number.
    static func numbers(of name: String, in folder: String) -> [Int] {
        guard let opened = unsafe opendir(folder) else { return [] }
        defer { unsafe closedir(opened) }
        var numbers: [Int] = []
        while let entry = unsafe readdir(opened) {
            let file = unsafe withUnsafePointer(to: &entry.pointee.d_name) { start in
                unsafe start.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            guard file.hasPrefix(name) else { continue }
            let digits = file.dropFirst(name.count)
            guard digits.utf8.allSatisfy({ (48...57).contains($0) }) else { continue }
            if let number = Int(digits) { numbers.append(number) }
        }
        return numbers.sorted()
    }

    private static func target(of link: String) -> String? {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = unsafe readlink(link, &path, path.count)
        guard count > 0, count < path.count else { return nil }
        return String(decoding: path[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// The files of the kernel that are read here have a few kilobytes.
    private static let textBytesMax = 64 << 10

    private static func text(_ path: String) -> String? {
        let number = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { return nil }
        let file = Descriptor(owning: number)
        var bytes = [UInt8](repeating: 0, count: textBytesMax)
        var filled = 0
        while filled < bytes.count {
            let count = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe read(file.number, buffer.baseAddress! + filled, buffer.count - filled)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            filled += count
        }
        return String(decoding: bytes.prefix(filled), as: UTF8.self)
    }
}

/// Why no coordinator would take what a worker offers: a sentence for the person who starts it.
package struct WorkerOfferError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package var description: String { message }

    init(_ refusal: Refusal) {
        let own: String? =
            switch refusal {
            case .limitExceeded(.resources, _, _): "the machine's own cpus, memory and gpus"
            case .limitExceeded(.labels, _, _): "arch, host, name and os"
            default: nil
            }
        message = "\(refusal)" + (own.map { ", counting \($0)" } ?? "")
    }
}
