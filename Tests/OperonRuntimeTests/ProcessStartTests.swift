import Glibc
import OperonModel
import OperonRuntime
import Testing

/// With what processes start, and why they do not.
@Suite(.timeLimit(.minutes(5)))
struct ProcessStartTests {
    private func run(
        _ command: CommandDescription,
        _ context: ProcessContext = ProcessSupport.context()
    ) async throws -> ProcessResult {
        try await ProcessSupport.withRunner { await $0.run(command, attempt: context) }
    }

    /// The message of a process that could not be started; `nil`: it started.
    private func spawnMessage(_ result: ProcessResult) -> String? {
        guard case .failed(.thrown("spawn", let message, _)) = result.attempt.end else {
            return nil
        }
        #expect(result.status == nil)
        return message
    }

    // MARK: - Arguments

    @Test func `arguments arrive byte for byte`() async throws {
        let values = [
            "; touch owned", "$(id)", "`id`", "a\nb", " ", "", "\"", "'", "--", "-rf", "*", "é🙂",
            "$HOME", "\\", "a\tb",
        ]

        let result = try await run(
            CommandDescription(arguments: ["/usr/bin/printf", "%s\\0"] + values)
        )

        #expect(result.attempt.end == .succeeded)
        #expect(result.text == values.map { $0 + "\0" }.joined())
    }

    @Test func `the program is called by the name it was given`() async throws {
        let result = try await run(CommandDescription(arguments: ["cat", "/proc/self/cmdline"]))

        #expect(result.text == "cat\0/proc/self/cmdline\0")
    }

    // MARK: - Environment

