import COperonProcess
import Glibc
import OperonModel
import OperonWire
import Testing

@testable import OperonRuntime

/// What processes are given and give through files.
@Suite(.timeLimit(.minutes(5)))
struct ProcessFileTests {
    private func run(
        _ line: String,
        inputs: [NamedInput] = [],
        limits: Limits = Limits()
    ) async throws -> AttemptResult {
        try await ProcessSupport.withRunner { runner in
            await runner.run(
                ProcessSupport.shell(line),
                attempt: ProcessSupport.context(inputs: inputs, limits: limits)
            ).attempt
        }
    }

    // MARK: - The folder of all

    @Test func `whoever cleans the temporary directory passes over the folder of a worker`()
        async throws
    {
        try await ProcessSupport.withRunner { runner in
            let folder = try #require(await runner.shell("dirname $OPERON_OUTPUT").lines.first)

            // As systemd-tmpfiles looks whether a directory is in use (tmpfiles.d(5), “Age”).
            let number = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            defer { close(number) }
            #expect(flock(number, LOCK_EX | LOCK_NB) == -1)
            #expect(errno == EWOULDBLOCK)
        }
    }

    @Test(arguments: ["no-inputs.json", "worker.sock", ""])
    func `what somebody removed of that folder is made again`(name: String) async throws {
        try await ProcessSupport.withRunner { runner in
            let folder = try #require(await runner.shell("dirname $OPERON_OUTPUT").lines.first)
            operon_process_remove(name.isEmpty ? folder : "\(folder)/\(name)")

            let without = await runner.shell("cat $OPERON_INPUTS; echo 7 > $OPERON_OUTPUT")
            operon_process_remove(name.isEmpty ? folder : "\(folder)/\(name)")
            let inputs = [NamedInput(name: "a", output: Payload(bytes: Array("1".utf8)))]
            let with = await runner.run(
                ProcessSupport.shell("cat $OPERON_INPUTS; stat -c %a $(dirname $OPERON_INPUTS)"),
                attempt: ProcessSupport.context(inputs: inputs)
            )

            #expect(without.text == "{}\n")
            #expect(without.attempt.output.bytes == Array("7\n".utf8))
            #expect(with.text == "{\"a\":1}\n700\n")
            #expect(access("\(folder)/worker.sock", F_OK) == 0)
        }
    }

    @Test func `a socket that was removed and made again answers`() async throws {
        let folder = ProcessSupport.temporaryFolder()
        let socket = try OperationSocket(in: folder)
        socket.serve { _, _ in .ended }
        unlink(socket.path)

        try socket.repair()

        let variables = ["OPERON_SOCKET": socket.path, "OPERON_TOKEN": "nobody's"]
        let client = try #require(OperationSocketClient(environment: variables))
        #expect(try client.ask(.read("x")) == .unknownToken)
        socket.close()
        #expect(await eventually { access(socket.path, F_OK) != 0 })
        rmdir(folder)
    }

    @Test func `a folder that somebody else made in its place is not used`() async throws {
        try await ProcessSupport.withRunner { runner in
            let folder = try #require(await runner.shell("dirname $OPERON_OUTPUT").lines.first)
            operon_process_remove(folder)
            // Others may write there.
            #expect(mkdir(folder, 0o700) == 0 && chmod(folder, 0o777) == 0)

            let result = await runner.shell("true")

            guard case .failed(.thrown("spawn", let message, _)) = result.attempt.end else {
                Issue.record("it ended as \(result.attempt.end)")
                return
            }
            #expect(message.contains("\(folder), which others may use as well"))
        }
    }

    // MARK: - Inputs

