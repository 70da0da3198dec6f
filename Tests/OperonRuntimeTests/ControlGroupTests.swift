import COperonProcess
import Glibc
import NIOConcurrencyHelpers
import OperonModel
import Testing

@testable import OperonRuntime

/// The control groups of a worker, in a folder that stands for the kernel's file system.
@Suite(.timeLimit(.minutes(5))) struct ControlGroupTests {
    private static let amounts: ResourceAmounts = [.cpus(0.5), .memory(bytes: 64 << 20)]

    private static func context(_ enforced: ResourceAmounts = amounts) -> ProcessContext {
        var context = ProcessSupport.context()
        context.enforced = enforced
        return context
    }

    // MARK: - The worker's own group

    @Test func `a worker leaves the group it was started in, with those that started it`() throws {
        try StandIn.with(group: "service") { standIn in
            standIn.set("\(getpid())\n\(getppid())\n", "service/cgroup.procs")

            let groups = try standIn.groups(.own)
            defer { groups.close() }

            let own = "service/operon-\(StandIn.incarnation)"
            #expect(groups.path == standIn.path(own))
            #expect(
                standIn.writes == [
                    "service/operon.worker/cgroup.procs 0",
                    "service/operon.worker/cgroup.procs \(getppid())",
                    "service/cgroup.subtree_control +cpu +memory",
                    "\(own)/cgroup.subtree_control +cpu +memory",
                ]
            )
        }
    }

    @Test func `a worker that is started again finds its base above the group it is in`() throws {
        try StandIn.with(group: "service/operon.worker") { standIn in
            let groups = try standIn.groups(.own)
            defer { groups.close() }

            #expect(groups.path == standIn.path("service/operon-\(StandIn.incarnation)"))
            #expect(!standIn.writes.contains { $0.contains("cgroup.procs") })
        }
    }

    @Test func `a group that somebody else called worker is the base, and not the one around it`()
        throws
    {
        try StandIn.with(group: "service/worker") { standIn in
            let groups = try standIn.groups(.own)
            defer { groups.close() }

            #expect(groups.path == standIn.path("service/worker/operon-\(StandIn.incarnation)"))
            #expect(!standIn.exists("service/operon.worker"))
        }
    }

    @Test func `nobody is moved out of a group in which others would stay`() throws {
        try StandIn.with(group: "service") { standIn in
            let base = standIn.path("service")
            let end = "is in the group \(base), too: start the worker in a group of its own."
            for (other, who) in [
                ("999999999", "process 999999999"), ("0", "a process of another PID namespace"),
            ] {
                standIn.set("\(getpid())\n\(getppid())\n\(other)\n", "service/cgroup.procs")

                #expect(standIn.refusal(.own) == "Control groups cannot be used: \(who) \(end)")
                #expect(standIn.writes.isEmpty)
                #expect(!standIn.exists("service/operon.worker"))
            }
        }
    }

    @Test func `a group is made in a control group only`() throws {
        try StandIn.with(group: "service") { standIn in
            let outside = "\(standIn.root)/typo"
            #expect(
                standIn.refusal(.folder(outside))
                    == "Control groups cannot be used: \(outside) does not exist, and cannot be "
                    + "made: \(standIn.root) is no control group of version 2."
            )
            #expect(access(outside, F_OK) != 0)

            let groups = try standIn.groups(.folder("\(standIn.path("service/below"))/"))
            groups.close()

            #expect(standIn.exists("service/below/cgroup.subtree_control"))
        }
    }

    @Test func `a worker whose processes cannot enter its groups says so at the start`() throws {
        let closed: @Sendable (String) -> Void = { group in
            if group.hasSuffix("/probe") { unlink("\(group)/cgroup.procs") }
        }
        let standIn = StandIn(group: "service", afterMake: closed)
        defer { operon_process_remove(standIn.root) }

        let end = "/probe/cgroup.procs: No such file or directory."
        #expect(standIn.refusal(.own)?.hasSuffix(end) == true)
        #expect(!standIn.exists("service/operon-\(StandIn.incarnation)"))
    }

    @Test func `a worker that may not do it says what is missing`() throws {
        try StandIn.with(group: "service") { standIn in
            standIn.set("cpuset memory pids", "service/cgroup.controllers")
            #expect(
                standIn.refusal(.own)
                    == "Control groups cannot be used: the group \(standIn.path("service")) was "
                    + "not given the controllers cpu."
            )
            standIn.set("cpu memory", "service/cgroup.controllers")
            var files = standIn.files
            files.isControlGroup = { _ in false }
            #expect(
                standIn.refusal(.own, files)
                    == "Control groups cannot be used: version 2 is mounted neither at "
                    + "/sys/fs/cgroup nor at /sys/fs/cgroup/unified."
            )
            #expect(
                standIn.refusal(.folder(standIn.path("service")), files)
                    == "Control groups cannot be used: \(standIn.path("service")) is no control "
                    + "group of version 2."
            )
            let write = standIn.files.write
            files = standIn.files
            files.write = { text, path throws(SystemError) in
                guard !path.hasSuffix("service/cgroup.subtree_control") else {
                    throw SystemError(doing: "writing “\(text)” to \(path)", code: EBUSY)
                }
                try write(text, path)
            }
            #expect(
                standIn.refusal(.own, files)?.hasSuffix(
                    "/service/cgroup.subtree_control: Device or resource busy; there are other "
                        + "processes in the group: start the worker in one of its own."
                ) == true
            )
        }
    }

    @Test func `the groups of dead workers are removed, and no others`() throws {
        try StandIn.with(group: "service") { standIn in
            let (dead, live) = (
                "service/operon-00000000000000aa", "service/operon-00000000000000bb"
            )
            let others = ["service/operon-x", "service/other"]
            for group in [dead, "\(dead)/1", "\(dead)/1/nested", live, "\(live)/7"] + others {
                try standIn.files.make(standIn.path(group))
            }
            let lock = open(standIn.path(live), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            defer { close(lock) }
            #expect(flock(lock, LOCK_EX) == 0)

            let groups = try standIn.groups(.own)
            defer { groups.close() }

            #expect(!standIn.exists(dead))
            #expect(standIn.writes.contains("\(dead)/cgroup.kill 1"))
            for group in [live, "\(live)/7"] + others { #expect(standIn.exists(group)) }
            #expect(groups.leftBehind.isEmpty)
            // Nobody takes this one for dead, as long as it lives.
            let later = try standIn.groups(.own, Incarnation(rawValue: 2))
            defer { later.close() }
            #expect(access(groups.path, F_OK) == 0)
        }
    }

    // MARK: - The group of an attempt

    @Test func `a process starts in a group with its limits, which is removed after it`()
        async throws
    {
        try await StandIn.withRunner { runner, group in
            let files = [
                "cpu.max", "memory.max", "memory.swap.max", "memory.oom.group", "cgroup.procs",
            ]
            let line = files.map { "cat \(group)/1/\($0); echo" }.joined(separator: "; ")
            let result = await runner.run(
                ProcessSupport.shell(line),
                attempt: Self.context()
            )

            #expect(result.attempt.end == .succeeded)
            #expect(result.lines == ["50000 100000", "67108864", "0", "1", "0"])
            #expect(access("\(group)/1", F_OK) != 0)
            #expect(access(group, F_OK) == 0)
        }
    }

    @Test func `an operation that enforces nothing stays in the group of its worker`() async throws
    {
        try await StandIn.withRunner { runner, group in
            let result = await runner.shell("test ! -e \(group)/1")

            #expect(result.attempt.end == .succeeded)
        }
    }

    @Test(arguments: [
        (1, "1000 1000000"), (9, "9000 1000000"), (10, "1000 100000"), (250, "25000 100000"),
        (1_500, "150000 100000"), (ResourceAmount.amountMax, "879609302200 100000"),
    ])
    func `processors become a quota that the kernel takes`(thousandths: Int, text: String) {
        #expect(ControlGroupLimits.quota(thousandths) == text)
    }

    @Test(arguments: [
        ("oom 1", "operon: killed by the kernel for using more than its memory of 64MiB"),
        (
            "oom 0",
            "operon: killed by the kernel: the machine, or a control group around the worker, had "
                + "no memory left"
        ),
    ])
    func `the log tells when the kernel killed it for want of memory`(
        event: String,
        note: String
    ) async throws {
        try await StandIn.withRunner { runner, group in
            let result = await runner.run(
                ProcessSupport.shell(
                    "printf '\(event)\\noom_kill 1\\n' > \(group)/1/memory.events; kill -KILL $$"
                ),
                attempt: Self.context()
            )

            #expect(result.attempt.end == .failed(.signal(name: "SIGKILL")))
            #expect(result.lines == [note])
        }
    }

    @Test func `a command that cannot be enforced fails, and is not started`() async throws {
        try await ProcessSupport.withRunner { runner in
            let result = await runner.run(ProcessSupport.shell("echo ran"), attempt: Self.context())

            #expect(result.status == nil)
            #expect(
                result.attempt.end
                    == .failed(
                        .thrown(
                            type: "spawn",
                            message: "Its resources are to be enforced, and the worker makes no "
                                + "control groups.",
                            payload: []
                        )
                    )
            )
        }
        let broken: @Sendable (String) -> Void = { group in
            // A group without the file that limits its processors.
            unlink("\(group)/cpu.max")
        }
        try await StandIn.withRunner(afterMake: broken) { runner, group in
            let result = await runner.run(ProcessSupport.shell("echo ran"), attempt: Self.context())

            #expect(result.status == nil)
            guard case .failed(.thrown(_, let message, _)) = result.attempt.end else {
                Issue.record("\(result.attempt.end)")
                return
            }
            #expect(message.hasSuffix("/1/cpu.max: No such file or directory."))
            #expect(access("\(group)/1", F_OK) != 0)
        }
    }

    @Test func `a group that nobody can look at counts as left`() async throws {
        let blind: @Sendable (String) -> Void = { group in
            guard group.hasSuffix("/1") else { return }
            unlink("\(group)/cgroup.events")
            // It can be opened, and not read.
            mkdir("\(group)/cgroup.events", 0o755)
        }
        try await StandIn.withGroups(afterMake: blind) { standIn, groups in
            _ = try groups.make(ControlGroupLimits(Self.amounts), of: 1)

            #expect(await groups.end(1).isLeft)
            // There was none.
            #expect(await !groups.end(2).isLeft)
        }
    }

    @Test func `a group that cannot be killed at first is killed when that is possible`()
        async throws
    {
        let refusals = NIOLockedValueBox(3)
        let change: (inout ControlGroupFiles) -> Void = { files in
            let write = files.write
            files.write = { text, path throws(SystemError) in
                if path.hasSuffix("/1/cgroup.kill") {
                    let isRefused = refusals.withLockedValue { left in
                        left -= 1
                        return left >= 0
                    }
                    if isRefused { throw SystemError(doing: "opening \(path)", code: EMFILE) }
                    let events = "\(path.dropLast("kill".count))events"
                    try write("populated 0\nfrozen 0\n", events)
                }
                try write(text, path)
            }
        }
        try await StandIn.withGroups(change: change) { standIn, groups in
            _ = try groups.make(ControlGroupLimits(Self.amounts), of: 1)
            let group = "\(groups.path.dropFirst(standIn.path("").count))/1"
            standIn.set("populated 1\nfrozen 0\n", "\(group)/cgroup.events")

            #expect(await !groups.end(1).isLeft)
            #expect(standIn.writes.contains("\(group)/cgroup.kill 1"))
        }
    }

    @Test(arguments: [
        (OPERON_PROCESS_CLONE, true, true), (OPERON_PROCESS_GROUP, true, true),
        (OPERON_PROCESS_EXECUTE, true, false), (OPERON_PROCESS_EXECUTE, false, true),
    ])
    func `memory is short by the command's own limit only once the limit is there`(
        step: operon_process_step,
        isLimited: Bool,
        isShort: Bool
    ) {
        var spawned = operon_process_spawned()
        (spawned.step, spawned.error) = (step, ENOMEM)

        #expect((ProcessSpawn.shortage(spawned, isLimited: isLimited) != nil) == isShort)
    }

    @Test func `a child that cannot enter its group does not become the program`() {
        var request = operon_process_request()
        // Nothing can be written to it.
        let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        (request.input, request.output, request.error) = (file, file, file)
        request.enters_control_group = 1
        request.control_group = file

        let spawned = operon_process_spawn(&request)
        if spawned.descriptor >= 0 { close(spawned.descriptor) }

        #expect(spawned.process == 0)
        #expect(spawned.step == OPERON_PROCESS_GROUP)
        #expect(spawned.error == EBADF)
    }

    @Test func `the groups of a worker that is killed are removed at once`() async throws {
        let root = "/tmp/operon-test-groups-\(getpid())"
        await #expect(processExitsWith: .signal(SIGKILL)) {
            let standIn = StandIn(root: "/tmp/operon-test-groups-\(getppid())", group: "service")
            var configuration = ProcessRunner.Configuration(environment: ProcessSupport.environment)
            configuration.controlGroups = try standIn.groups(.own)
            let runner = try ProcessRunner(configuration)
            let log = LogWaiter()
            async let result = runner.run(
                ProcessSupport.shell("echo ready; sleep 1000"),
                attempt: ControlGroupTests.context(),
                onLog: log.handler
            )
            _ = await log.wait(for: "ready")
            try #require(standIn.exists("service/operon-\(StandIn.incarnation)/1/cpu.max"))
            kill(getpid(), SIGKILL)
            _ = await result
        }

        let own = "\(root)/sys/fs/cgroup/service/operon-\(StandIn.incarnation)"
        #expect(await eventually { access(own, F_OK) != 0 })
        #expect(access("\(root)/sys/fs/cgroup/service/operon.worker", F_OK) == 0)
        operon_process_remove(root)
    }
}

