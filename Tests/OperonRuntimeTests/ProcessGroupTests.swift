import Glibc
import OperonModel
import OperonRuntime
import Testing

/// What a process leaves behind: nothing.
@Suite(.timeLimit(.minutes(5)))
struct ProcessGroupTests {
    @Test func `grandchildren in the group do not outlive the process`() async throws {
        try await ProcessSupport.withRunner { runner in
            // One ignores polite signals and has a child of its own.
            let result = await runner.shell(
                "sh -c 'trap \"\" TERM HUP; sleep 1000 & echo $!; echo $$ > $OPERON_OUTPUT; wait' "
                    + "& while [ ! -s $OPERON_OUTPUT ]; do sleep 0.01; done; echo $!"
            )

            #expect(result.attempt.end == .succeeded)
            let processes = result.lines.compactMap { pid_t($0) }
            #expect(processes.count == 2)
            for process in processes { #expect(await eventually { !isAlive(process) }) }
        }
    }

    @Test func `a grandchild that holds the output does not hold the result`() async throws {
        let (result, process) = try await ProcessSupport.withRunner { runner in
            // It has left the group when the shell ends: only the drain time ends the reading.
            let result = await runner.shell(
                "setsid sh -c 'echo $$ > $OPERON_OUTPUT; exec sleep 1000' & "
                    + "while [ ! -s $OPERON_OUTPUT ]; do sleep 0.01; done"
            )
            #expect(SystemClock.now() - result.attempt.endedAt >= .seconds(1))
            let printed = String(decoding: result.attempt.output.bytes.dropLast(), as: UTF8.self)
            let process = try #require(pid_t(printed))
            #expect(isAlive(process))
            return (result, process)
        }

        #expect(result.attempt.end == .succeeded)
        // It left the group, not the environment: the guard finds it when the runner goes.
        #expect(await eventually { !isAlive(process) })
    }

    @Test func `a grandchild that prints for ever does not hold the result`() async throws {
        // That there is a result is what is tested. The printer ends by itself, its reader gone.
        let result = try await ProcessSupport.withRunner { runner in
            await runner.shell(
                "setsid sh -c 'echo 1 > $OPERON_OUTPUT; exec yes' & "
                    + "while [ ! -s $OPERON_OUTPUT ]; do sleep 0.01; done"
            )
        }

        #expect(result.attempt.end == .succeeded)
        #expect(result.attempt.log.count == Limits().logBytes)
    }

    @Test func `a thousand runs leave no descriptor, no zombie and no file`() async {
        // In a process of its own, where nothing else opens anything.
        await #expect(processExitsWith: .success) {
            let runner = try ProcessRunner(
                ProcessRunner.Configuration(environment: ProcessSupport.environment)
            )
            await runSome(50, runner)
            let before = try entries("/proc/self/fd")
            let folder = try #require(await runner.shell("dirname $OPERON_OUTPUT").lines.first)

            await runSome(1_000, runner)

            try #require(try entries("/proc/self/fd") == before)
            try #require(try entries(folder) == ["no-inputs.json", "worker.sock"])
            // The guard is the only child, and it sleeps; it may be at what it was told last.
            let isAlone = await eventually { (try? children().map(\.state)) == ["S"] }
            try #require(isAlone)
            await runner.shutdown()
            try #require(try children().isEmpty)
            try #require(access(folder, F_OK) != 0)
        }
    }

    @Test func `fifty processes run at once`() async throws {
        try await ProcessSupport.withRunner { runner in
            // Each waits until all have said that they run.
            let folder = ProcessSupport.temporaryFolder()
            let line =
                "touch \(folder)/$OPERON_ATTEMPT; "
                + "while [ $(ls \(folder) | wc -l) -lt 50 ]; do sleep 0.05; done"
            await withTaskGroup(of: AttemptEnd.self) { group in
                for index in 0..<50 {
                    var context = ProcessSupport.context(timeout: .seconds(200))
                    context.ordinal = UInt32(index)
                    group.addTask { [context] in
                        await runner.run(ProcessSupport.shell(line), attempt: context).attempt.end
                    }
                }
                for await end in group { #expect(end == .succeeded) }
            }
            _ = await runner.shell("rm -r \(folder)")
        }
    }

    @Test func `whatever an operation started dies with a worker that is killed`() async throws {
        let file = "/tmp/operon-test-orphans-\(getpid())"
        unlink(file)
        await #expect(processExitsWith: .signal(SIGKILL)) {
            let file = "/tmp/operon-test-orphans-\(getppid())"
            let runner = try ProcessRunner(
                ProcessRunner.Configuration(environment: ProcessSupport.environment)
            )
            let log = LogWaiter()
            // The process, a child in its group, one that left the group and lost its parent.
            let line = """
                trap '' TERM HUP
                dirname $OPERON_OUTPUT > \(file)
                echo $$ >> \(file)
                sleep 1000 & echo $! >> \(file)
                (setsid sh -c 'echo $$ >> \(file); touch \(file).ready; exec sleep 1000' &)
                while [ ! -e \(file).ready ]; do sleep 0.01; done
                rm \(file).ready
                echo ready
                wait
                """
            async let result = runner.run(
                ProcessSupport.shell(line),
                attempt: ProcessSupport.context(),
                onLog: log.handler
            )
            _ = await log.wait(for: "ready")
            kill(getpid(), SIGKILL)
            _ = await result
        }

        let lines = try await ProcessSupport.withRunner { runner in
            await runner.shell("cat \(file); rm \(file)").lines
        }
        let folder = try #require(lines.first)
        let processes = lines.dropFirst().compactMap { pid_t($0) }
        #expect(processes.count == 3)
        for process in processes { #expect(await eventually { !isAlive(process) }) }
        #expect(await eventually { access(folder, F_OK) != 0 })
    }
}

/// Two at a time, as a worker with two slots.
private func runSome(_ count: Int, _ runner: ProcessRunner) async {
    let command = CommandDescription(arguments: ["/bin/true"])
    await withTaskGroup(of: Void.self) { group in
        for _ in 0..<2 {
            group.addTask {
                for _ in 0..<count / 2 {
                    let result = await runner.run(command, attempt: ProcessSupport.context())
                    #expect(result.attempt.end == .succeeded)
                }
            }
        }
    }
}

/// The names in a directory, sorted.
private func entries(_ path: String) throws -> [String] {
    let folder = try #require(opendir(path))
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
            pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
}

/// Children of this process that nobody has collected, and their states.
private func children() throws -> [(process: String, state: String)] {
    try entries("/proc").compactMap { process in
        guard pid_t(process) != nil, let status = try? readProc("\(process)/stat") else {
            return nil
        }
        guard let end = status.lastIndex(of: ")") else { return nil }
        let fields = status[end...].split(separator: " ")
        return fields[2] == "\(getpid())" ? (process, String(fields[1])) : nil
    }
}
