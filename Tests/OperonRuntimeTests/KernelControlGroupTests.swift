import COperonProcess
import Glibc
import OperonModel
import Testing

@testable import OperonRuntime

/// The kernel's own control groups, as far as this machine has them.
@Suite(.timeLimit(.minutes(5))) struct KernelControlGroupTests {
    private static func context(_ enforced: ResourceAmounts) -> ProcessContext {
        var context = ProcessSupport.context()
        context.enforced = enforced
        return context
    }

    @Test(.enabled(if: Kernel.mount != nil, "nobody here may make control groups of version 2"))
    func `what leaves its process group is killed with its control group`() async throws {
        try await Kernel.withRunner("left", controllers: []) { runner in
            let result = await runner.run(
                ProcessSupport.shell(
                    // Without its environment, nothing else would find it.
                    "grep ^0:: /proc/self/cgroup; env -i setsid /bin/sh -c "
                        + "'echo 1 > '$OPERON_OUTPUT'; exec sleep 1000' >&- 2>&- & "
                        + "while [ ! -s $OPERON_OUTPUT ]; do sleep 0.01; done; echo $!"
                ),
                attempt: Self.context([.cpus(1)])
            )

            #expect(result.attempt.end == .succeeded)
            #expect(result.lines.first?.hasSuffix("/operon-0000000000000001/1") == true)
            let process = try #require(result.lines.last.flatMap { pid_t($0) })
            // Not at some time: when the result is there.
            #expect(!isAlive(process))
        }
    }

    @Test(.enabled(if: Kernel.mount != nil, "nobody here may make control groups of version 2"))
    func `a worker moves out of its own group, unless others would stay there`() async {
        await #expect(processExitsWith: .success) {
            let mount = try #require(Kernel.mount)
            let base = "\(mount)/operon-test-\(getpid())-own"
            let files = Kernel.files(controllers: [])
            try files.make(base)
            defer { rmdir(base) }
            try files.write("0", "\(base)/cgroup.procs")
            defer { try? files.write("0", "\(mount)/cgroup.procs") }
            let command = Supervisor.Command(
                candidates: ["/bin/sleep", "/usr/bin/sleep"],
                arguments: ["sleep", "1000"],
                environment: [:]
            )
            let other = try #require(ProcessSpawn.spawn(command))

            let error = #expect(throws: ControlGroupError.self) {
                try ControlGroups(.own, incarnation: Incarnation(rawValue: 1), files: files)
            }
            #expect(error?.message.contains(": process \(other) is in the group ") == true)
            #expect(access("\(base)/operon.worker", F_OK) != 0)
            let members = try ControlGroupFiles.processes(in: base).compactMap { pid_t($0) }
            #expect(members.sorted() == [getpid(), other].sorted())
            kill(other, SIGKILL)
            waitpid(other, nil, 0)

            let groups = try ControlGroups(
                .own,
                incarnation: Incarnation(rawValue: 1),
                files: files
            )
            #expect(try ControlGroupFiles.processes(in: base) == [])
            let moved = try ControlGroupFiles.processes(in: "\(base)/operon.worker")
            #expect(moved == ["\(getpid())"])
            groups.close()
            #expect(access(groups.path, F_OK) != 0)
            try files.write("0", "\(mount)/cgroup.procs")
            rmdir("\(base)/operon.worker")
        }
    }

    @Test(
        .enabled(
            if: Kernel.mount != nil && geteuid() == 0,
            "nobody here may make control groups of version 2 and become another user"
        )
    )
    func `a user who may not move processes into a group is told at the start`() async {
        await #expect(processExitsWith: .success) {
            let base = "\(try #require(Kernel.mount))/operon-test-\(getppid())-user"
            let files = Kernel.files(controllers: [])
            try files.make(base)
            let nobody: uid_t = 65_534
            for path in [base, "\(base)/cgroup.procs", "\(base)/cgroup.subtree_control"] {
                try #require(chown(path, nobody, nobody) == 0)
            }
            try #require(seteuid(nobody) == 0)
            defer {
                seteuid(0)
                rmdir(base)
            }

            let error = #expect(throws: ControlGroupError.self) {
                try ControlGroups(
                    .folder(base),
                    incarnation: Incarnation(rawValue: 1),
                    files: files
                )
            }
            let message = try #require(error?.message)
            #expect(message.contains(": moving a process of this worker into \(base)/operon-"))
            #expect(message.hasSuffix("of the nearest group around both: Permission denied."))
            #expect(access("\(base)/operon-0000000000000001", F_OK) != 0)
        }
    }

    @Test(
        .enabled(
            if: Kernel.hasControllers,
            "the controllers cpu and memory are not those of version 2 here"
        )
    )
    func `a process that takes more memory than it has is killed by the kernel`() async throws {
        try await Kernel.withRunner("memory") { runner in
            let result = await runner.run(
                ProcessSupport.shell("exec tail /dev/zero"),
                attempt: Self.context([.memory(bytes: 32 << 20)])
            )

            #expect(result.attempt.end == .failed(.signal(name: "SIGKILL")))
            #expect(
                result.lines
                    == ["operon: killed by the kernel for using more than its memory of 32MiB"]
            )
        }
    }

    @Test(
        .enabled(
            if: Kernel.hasControllers,
            "the controllers cpu and memory are not those of version 2 here"
        )
    )
    func `a process gets no more processor time than it has`() async throws {
        try await Kernel.withRunner("cpu") { runner in
            let result = await runner.run(
                ProcessSupport.shell("timeout 1 sh -c 'while :; do :; done'; times"),
                attempt: Self.context([.cpus(0.1)])
            )

            // The line of the children: their time in user mode, then in the kernel.
            let user = try #require(result.lines.last?.split(separator: " ").first)
            let seconds = user.split(separator: "m").last?.dropLast().description
            #expect(try #require(seconds.flatMap(Double.init)) < 0.5)
        }
    }
}