/// A folder in the place of the kernel's file system, and what was written to it.
private final class StandIn: Sendable {
    static let incarnation = Incarnation(rawValue: 1)

    let root: String
    let files: ControlGroupFiles
    private let log: NIOLockedValueBox<[String]>

    /// - Parameter group: The group that this process is in.
    init(
        root: String = ProcessSupport.temporaryFolder(),
        group: String,
        afterMake: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        let log = NIOLockedValueBox<[String]>([])
        let mount = "\(root)/sys/fs/cgroup/"
        var files = ControlGroupFiles()
        let write = files.write
        files.root = root
        files.isControlGroup = { $0.hasPrefix(mount.dropLast()) && access($0, F_OK) == 0 }
        files.make = { path throws(SystemError) in
            mkdir(path, 0o755)
            for (name, text) in StandIn.contents where access("\(path)/\(name)", F_OK) != 0 {
                StandIn.write(text, "\(path)/\(name)")
            }
            afterMake(path)
        }
        files.write = { text, path throws(SystemError) in
            try write(text, path)
            log.withLockedValue { $0.append("\(path.dropFirst(mount.count)) \(text)") }
        }
        (self.root, self.files, self.log) = (root, files, log)
        for folder in ["", "/proc", "/proc/self", "/sys", "/sys/fs", "/sys/fs/cgroup"] {
            mkdir(root + folder, 0o755)
        }
        Self.write("3:cpu:/elsewhere\n0::/\(group)\n", "\(root)/proc/self/cgroup")
        var path = mount
        for part in group.split(separator: "/") {
            path += "/\(part)"
            try? files.make(path)
        }
    }

