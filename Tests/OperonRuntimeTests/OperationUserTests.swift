import COperonProcess
import Glibc
import OperonCore
import OperonFaultKit
import OperonModel
import OperonWire
import Testing

@testable import OperonRuntime

/// Commands that run as other users than their worker. Only root can start such a worker.
@Suite(.timeLimit(.minutes(5)), .enabled(if: geteuid() == 0)) struct OperationUserTests {
    private static let nobody: uid_t = 65_534

    /// A runner that runs commands of the queue “other” as the user “daemon”, and all others as the
    /// user “nobody”.
    private func withRunner<Value>(
        _ body: (ProcessRunner) async throws -> Value
    ) async throws -> Value {
        var configuration = ProcessRunner.Configuration(environment: ProcessSupport.environment)
        configuration.users = try OperationUsers(
            [(nil, "nobody"), ("other", "daemon")],
            serving: []
        )
        let runner = try ProcessRunner(configuration)
        let result: Result<Value, any Error>
        do { result = .success(try await body(runner)) } catch { result = .failure(error) }
        await runner.shutdown()
        #expect(access(runner.filesDirectory, F_OK) != 0, "its files were left")
        return try result.get()
    }

    @Test func `a command has the user, the groups and the variables of its queue`() async throws {
        try await withRunner { runner in
            let line = "id -un; id -gn; echo $USER $LOGNAME; grep ^Groups: /proc/self/status"
            let first = await runner.shell(line)
            #expect(first.lines.prefix(3) == ["nobody", "nogroup", "nobody nobody"], "\(first)")
            #expect(first.lines.last?.split(separator: "\t").dropFirst() == ["65534 "])
            var context = ProcessSupport.context()
            context.queue = "other"
            let second = await runner.run(ProcessSupport.shell(line), attempt: context)
            #expect(second.lines.prefix(2) == ["daemon", "daemon"], "\(second)")
        }
    }

    @Test func `a pipe in place of the event's file holds nobody up`() async throws {
        try await withRunner { runner in
            let place = await runner.shell("echo $OPERON_OUTPUT").text
            let folder = try #require(place.lastIndex(of: "/").map { place[..<$0] })
            for id in 0..<64 {
                #expect(mkfifo("\(folder)/\(id).event.json", 0o666) == 0)
            }
            var command = ProcessSupport.shell("true")
            command.environment[ProcessEnvironment.event] = "{}"
            let result = await runner.run(command, attempt: ProcessSupport.context())
            #expect(result.attempt.end != .succeeded, "\(result)")
            var other = ProcessSupport.context()
            other.queue = "other"
            let next = await runner.run(command, attempt: other)
            #expect(next.attempt.end == .succeeded, "\(next)")
        }
    }

    @Test func `a command of a queue without a user does not run as root`() async throws {
        var configuration = ProcessRunner.Configuration(environment: ProcessSupport.environment)
        configuration.users = try OperationUsers([("a", "nobody")], serving: ["a"])
        let runner = try ProcessRunner(configuration)
        var context = ProcessSupport.context()
        context.queue = "zzz"
        let result = await runner.run(ProcessSupport.shell("id -un"), attempt: context)
        await runner.shutdown()
        #expect(result.text == "", "\(result)")
        #expect("\(result.attempt.end)".contains("no user for the queue “zzz”"))
    }

    @Test func `a command gets no more rights, and leaves no core file`() async throws {
        try await withRunner { runner in
            let result = await runner.shell(
                "grep -E '^(NoNewPrivs|CapEff|CapPrm|CapInh|CapAmb)' /proc/self/status; "
                    + "grep '^Max core' /proc/self/limits"
            )
            let words = result.lines.map { $0.split { " \t".contains($0) }.map(String.init) }
            let sets = ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"]
            #expect(words.prefix(4) == sets.map { [$0, "0000000000000000"] }[...])
            #expect(words.dropFirst(4).first == ["NoNewPrivs:", "1"])
            #expect(words.last?.prefix(6) == ["Max", "core", "file", "size", "0", "0"])
        }
    }

    @Test func `without another user, new privileges are refused only if that is asked for`()
        async throws
    {
        for isAsked in [false, true] {
            var configuration = ProcessRunner.Configuration(environment: ProcessSupport.environment)
            configuration.hasNoNewPrivileges = isAsked
            let runner = try ProcessRunner(configuration)
            let result = await runner.shell("grep ^NoNewPrivs /proc/self/status")
            await runner.shutdown()
            // A test that is run without new privileges has none to give.
            let own = try readProc("self/status").contains("NoNewPrivs:\t1")
            #expect(result.text == "NoNewPrivs:\t\(isAsked || own ? 1 : 0)\n")
        }
    }

    @Test func `it gets its inputs and gives its output, which no other user can read`()
        async throws
    {
        try await withRunner { runner in
            let inputs = [NamedInput(name: "a", output: Payload(bytes: Array("[1]".utf8)))]
            let line = """
                cat $OPERON_INPUTS; stat -c '%U %a' $OPERON_INPUTS $(dirname $OPERON_OUTPUT)
                echo 7 > $OPERON_OUTPUT; chmod 600 $OPERON_OUTPUT; dirname $OPERON_OUTPUT
                """
            let result = await runner.run(
                ProcessSupport.shell(line),
                attempt: ProcessSupport.context(inputs: inputs)
            )
            #expect(result.attempt.output.bytes == Array("7\n".utf8))
            #expect(result.lines.prefix(3) == ["{\"a\":[1]}", "nobody 400", "nobody 700"])
            let folder = try #require(result.lines.last)
            var context = ProcessSupport.context()
            context.queue = "other"
            let other = await runner.run(
                ProcessSupport.shell(
                    "ls \(folder); echo $?; ls $(dirname \(folder)); echo $?; cat $OPERON_INPUTS"
                ),
                attempt: context
            )
            #expect(other.lines.filter { $0 == "2" }.count == 2, "\(other.text)")
            // Both streams of a command are in its log, in whatever order they are read.
            #expect(other.lines.contains("{}"), "\(other.text)")
        }
    }

    @Test func `inputs that were stored before are those of the user`() async throws {
        try await withRunner { runner in
            let stored = try #require(runner.makeInputs(ofQueue: "other"))
            let input = NamedInput(name: "a", output: Payload(bytes: Array("[2]".utf8)))
            let failure = await withCheckedContinuation { continuation in
                runner.store([input], in: stored) { continuation.resume(returning: $0) }
            }
            #expect(failure == nil)
            var context = ProcessSupport.context()
            context.queue = "other"
            let result = await runner.run(
                ProcessSupport.shell("cat $OPERON_INPUTS; stat -c %U $OPERON_INPUTS"),
                attempt: context,
                inputs: stored
            )
            #expect(result.lines == ["{\"a\":[2]}", "daemon"])
        }
    }

    @Test func `a link in place of an output shows nothing that the user cannot read`() async throws
    {
        let secret = ProcessSupport.temporaryFolder()
        defer {
            unlink("\(secret)/file")
            rmdir(secret)
        }
        let file = try #require(fopen("\(secret)/file", "w"))
        fputs("\"of root\"", file)
        fclose(file)
        chmod(secret, 0o711)
        chmod("\(secret)/file", 0o600)
        try await withRunner { runner in
            let link = await runner.shell("ln -s \(secret)/file $OPERON_OUTPUT")
            #expect(link.attempt.end != .succeeded)
            #expect(link.attempt.output == .empty)
            let copied = await runner.shell("cat \(secret)/file > $OPERON_OUTPUT; true")
            #expect(copied.attempt.output == .empty)
        }
    }

    @Test func `files that it produces are looked at and removed with its rights`() async throws {
        let folder = ProcessSupport.temporaryFolder()
        defer {
            unlink("\(folder)/file")
            rmdir(folder)
        }
        let file = try #require(fopen("\(folder)/file", "w"))
        fclose(file)
        chmod(folder, 0o700)
        try await withRunner { runner in
            var command = ProcessSupport.shell("true")
            command.produces = ["\(folder)/file"]
            let hidden = await runner.run(command, attempt: ProcessSupport.context())
            #expect(hidden.attempt.end != .succeeded, "it was looked at as root")

            chmod(folder, 0o711)
            command = ProcessSupport.shell("exit 3")
            command.produces = ["\(folder)/file"]
            command.skipsIfUpToDate = true
            var context = ProcessSupport.context()
            context.isRepeat = true
            _ = await runner.run(command, attempt: context)
            #expect(access("\(folder)/file", F_OK) == 0, "it was removed as root")
        }
    }

    @Test func `a stop ends its processes`() async throws {
        try await withRunner { runner in
            let stop = StopSignal()
            let log = LogWaiter()
            async let result = runner.run(
                ProcessSupport.shell("sleep 1000 & echo $$ $!; wait"),
                attempt: ProcessSupport.context(),
                stop: stop,
                onLog: log.handler
            )
            let numbers = await log.wait(for: "\n").split { " \n".contains($0) }.map { pid_t($0)! }
            let status = try readProc("\(numbers[0])/status")
            #expect(status.contains("Uid:\t65534"))
            stop.cancel()
            #expect(await result.attempt.end == .cancelled)
            for number in numbers { #expect(await eventually { !isAlive(number) }) }
        }
    }

    @Test func `a directory is entered with its rights`() async throws {
        let folder = ProcessSupport.temporaryFolder()
        defer { rmdir(folder) }
        try await withRunner { runner in
            var command = ProcessSupport.shell("pwd")
            command.directory = folder
            let result = await runner.run(command, attempt: ProcessSupport.context())
            guard case .failed(.thrown(_, let message, _)) = result.attempt.end else {
                Issue.record("\(result)")
                return
            }
            #expect(message == "The worker may not enter the directory “\(folder)”.")
        }
    }

    // MARK: - The socket

    @Test func `a process reaches the socket with its token, and not with that of another user`()
        async throws
    {
        try await withRunner { runner in
            let socket = try #require(runner.socket)
            socket.serve { _, _ in .added(1) }
            let attempt = AttemptID(epoch: Epoch(rawValue: 1), number: 1)
            for (user, answer) in [(Self.nobody, true), (1, false)] {
                let token = socket.begin(attempt, user: user)
                let request = OperationSocketFormat.Request(token: token, what: .read("x"))
                let bytes = try OperationSocketFormat.encode(request)
                let octal = bytes.map { "\\" + String($0, radix: 8) }.joined()
                let line = """
                    printf '\(octal)' > $OPERON_OUTPUT.request
                    python3 - <<'END'
                    import os, socket
                    s = socket.socket(socket.AF_UNIX)
                    s.connect("\(socket.path)")
                    s.sendall(open(os.environ["OPERON_OUTPUT"] + ".request", "rb").read())
                    print(s.recv(4096).hex())
                    END
                    rm $OPERON_OUTPUT.request
                    """
                let result = await runner.shell(line)
                let known = try OperationSocketFormat.encode(.added(1))
                let hex = known.map { byte in
                    (byte < 16 ? "0" : "") + String(byte, radix: 16)
                }.joined()
                #expect((result.text == hex + "\n") == answer, "\(result.text)")
                socket.end(attempt)
            }
        }
    }

    // MARK: - What is refused at the start

    @Test func `files that the user could not reach are refused at the start`() throws {
        let folder = ProcessSupport.temporaryFolder()
        var configuration = ProcessRunner.Configuration(
            environment: ProcessSupport.environment,
            temporaryDirectory: folder
        )
        configuration.users = try OperationUsers([(nil, "nobody")], serving: [])

        let error = #expect(throws: ProcessRunnerError.self) { try ProcessRunner(configuration) }

        let message = try #require(error?.message)
        #expect(message.contains("as nobody (set another TMPDIR): Permission denied"), "\(message)")
        operon_process_remove(folder)
    }

    @Test(
        arguments: [
            ([(nil, "no-such-user")], [], "There is no user “no-such-user”."),
            ([(nil, "root")], [], "operations do not run as root"),
            ([(nil, "nobody"), (nil, "daemon")], [], "two users for all queues"),
            ([("a", "nobody"), ("a", "daemon")], [], "two users for the queue “a”"),
            ([("a", "nobody")], [], "no user for other queues"),
            ([("a", "nobody")], ["a", "b"], "no user for the queue “b”"),
        ] as [([(String?, String)], [String], String)]
    )
    func `users that cannot be are refused`(
        names: [(String?, String)],
        queues: [String],
        why: String
    ) {
        let error = #expect(throws: OperationUserError.self) {
            try OperationUsers(names.map { (queue: $0.0, user: $0.1) }, serving: queues)
        }
        #expect(error?.message.contains(why) == true, "\(String(describing: error))")
    }

    @Test func `a worker that serves only queues with users needs no other user`() throws {
        let users = try OperationUsers([("a", "nobody")], serving: ["a"])
        #expect(users.user(ofQueue: "a")?.id == Self.nobody)
        #expect(users.user(ofQueue: "b") == nil)
        #expect(OperationUsers.none.isEmpty)
    }
}