private enum Kernel {
    /// Where this user may make control groups; `nil`: nowhere.
    static let mount: String? = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].first {
        ControlGroupFiles().isControlGroup($0) && mayMake(in: $0)
    }

    static let hasControllers: Bool = {
        guard let mount else { return false }
        let passed = ControlGroupFiles.words("\(mount)/cgroup.subtree_control")
        return ControlGroupFiles().controllers.allSatisfy { passed.contains($0[...]) }
    }()

    private static func mayMake(in mount: String) -> Bool {
        let probe = "\(mount)/operon-test-probe-\(getpid())"
        defer { rmdir(probe) }
        return mkdir(probe, 0o755) == 0
    }

    /// - Parameter controllers: Those that there must be. Without any, no limit is set.
    static func files(controllers: [String]) -> ControlGroupFiles {
        var files = ControlGroupFiles()
        let write = files.write
        files.controllers = controllers
        if controllers.isEmpty {
            files.write = { text, path throws(SystemError) in
                let file = path.split(separator: "/").last ?? ""
                if file.hasPrefix("cgroup.") { try write(text, path) }
            }
        }
        return files
    }

    /// - Parameters:
    ///   - name: Of the group in which the runner makes its groups.
    ///   - controllers: Those that there must be. Without any, no limit is set.
    static func withRunner(
        _ name: String,
        controllers: [String] = ControlGroupFiles().controllers,
        _ body: (ProcessRunner) async throws -> Void
    ) async throws {
        let base = "\(mount ?? "")/operon-test-\(getpid())-\(name)"
        defer { rmdir(base) }
        let groups = try ControlGroups(
            .folder(base),
            incarnation: Incarnation(rawValue: 1),
            files: files(controllers: controllers)
        )
        var configuration = ProcessRunner.Configuration(environment: ProcessSupport.environment)
        configuration.controlGroups = groups
        let runner = try ProcessRunner(configuration)
        do {
            try await body(runner)
            await runner.shutdown()
        } catch {
            await runner.shutdown()
            throw error
        }
        #expect(access(groups.path, F_OK) != 0)
    }
}
