import Glibc
import OperonFaultKit
import OperonModel
import Testing

@testable import OperonRuntime

/// Commands with secrets, and where a worker finds their values.
@Suite(.timeLimit(.minutes(5))) struct SecretRunTests {
    private static let value = "canary-5f0c"

    /// A runner whose secrets are in a folder; `body` gets the path of the folder.
    private func withSecrets<Value>(
        _ secrets: [String: [UInt8]],
        change: (inout SecretPlaces, String) -> Void = { places, folder in
            places.directory = folder
        },
        _ body: (ProcessRunner, String) async throws -> Value
    ) async throws -> Value {
        let folder = ProcessSupport.temporaryFolder()
        for (name, bytes) in secrets { try Self.write(bytes, to: "\(folder)/\(name)") }
        var configuration = ProcessRunner.Configuration(environment: ProcessSupport.environment)
        change(&configuration.secrets, folder)
        configuration.workerName = "w1"
        let runner = try ProcessRunner(configuration)
        let result: Result<Value, any Error>
        do { result = .success(try await body(runner, folder)) } catch { result = .failure(error) }
        await runner.shutdown()
        for name in secrets.keys { unlink("\(folder)/\(name)") }
        rmdir(folder)
        return try result.get()
    }

    private static func write(_ bytes: [UInt8], to path: String, mode: mode_t = 0o600) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        try #require(file >= 0 && Glibc.write(file, bytes, bytes.count) == bytes.count)
        #expect(fchmod(file, mode) == 0 && close(file) == 0)
    }

    private func command(_ line: String, _ secrets: [String: String]) -> CommandDescription {
        var command = ProcessSupport.shell(line)
        command.secrets = secrets
        return command
    }

    /// Why an attempt failed for want of a secret.
    private func why(_ result: ProcessResult) -> String? {
        guard case .failed(.thrown(type: "secret", let message, _)) = result.attempt.end else {
            return nil
        }
        #expect(result.status == nil, "it was started")
        return message
    }

    @Test func `a process gets the value, and its output does not have it`() async throws {
        let secrets = ["db": Array("\(Self.value)\n".utf8), "short": Array("1234567".utf8)]
        try await withSecrets(secrets) { runner, _ in
            let result = await runner.run(
                command(
                    "test ${#P} = 11; echo $? $P-$Q; echo $P >&2",
                    ["P": "db", "Q": "short"]
                ),
                attempt: ProcessSupport.context()
            )
            #expect(result.attempt.end == .succeeded)
            #expect(Set(result.lines) == ["0 ***-1234567", "***"])
        }
    }

    @Test func `what is followed is masked, and its numbers fit what is sent`() async throws {
        try await withSecrets(["db": Array(Self.value.utf8)]) { runner, _ in
            let (pieces, continuation) = AsyncStream.makeStream(of: PrintedPiece.self)
            let line = """
                printf 'one can'; echo err $P >&2
                i=0; while [ $i -lt 300 ]; do printf '%s=%s.' $i $P; i=$((i+1)); done; printf canary
                """
            let result = await runner.run(
                command(line, ["P": "db"]),
                attempt: ProcessSupport.context()
            ) { continuation.yield($0) }
            continuation.finish()

            var positions: UInt64 = 0
            var offsets: [LogStream: UInt64] = [.output: 0, .error: 0]
            var texts: [LogStream: [UInt8]] = [.output: [], .error: []]
            var whole: [UInt8] = []
            for await piece in pieces {
                #expect(piece.position == positions)
                #expect(piece.offset == offsets[piece.stream])
                #expect(!piece.bytes.isEmpty)
                positions += UInt64(piece.bytes.count)
                offsets[piece.stream]! += UInt64(piece.bytes.count)
                texts[piece.stream]! += piece.bytes
                whole += piece.bytes
            }
            let expected = "one can" + (0..<300).map { "\($0)=***." }.joined() + "canary"
            #expect(texts[.output] == Array(expected.utf8))
            #expect(texts[.error] == Array("err ***\n".utf8))
            #expect(result.attempt.log.text == whole)
        }
    }

    @Test func `a process with secrets leaves no core file`() async throws {
        try await withSecrets(["db": Array(Self.value.utf8)]) { runner, _ in
            let line = "grep '^Max core' /proc/self/limits"
            let result = await runner.run(
                command(line, ["P": "db"]),
                attempt: ProcessSupport.context()
            )
            let words = result.text.split(separator: " ").prefix(6)
            #expect(words == ["Max", "core", "file", "size", "0", "0"], "\(result.text)")
        }
    }

    @Test func `a secret replaces an inherited variable, but no variable of Operon`() async throws {
        try await withSecrets(["db": Array(Self.value.utf8)]) { runner, _ in
            let result = await runner.run(
                command("echo $HOME $OPERON_GRAPH", ["HOME": "db", "OPERON_GRAPH": "db"]),
                attempt: ProcessSupport.context()
            )
            #expect(result.text == "*** tests\n")
        }
    }

    @Test(arguments: [
        ("absent", nil, "The worker “w1” has no secret “absent”."),
        ("empty", "\n", "it is empty"), ("nul", "a\0b", "it contains a NUL byte"),
        ("latin", nil, "it is not UTF-8"), ("long", nil, "it has more than 65536 bytes"),
    ])
    func `what cannot be a value fails the attempt, in words`(
        name: String,
        text: String?,
        message: String
    ) async throws {
        let value =
            switch name {
            case "absent": [UInt8]?.none
            case "latin": Array(Self.value.utf8) + [0xFF]
            case "long": [UInt8](repeating: 97, count: 65_537)
            default: Array((text ?? "").utf8)
            }
        try await withSecrets(value.map { [name: $0] } ?? [:]) { runner, _ in
            let result = await runner.run(
                command("echo started", ["P": name]),
                attempt: ProcessSupport.context()
            )
            let said = try #require(why(result))
            #expect(said.contains(message) && said.contains("“\(name)”") && said.contains("“w1”"))
            #expect(!said.contains(Self.value))
        }
    }

    @Test func `a value has 64 KiB at most, and loses one newline`() async throws {
        let value = [UInt8](repeating: 97, count: 65_535) + [10, 10]
        try await withSecrets(["a": value]) { runner, _ in
            let result = await runner.run(
                command("echo ${#P}", ["P": "a"]),
                attempt: ProcessSupport.context()
            )
            #expect(result.text == "65536\n")
        }
    }

    @Test func `a link, a folder, a pipe and a file that others may read are refused`() async throws
    {
        let secrets = ["real": Array(Self.value.utf8), "open": Array(Self.value.utf8)]
        try await withSecrets(secrets) { runner, folder in
            #expect(symlink("\(folder)/real", "\(folder)/link") == 0)
            #expect(mkdir("\(folder)/folder", 0o700) == 0)
            #expect(mkfifo("\(folder)/pipe", 0o600) == 0)
            #expect(chmod("\(folder)/open", 0o604) == 0)
            for (name, part) in [
                ("link", "symbolic link"), ("folder", "it is not a file"),
                ("pipe", "it is not a file"), ("open", "other users may use its file (mode 604)"),
            ] {
                let result = await runner.run(
                    command("echo started", ["P": name]),
                    attempt: ProcessSupport.context()
                )
                #expect(why(result)?.contains(part) == true, "\(name): \(result)")
            }
            for name in ["link", "pipe"] { unlink("\(folder)/\(name)") }
            rmdir("\(folder)/folder")
        }
    }

    @Test func `credentials have what the folder has not`() async throws {
        let other = ProcessSupport.temporaryFolder()
        try Self.write(Array("from-folder".utf8), to: "\(other)/a")
        defer {
            unlink("\(other)/a")
            rmdir(other)
        }
        let secrets = ["a": Array("from-credentials".utf8), "b": Array("credential".utf8)]
        try await withSecrets(secrets) { places, folder in
            (places.directory, places.credentials) = (other, folder)
        } _: { runner, _ in
            let line = "test $P = from-folder && test $Q = credential"
            let result = await runner.run(
                command(line, ["P": "a", "Q": "b"]),
                attempt: ProcessSupport.context()
            )
            #expect(result.attempt.end == .succeeded)
        }
    }

    // MARK: - A program

    /// Runs a command whose secrets come from a program with this line.
    private func run(
        _ line: String,
        of name: String = "db",
        timeout: Duration = .seconds(10),
        report: @escaping @Sendable (String) -> Void = { _ in },
        stop: StopSignal = StopSignal()
    ) async throws -> ProcessResult {
        let folder = ProcessSupport.temporaryFolder()
        let program = "\(folder)/program"
        try Self.write(Array("#!/bin/sh\n\(line)\n".utf8), to: program, mode: 0o700)
        defer {
            unlink(program)
            rmdir(folder)
        }
        var configuration = ProcessRunner.Configuration(environment: ProcessSupport.environment)
        configuration.secrets.program = program
        configuration.secrets.timeout = timeout
        configuration.workerName = "w1"
        configuration.report = report
        try configuration.secrets.check()
        let runner = try ProcessRunner(configuration)
        let result = await runner.run(
            command("echo ${#P} $P", ["P": name]),
            attempt: ProcessSupport.context(),
            stop: stop
        )
        await runner.shutdown()
        return result
    }

    @Test func `a program is asked by name, and its errors are logged`() async throws {
        let log = LogWaiter()
        let said = log.handler
        let result = try await run("echo asked for $1 >&2; echo value-of-$1") { line in
            said(PrintedPiece(stream: .error, offset: 0, position: 0, bytes: Array(line.utf8)))
        }
        #expect(result.text == "11 ***\n")
        let line = await log.wait(for: "asked")
        #expect(line == "the program for secrets says of “db”: asked for db")
    }

    @Test func `a program gets no variable of its worker but the usual ones`() async throws {
        let line = #"test -z "$SECRET" && test -n "$PATH" && test $# = 1 && echo is-all-right"#
        #expect(try await run(line).text == "12 ***\n")
    }

    @Test(arguments: [
        ("echo canary-5f0c; exit 3", "the program for secrets ended with exit code 3"),
        ("kill -9 $$", "the program for secrets was ended by SIGKILL"),
        ("true", "it is empty"),
        ("head -c 70000 /dev/zero | tr '\\0' a", "it has more than 65536 bytes"),
    ])
    func `a program that gives no value fails the attempt`(line: String, part: String) async throws
    {
        let result = try await run(line)
        let said = try #require(why(result))
        #expect(said.contains(part) && said.contains("“db”"), "\(said)")
        #expect(!said.contains(Self.value))
    }

    @Test func `a program that takes too long is killed`() async throws {
        let line = "trap '' TERM; echo canary-5f0c; while :; do sleep 0.05; done"
        let result = try await run(line, timeout: .milliseconds(100))
        #expect(why(result)?.contains("the program for secrets took more than") == true)
    }

    @Test func `a stop ends the program`() async throws {
        let stop = StopSignal()
        let gate = ProcessSupport.temporaryFolder()
        defer { rmdir(gate) }
        async let result = run("rmdir \(gate); exec sleep 1000", stop: stop)
        #expect(await eventually { access(gate, F_OK) != 0 })
        stop.cancel()
        #expect(try await result.attempt.end == .cancelled)
    }

    @Test func `a program that cannot be executed is refused at the start`() {
        var places = SecretPlaces()
        for program in ["/none/at/all", "/etc/passwd", "relative"] {
            places.program = program
            #expect(throws: SecretPlaceError.self, "\(program)") { try places.check() }
        }
    }

    @Test func `a credential of the worker is no secret`() async throws {
        let secrets = ["operon-broker": Array("amqps://worker:password@broker".utf8)]
        try await withSecrets(secrets) { places, folder in
            places.credentials = folder
        } _: { runner, _ in
            let result = await runner.run(
                command("echo $P", ["P": "operon-broker"]),
                attempt: ProcessSupport.context()
            )
            #expect(why(result)?.contains("has no secret “operon-broker”") == true)
        }
    }

    @Test func `a runner without secrets fails the attempt`() async throws {
        try await ProcessSupport.withRunner { runner in
            let result = await runner.run(
                command("echo started", ["P": "db"]),
                attempt: ProcessSupport.context()
            )
            #expect(why(result)?.contains("has no secret “db”") == true)
        }
    }

    @Test func `a folder that others may use is refused at the start`() throws {
        let folder = ProcessSupport.temporaryFolder()
        defer { rmdir(folder) }
        var places = SecretPlaces()
        places.directory = folder
        try places.check()
        for mode: mode_t in [0o701, 0o704, 0o720, 0o777] {
            chmod(folder, mode)
            let error = #expect(throws: SecretPlaceError.self) { try places.check() }
            #expect(error?.message.contains("Other users may use the secrets") == true)
        }
        places.directory = "\(folder)/none"
        #expect(throws: SecretPlaceError.self) { try places.check() }
    }
}