    @Test func `the inputs are one JSON object in the order of the dependencies`() async throws {
        let inputs = [
            NamedInput(name: "b", output: Payload(bytes: Array(#"{"n": [1, 2]}"#.utf8))),
            NamedInput(name: "none", output: nil),
            NamedInput(name: "empty", output: .empty),
            NamedInput(
                name: "raw",
                output: Payload(contentType: "application/octet-stream", bytes: [0, 255, 1, 254])
            ),
            NamedInput(name: "a \"quoted\"\\\n\u{1} é", output: Payload(bytes: Array("7".utf8))),
        ]

        let result = try await run("cat $OPERON_INPUTS", inputs: inputs)

        let expected =
            #"{"b":{"n": [1, 2]},"none":null,"empty":null,"raw":"AP8B/g==","#
            + #""a \"quoted\"\\\n\u0001 é":7}"# + "\n"
        #expect(String(decoding: result.log.tail, as: UTF8.self) == expected)
        #expect(throws: Never.self) { try JSONCheck.check(result.log.tail) }
    }

    @Test func `without dependencies the object is empty`() async throws {
        let result = try await run("cat $OPERON_INPUTS")

        #expect(String(decoding: result.log.tail, as: UTF8.self) == "{}\n")
    }

    @Test func `inputs larger than a write arrive whole`() async throws {
        let text = [UInt8](repeating: UInt8(ascii: "x"), count: 1_000_000)
        let json = [UInt8(ascii: "\"")] + text + [UInt8(ascii: "\"")]
        let inputs = [
            NamedInput(name: "json", output: Payload(bytes: json)),
            NamedInput(name: "raw", output: Payload(contentType: "text/plain", bytes: text)),
            NamedInput(name: "json2", output: Payload(bytes: json)),
        ]

        let result = try await run(
            "wc -c < $OPERON_INPUTS; md5sum < $OPERON_INPUTS",
            inputs: inputs
        )

        // Base64 of n bytes is 4 × ⌈n / 3⌉.
        let base64 = (1_000_000 + 2) / 3 * 4
        let bytes = 2 * json.count + base64 + 2 + #"{"json":,"raw":,"json2":}"#.utf8.count + 1
        let lines = String(decoding: result.log.tail, as: UTF8.self).split(separator: "\n")
        #expect(lines.first == "\(bytes)")
    }

    @Test func `inputs at their limit are given, beyond it refused`() async throws {
        var limits = Limits()
        limits.inputsBytes = 10
        let ten = NamedInput(name: "a", output: Payload(bytes: Array("1234567890".utf8)))
        let eleven = NamedInput(name: "a", output: Payload(bytes: Array("12345678901".utf8)))

        #expect(try await run("true", inputs: [ten], limits: limits).end == .succeeded)
        #expect(
            try await run("true", inputs: [eleven], limits: limits).end
                == .failed(.inputTooLarge(bytes: 11, limit: 10))
        )
    }

    @Test func `the files are private and gone afterwards`() async throws {
        let input = NamedInput(name: "a", output: nil)
        let line =
            "echo 1 > $OPERON_OUTPUT; dirname $OPERON_INPUTS; "
            + "stat -c %a $(dirname $OPERON_INPUTS); echo $OPERON_INPUTS; echo $OPERON_OUTPUT"
        try await ProcessSupport.withRunner { runner in
            let result = await runner.run(
                ProcessSupport.shell(line),
                attempt: ProcessSupport.context(inputs: [input])
            )

            #expect(result.attempt.output == Payload(bytes: Array("1\n".utf8)))
            let lines = result.lines
            #expect(lines.count == 4)
            #expect(lines[1] == "700")
            #expect(access(lines[0], F_OK) == 0)
            #expect(access(lines[2], F_OK) != 0)
            #expect(access(lines[3], F_OK) != 0)
        }
    }

    // MARK: - Output

    @Test func `the output is what the process wrote`() async throws {
        let result = try await run(#"printf ' {"a": [true]} ' > $OPERON_OUTPUT"#)

        #expect(result.end == .succeeded)
        #expect(result.output == Payload(bytes: Array(#" {"a": [true]} "#.utf8)))
    }

    @Test(arguments: ["true", ": > $OPERON_OUTPUT"])
    func `no file and an empty file are no output`(line: String) async throws {
        let result = try await run(line)

        #expect(result.end == .succeeded)
        #expect(result.output == .empty)
    }

    @Test func `a failed process has no output`() async throws {
        let result = try await run("echo 1 > $OPERON_OUTPUT; exit 1")

        #expect(result.end == .failed(.exit(code: 1)))
        #expect(result.output == .empty)
    }

    @Test func `an output of the limit is taken, one byte more is not`() async throws {
        let limit = Limits().payloadBytes
        func line(_ bytes: Int) -> String {
            "{ printf '\"'; head -c \(bytes - 2) /dev/zero | tr '\\0' x; printf '\"'; }"
                + " > $OPERON_OUTPUT"
        }

        let atLimit = try await run(line(limit))
        let beyond = try await run(line(limit + 1))

        #expect(atLimit.end == .succeeded)
        #expect(atLimit.output.bytes.count == limit)
        #expect(beyond.end == .failed(.outputTooLarge(bytes: limit + 1, limit: limit)))
        #expect(beyond.output == .empty)
    }

    @Test(arguments: [
        ("echo '{\"a\":}' > $OPERON_OUTPUT", "it is not JSON: at byte 5, a value was expected"),
        ("echo > $OPERON_OUTPUT", "it is not JSON: at byte 1, a value was expected"),
        ("mkdir -p $OPERON_OUTPUT/deep", "it is not a file"),
        ("mkfifo $OPERON_OUTPUT", "it is not a file"),
        ("ln -s /etc/passwd $OPERON_OUTPUT", "Too many levels of symbolic links"),
    ])
    func `an output that cannot be used is a failure that says why`(
        line: String,
        why: String
    ) async throws {
        let result = try await run(line)

        #expect(
            result.end
                == .failed(
                    .thrown(
                        type: "output",
                        message: "The output in $OPERON_OUTPUT cannot be used: \(why).",
                        payload: []
                    )
                )
        )
    }

    @Test func `whatever a process puts in place of its output is removed`() async throws {
        try await ProcessSupport.withRunner { runner in
            let result = await runner.shell(
                "mkdir -p $OPERON_OUTPUT/a/b; touch $OPERON_OUTPUT/a/c; echo $OPERON_OUTPUT"
            )

            let path = try #require(result.lines.first)
            #expect(access(path, F_OK) != 0)
        }
    }
}