    /// What the kernel has in a new group.
    private static let contents = [
        ("cgroup.controllers", "cpu memory\n"), ("cgroup.events", "populated 0\nfrozen 0\n"),
        ("cgroup.kill", ""), ("cgroup.procs", ""), ("cgroup.subtree_control", ""),
        ("cpu.max", "max 100000\n"), ("memory.events", "low 0\noom 0\noom_kill 0\n"),
        ("memory.max", "max\n"), ("memory.oom.group", "0\n"), ("memory.swap.max", "max\n"),
    ]

    private static func write(_ text: String, _ path: String) {
        guard let file = fopen(path, "w") else { return }
        fputs(text, file)
        fclose(file)
    }

    static func with(group: String, _ body: (StandIn) throws -> Void) throws {
        let standIn = StandIn(group: group)
        defer { operon_process_remove(standIn.root) }
        try body(standIn)
    }

    /// The groups of a worker.
    static func withGroups(
        afterMake: @escaping @Sendable (String) -> Void = { _ in },
        change: (inout ControlGroupFiles) -> Void = { _ in },
        _ body: (StandIn, ControlGroups) async throws -> Void
    ) async throws {
        let standIn = StandIn(group: "service", afterMake: afterMake)
        defer { operon_process_remove(standIn.root) }
        var files = standIn.files
        change(&files)
        let groups = try ControlGroups(.own, incarnation: incarnation, files: files)
        defer { groups.close() }
        try await body(standIn, groups)
    }