    @Test func `the environment is what is listed and nothing else`() async throws {
        var command = CommandDescription(arguments: ["/usr/bin/env", "-0"])
        command.environment = ["COLOUR": "a=b\nc", "HOME": "/over"]
        command.inheritEnvironment = ["PATH", "HOME", "ABSENT"]
        var context = ProcessSupport.context()
        context.environmentAdditions = ["ADDED": "1", "COLOUR": "wins"]

        let result = try await run(command, context)

        let variables = result.text.split(separator: "\0").map(String.init).sorted()
        #expect(
            variables.map { String($0.prefix { $0 != "=" }) } == [
                "ADDED", "COLOUR", "HOME", "OPERON_ATTEMPT", "OPERON_GRAPH", "OPERON_INPUTS",
                "OPERON_OPERATION", "OPERON_OUTPUT", "PATH",
            ]
        )
        #expect(variables.contains("ADDED=1"))
        #expect(variables.contains("COLOUR=wins"))
        #expect(variables.contains("HOME=/over"))
        #expect(variables.contains("OPERON_ATTEMPT=3"))
        #expect(variables.contains("OPERON_GRAPH=tests"))
        #expect(variables.contains("OPERON_OPERATION=probe"))
        #expect(variables.contains("PATH=/usr/local/bin:/usr/bin:/bin"))
    }

    @Test func `a worker's own variables do not leak`() async throws {
        let result = try await run(CommandDescription(arguments: ["env"]))

        #expect(result.attempt.end == .succeeded)
        #expect(!result.text.contains("canary"))
    }

    @Test(arguments: ["OPERON_BROKER", "OPERON_TOKEN", "OPERON_"])
    func `what the worker itself was given is not inherited`(name: String) async throws {
        var command = CommandDescription(arguments: ["true"])
        command.inheritEnvironment = [name]

        let message = spawnMessage(try await run(command))

        #expect(
            message
                == "“\(name)” cannot be inherited: variables named OPERON_… are the worker's own."
        )
    }

    @Test(arguments: ["", "A=B", "A\0B"])
    func `a variable whose name cannot be is refused`(name: String) async throws {
        var command = CommandDescription(arguments: ["true"])
        command.environment = [name: "x"]

        let message = spawnMessage(try await run(command))

        #expect(message == "“\(name)” cannot be the name of an environment variable.")
    }

    @Test func `NUL bytes are refused`() async throws {
        var command = CommandDescription(arguments: ["true"])
        command.environment = ["A": "x\0y"]

        #expect(
            spawnMessage(try await run(command))
                == "The value of the environment variable “A” contains a NUL byte."
        )
        #expect(
            spawnMessage(try await run(CommandDescription(arguments: ["true", "a\0"])))
                == "Argument 1 of the command contains a NUL byte."
        )
    }

    // MARK: - Everything else that is inherited

    @Test func `only the three standard descriptors are open`() async throws {
        // One of the test's own that is not closed on exec.
        let leaky = open("/dev/null", O_RDONLY)
        defer { close(leaky) }
        #expect(fcntl(leaky, F_GETFD) == 0)

        // `ls` itself opens the directory it lists, as 3.
        let result = try await run(CommandDescription(arguments: ["ls", "-l", "/proc/self/fd"]))

        let targets = result.lines.dropFirst().map { line in
            line.split(separator: " ").suffix(3).joined(separator: " ")
        }
        #expect(targets.count == 4)
        #expect(targets[0] == "0 -> /dev/null")
        #expect(targets[1].hasPrefix("1 -> pipe:"))
        #expect(targets[2].hasPrefix("2 -> pipe:"))
        #expect(targets[3].hasPrefix("3 -> /proc/"))
    }

    @Test func `no signal is blocked or ignored, even if the worker ignores some`() async throws {
        let before = signal(SIGPIPE, SIG_IGN)
        defer { signal(SIGPIPE, before) }

        let result = try await run(
            CommandDescription(arguments: ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"])
        )

        #expect(result.lines == ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"])
    }

    @Test func `a process leads a group of its own and dies with its parent`() async throws {
        let result = try await run(ProcessSupport.shell("echo $$; cut -d' ' -f5 /proc/$$/stat"))

        #expect(result.lines.count == 2)
        #expect(result.lines.first == result.lines.last)
        #expect(result.lines.first != String(getpgrp()))
    }

    @Test func `niceness is added to the worker's`() async throws {
        let result = try await run(
            CommandDescription(arguments: ["nice"]),
            ProcessSupport.context(niceness: 7)
        )

        errno = 0
        let own = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
        #expect(result.lines == [String(min(19, own + 7))])
    }

    // MARK: - Where

    @Test func `a process starts in its directory`() async throws {
        var command = CommandDescription(arguments: ["pwd"])
        command.directory = "/usr/bin"

        #expect(try await run(command).text == "/usr/bin\n")
    }

    @Test(arguments: [
        (
            "/no/such/place",
            "The directory “/no/such/place” does not exist on the worker's machine."
        ),
        ("/etc/passwd", "“/etc/passwd” is not a directory on the worker's machine."),
    ])
    func `a directory that cannot be entered is named`(
        directory: String,
        expected: String
    ) async throws {
        var command = CommandDescription(arguments: ["true"])
        command.directory = directory

        #expect(spawnMessage(try await run(command)) == expected)
    }

    // MARK: - The program

    @Test func `a program that is not in PATH is named with PATH`() async throws {
        var command = CommandDescription(arguments: ["no-such-program"])
        command.environment = ["PATH": "/usr/bin:/opt/none"]

        #expect(
            spawnMessage(try await run(command))
                == "The program “no-such-program” was not found in PATH (/usr/bin:/opt/none)."
        )
    }

    @Test(arguments: [
        (
            ["/no/such/program"],
            "The program “/no/such/program” does not exist on the worker's machine."
        ),
        (
            ["/etc/passwd"],
            "The program “/etc/passwd” may not be executed: it is not an executable file."
        ),
        (["/tmp"], "The program “/tmp” may not be executed: it is not an executable file."),
        ([""], "The command names no program: its first argument is empty."),
        ([], "The command has no arguments, not even a program."),
        (
            ["/bin/true", String(repeating: "x", count: 200_000)],
            "The arguments and the environment are too large for the system."
        ),
    ])
    func `a program that cannot be executed is named`(
        arguments: [String],
        expected: String
    ) async throws {
        let result = try await run(CommandDescription(arguments: arguments))

        #expect(spawnMessage(result) == expected)
    }

    @Test func `the program is looked up in the PATH that the command sets`() async throws {
        try await withScript("#!/bin/sh\necho found\n") { folder, name in
            var command = CommandDescription(arguments: [name])
            command.environment = ["PATH": "/nowhere:\(folder)"]

            let result = try await run(command)
            #expect(result.text == "found\n")
        }
    }

    @Test func `a relative program is looked up in the directory of the command`() async throws {
        try await withScript("#!/bin/sh\necho found\n") { folder, name in
            var command = CommandDescription(arguments: ["./\(name)"])
            command.directory = folder

            let result = try await run(command)
            #expect(result.text == "found\n")
        }
    }

    @Test func `a missing interpreter is told from a missing program`() async throws {
        try await withScript("#!/no/such/interpreter\n") { folder, name in
            let program = "\(folder)/\(name)"

            let result = try await run(CommandDescription(arguments: [program]))
            #expect(
                spawnMessage(result)
                    == "The interpreter that “\(program)” names in its first line does not exist."
            )
        }
    }

    @Test func `a script without a first line is refused with a hint`() async throws {
        try await withScript("echo hello\n") { folder, name in
            let program = "\(folder)/\(name)"

            let result = try await run(CommandDescription(arguments: [program]))
            #expect(
                spawnMessage(result)
                    == "“\(program)” is not a program: a script starts with a “#!” line."
            )
        }
    }

    /// An executable file in a directory of its own, for the time of `body`.
    private func withScript(
        _ text: String,
        _ body: (_ folder: String, _ name: String) async throws -> Void
    ) async throws {
        let folder = ProcessSupport.temporaryFolder()
        let path = "\(folder)/script"
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o700)
        _ = write(file, text, text.utf8.count)
        close(file)
        defer {
            unlink(path)
            rmdir(folder)
        }
        try await body(folder, "script")
    }
}
