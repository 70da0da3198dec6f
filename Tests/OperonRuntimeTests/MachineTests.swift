import Foundation
import OperonModel
import Testing

@testable import OperonRuntime

/// What a machine lets a worker use, read from the files of a kernel that the test makes up.
struct MachineTests {
    /// A folder with `proc`, `sys` and `dev`.
    private struct Root {
        let path: String

        init() throws {
            path = NSTemporaryDirectory() + "machine-\(UUID().uuidString)"
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true
            )
        }

        func write(_ file: String, _ text: String) throws {
            let url = URL(filePath: path + "/" + file)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(text.utf8).write(to: url)
        }

        func link(_ file: String, to target: String) throws {
            try write(file + ".mark", "")
            try FileManager.default.createSymbolicLink(
                atPath: path + "/" + file,
                withDestinationPath: target
            )
        }

        func machine(
            _ environment: [String: String] = [:],
            processors: [Int] = [0, 1, 2, 3, 4, 5, 6, 7]
        ) -> Machine {
            Machine(environment: environment, processors: processors, root: path)
        }
    }

    private func withRoot(_ body: (Root) throws -> Void) throws {
        let root = try Root()
        defer { try? FileManager.default.removeItem(atPath: root.path) }
        try body(root)
    }

    @Test func `the strictest control group around a worker bounds what it offers`() throws {
        try withRoot { root in
            try root.write("proc/self/cgroup", "1:cpu:/other\n0::/system.slice/operon.service\n")
            try root.write("proc/meminfo", "MemTotal:       16384000 kB\nMemFree: 1 kB\n")
            try root.write("sys/fs/cgroup/system.slice/cpu.max", "250000 100000\n")
            try root.write("sys/fs/cgroup/system.slice/memory.max", "8589934592\n")
            try root.write("sys/fs/cgroup/system.slice/operon.service/cpu.max", "max 100000\n")
            try root.write("sys/fs/cgroup/system.slice/operon.service/memory.max", "max\n")

            let machine = root.machine()

            #expect(machine.cpus == 2_500)
            #expect(machine.memory == 8 << 30)
            #expect(machine.gpus == [])
            let offer = machine.offer()
            #expect(offer.resources == [.cpus(2.5), .memory(bytes: 8 << 30)])
            #expect(offer.labels.map(\.name) == ["arch", "host", "name", "os"])
            #expect(throws: Never.self) { try offer.check(Limits()) }
        }
    }

    @Test func `without control groups it offers its processors and its memory`() throws {
        try withRoot { root in
            try root.write("proc/meminfo", "MemTotal:       16384000 kB\n")

            let offer = root.machine(processors: [1, 3]).offer()

            #expect(offer.resources == [.cpus(2), .memory(bytes: 16_384_000 << 10)])
        }
    }

    @Test(arguments: ["", "0 100000", "-5 100000", "5 0", "max", "99999999999999999999 1", "a b c"])
    func `a quota that is none bounds nothing`(text: String) throws {
        try withRoot { root in
            try root.write("proc/self/cgroup", "0::/\n")
            try root.write("sys/fs/cgroup/cpu.max", text)

            #expect(root.machine().cpus == 8_000)
        }
    }

    @Test func `a machine about which nothing can be read offers its processors`() throws {
        try withRoot { root in
            try root.write("proc/meminfo", "nothing of use\n")

            #expect(root.machine().offer().resources == [.cpus(8)])
        }
    }

    @Test func `graphics processors are the device files, and the environment may hide some`()
        throws
    {
        try withRoot { root in
            for name in ["nvidia10", "nvidia2", "nvidia0", "nvidiactl", "nvidia-uvm", "nvidia"] {
                try root.write("dev/" + name, "")
            }

            #expect(root.machine().gpus == ["0", "2", "10"])
            #expect(root.machine(["CUDA_VISIBLE_DEVICES": "2,GPU-abc"]).gpus == ["2", "GPU-abc"])
            #expect(root.machine(["CUDA_VISIBLE_DEVICES": "0,2,0"]).gpus == ["0", "2"])
            #expect(root.machine(["CUDA_VISIBLE_DEVICES": ""]).gpus == [])
            #expect(root.machine(["CUDA_VISIBLE_DEVICES": "-1"]).gpus == [])
            #expect(root.machine().offer().resources["gpus"] == 3)
            #expect(root.machine(["CUDA_VISIBLE_DEVICES": ""]).offer().resources["gpus"] == nil)
        }
    }

    @Test func `graphics processors of AMD are those with its driver`() throws {
        try withRoot { root in
            for number in [128, 129, 130] {
                try root.write("dev/dri/renderD\(number)", "")
                try root.link(
                    "sys/class/drm/renderD\(number)/device/driver",
                    to: "../../../bus/pci/drivers/" + (number == 129 ? "i915" : "amdgpu")
                )
            }

            #expect(root.machine().gpus == ["0", "1"])
            #expect(root.machine(["ROCR_VISIBLE_DEVICES": "1"]).gpus == ["1"])
        }
    }

    @Test func `an offer that no coordinator takes is refused, with what the machine adds`() throws
    {
        try withRoot { root in
            try root.write("proc/meminfo", "MemTotal:       16384000 kB\n")
            let machine = root.machine()
            func refusal(_ resources: ResourceAmounts, _ labels: [WorkerLabel]) -> String? {
                #expect(throws: WorkerOfferError.self) {
                    try machine.checkedOffer(resources: resources, labels: labels)
                }?.message
            }
            let names = (0..<64).map { "a\($0)" }
            func amounts(_ count: Int) -> ResourceAmounts {
                ResourceAmounts(names.prefix(count).map { ResourceAmount(name: $0, amount: 1) })
            }
            func labels(_ count: Int) -> [WorkerLabel] {
                names.prefix(count).map { WorkerLabel($0, "b") }
            }

            // It has cpus, memory and four labels by itself.
            #expect(throws: Never.self) {
                try machine.checkedOffer(resources: amounts(14), labels: labels(60))
            }
            #expect(
                refusal(amounts(15), [])
                    == "resources of an operation or a worker: 17 is over the limit of 16, "
                    + "counting the machine's own cpus, memory and gpus"
            )
            #expect(
                refusal([], labels(61))
                    == "labels of a worker, or requirements of an operation: 65 is over the "
                    + "limit of 64, counting arch, host, name and os"
            )
            #expect(throws: Never.self) {
                try machine.checkedOffer(resources: [.gpus(4_096)], labels: [])
            }
            #expect(
                refusal([.gpus(4_097)], []) == "resources of the worker: gpus is over 4096"
            )
        }
    }

    @Test func `what is offered by hand replaces what the machine has`() throws {
        try withRoot { root in
            let machine = root.machine()
            let licences = ResourceAmount(name: "licences", amount: 3)

            let offer = machine.offer(
                resources: [.gpus(2), .cpus(0.5), licences],
                labels: [WorkerLabel("region", "eu"), WorkerLabel("arch", "mine")]
            )

            #expect(offer.resources == [.cpus(0.5), .gpus(2), licences])
            let labels = offer.labels.filter { !["host", "name", "os"].contains($0.name) }
            #expect(labels == [WorkerLabel("arch", "mine"), WorkerLabel("region", "eu")])
            #expect(machine.gpus(2) == ["0", "1"])
        }
    }
}