    /// A runner that makes groups, and the folder of its own one, which goes with it.
    static func withRunner(
        afterMake: @escaping @Sendable (String) -> Void = { _ in },
        _ body: (ProcessRunner, String) async throws -> Void
    ) async throws {
        let isAttempt: @Sendable (String) -> Bool = { $0.contains("/operon-\(incarnation)/") }
        let standIn = StandIn(group: "service") { if isAttempt($0) { afterMake($0) } }
        defer { operon_process_remove(standIn.root) }
        let groups = try standIn.groups(.own)
        var configuration = ProcessRunner.Configuration(environment: ProcessSupport.environment)
        configuration.controlGroups = groups
        let runner = try ProcessRunner(configuration)
        do {
            try await body(runner, groups.path)
            await runner.shutdown()
            #expect(access(groups.path, F_OK) != 0)
        } catch {
            await runner.shutdown()
            throw error
        }
    }

    func groups(
        _ place: ControlGroupPlace,
        _ incarnation: Incarnation = StandIn.incarnation
    ) throws -> ControlGroups {
        try ControlGroups(place, incarnation: incarnation, files: files)
    }

    func refusal(_ place: ControlGroupPlace, _ files: ControlGroupFiles? = nil) -> String? {
        let incarnation = StandIn.incarnation
        return #expect(throws: ControlGroupError.self) {
            try ControlGroups(place, incarnation: incarnation, files: files ?? self.files)
        }?.message
    }

    func path(_ group: String) -> String { "\(root)/sys/fs/cgroup/\(group)" }

    func exists(_ group: String) -> Bool { access(path(group), F_OK) == 0 }

    func set(_ text: String, _ file: String) { Self.write(text, path(file)) }

    var writes: [String] { log.withLockedValue { $0 } }
}
