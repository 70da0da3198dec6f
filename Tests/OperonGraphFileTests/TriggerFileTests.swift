import Foundation
import OperonGraphFile
import OperonModel
import Testing

/// Trigger files: what each key may have, and what is said about what it may not.
@Suite struct TriggerFileTests {
    private static func read(_ text: String) throws -> TriggerDescription {
        try TriggerFile.read(Array(text.utf8), file: "t.yaml", format: .yaml)
    }

    private static func file(_ on: String, _ more: String = "") -> String {
        "name: t\non: \(on)\ngraph: { text: \"operations: {}\" }\n\(more)"
    }

    private static let sources: [(String, FiringSource)] = [
        ("{ file: /in/ready.csv }", .watched(.file(FileSource(path: "/in/ready.csv")))),
        (
            "{ file: { path: /in, pattern: '*.csv', on: [created, deleted] } }",
            .watched(
                .file(FileSource(path: "/in", pattern: "*.csv", changes: [.created, .deleted]))
            )
        ),
        (
            "{ file: { path: /in, pattern: '*', on: renamed } }",
            .watched(.file(FileSource(path: "/in", pattern: "*", changes: [.renamed])))
        ),
        ("{ pipe: /run/lines }", .watched(.pipe("/run/lines"))),
        ("{ pipe: { path: /run/lines } }", .watched(.pipe("/run/lines"))),
        ("{ pipe: { command: [tail, -F, log] } }", .watched(.program(["tail", "-F", "log"]))),
        (
            "{ pipe: { run: 'tail -F log' } }",
            .watched(.program(CommandDescription.shell("tail -F log")))
        ),
        ("{ signal: SIGUSR1 }", .watched(.signal("SIGUSR1"))),
        ("{ process: 4711 }", .watched(.process(.number(4_711)))),
        ("{ process: { pid: 4711 } }", .watched(.process(.number(4_711)))),
        ("{ process: { pidFile: /run/d.pid } }", .watched(.process(.file("/run/d.pid")))),
        ("{ process: { identity: 'a:1:2' } }", .watched(.process(.identity("a:1:2")))),
        ("{ message: orders }", .watched(.message("orders"))),
        ("{ message: { queue: orders } }", .watched(.message("orders"))),
        ("event", .event),
        (
            "{ graph: { name: g, outcomes: [failed] } }",
            .graph(GraphSource(name: "g", outcomes: [.failed]))
        ),
    ]

    @Test(arguments: sources)
    func `each form of a source is read, and written so that it is read again`(
        on: String,
        source: FiringSource
    ) throws {
        let trigger = try Self.read(Self.file(on))
        #expect(trigger.source == source)
        let written = GraphFileCodec().encode(trigger)
        let again = try GraphFileCodec().decodeTrigger(written, contentType: "application/json")
        #expect(again == trigger)
    }

    private static let watchers: [(String, [WorkerRequirement])] = [
        ("{}", []),
        ("", []),
        ("{ region: eu }", [.equals("region", "eu")]),
        (
            "{ region: [eu, us], gpu: { exists: true }, zone: { notIn: a } }",
            [
                WorkerRequirement("region", .oneOf(["eu", "us"])),
                WorkerRequirement("gpu", .exists(true)),
                WorkerRequirement("zone", .noneOf(["a"])),
            ]
        ),
    ]

    @Test(arguments: watchers)
    func `the workers that watch are read, and written so that they are read again`(
        workers: String,
        requirements: [WorkerRequirement]
    ) throws {
        let trigger = try Self.read(Self.file("{ pipe: /run/lines, workers: \(workers) }"))
        #expect(trigger.watcher == .workers(requirements))
        let written = GraphFileCodec().encode(trigger)
        let again = try GraphFileCodec().decodeTrigger(written, contentType: "application/json")
        #expect(again == trigger)
    }

    private static let problems: [(String, String)] = [
        (
            "{ message: orders, workers: {} }",
            "t.yaml:2:24: workers watch file, pipe, signal, process; the coordinator looks after "
                + "“message”"
        ),
        (
            "{ every: 5m, workers: { region: eu } }",
            "t.yaml:2:18: workers watch file, pipe, signal, process; the coordinator looks after "
                + "“every”"
        ),
        (
            "{ pipe: /a, workers: eu }",
            "t.yaml:2:26: “workers” must be a map from labels to values such as { region: eu }, "
                + "not “eu”"
        ),
        (
            "{ pipe: /a, workers: { region: { on: eu } } }",
            "t.yaml:2:38: unknown key “on”; did you mean “in”?"
        ),
        ("{ pipe: /a, worker: {} }", "t.yaml:2:17: unknown key “worker”; did you mean “workers”?"),
        (
            "{ pipe: { path: /a, workers: {} } }",
            "t.yaml:2:25: unknown key “workers”"
        ),
        ("{ file: in.csv }", "t.yaml:2:13: “path” “in.csv” is not an absolute path"),
        ("{ file: / }", "t.yaml:2:13: the name “” names no file"),
        ("{ file: { pattern: '*' } }", "t.yaml:2:7: “file” needs “path”"),
        (
            "{ file: { path: /in, pattern: 'a/*' } }",
            "t.yaml:2:35: the pattern “a/*” contains a slash; only files directly in the folder "
                + "are watched"
        ),
        (
            "{ file: { path: /in, on: writen } }",
            "t.yaml:2:30: “on” must be created, written, deleted, renamed or attributes, not "
                + "“writen”; did you mean “written”?"
        ),
        (
            "{ file: { path: /in, on: [] } }",
            "t.yaml:2:30: “on” names no change of a file"
        ),
        (
            "{ file: { path: /in, patern: '*' } }",
            "t.yaml:2:26: unknown key “patern”; did you mean “pattern”?"
        ),
        ("{ pipe: lines }", "t.yaml:2:13: “path” “lines” is not an absolute path"),
        ("{ pipe: {} }", "t.yaml:2:7: “pipe” needs exactly one of path, run and command"),
        (
            "{ pipe: { run: a, command: [b] } }",
            "t.yaml:2:23: “pipe” needs exactly one of path, run and command"
        ),
        (
            "{ pipe: { command: [] } }",
            "t.yaml:2:24: “command” names no program"
        ),
        (
            "{ signal: SIGUSR }",
            "t.yaml:2:15: “signal” must be SIGHUP, SIGUSR1 or SIGUSR2, not “SIGUSR”; did you mean "
                + "“SIGUSR1”?"
        ),
        (
            "{ process: 0 }",
            "t.yaml:2:16: “pid” must be a whole number from 1 to 2147483647, not 0"
        ),
        (
            "{ process: { identity: '' } }",
            "t.yaml:2:28: “identity” must be 1 to 256 bytes, not “”"
        ),
        ("{ process: {} }", "t.yaml:2:7: “process” needs exactly one of pid and pidFile"),
        (
            "{ process: { pidFile: d.pid } }",
            "t.yaml:2:27: “pidFile” “d.pid” is not an absolute path"
        ),
        ("{ message: '' }", "t.yaml:2:16: “queue” is an empty name"),
        ("{ mesage: orders }", "t.yaml:2:7: unknown key “mesage”; did you mean “message”?"),
        (
            "{ message: a, pipe: /b }",
            "t.yaml:2:19: “on” needs exactly one of every, cron, event, webhook, graph, file, "
                + "pipe, signal, process, message"
        ),
        (
            "{ every: 5m, leeway: 10m }",
            "t.yaml:2:26: “leeway” must be less than the interval, not “10m”"
        ),
        ("{ every: 1ms }", "t.yaml:2:14: “interval” must be a duration of 1s or more, not “1ms”"),
    ]

    @Test(arguments: problems)
    func `a wrong source is told with its place`(on: String, says: String) {
        do {
            _ = try Self.read(Self.file(on))
            Issue.record("\(on) was read")
        } catch {
            #expect("\(error)" == says)
        }
    }

    private static let policies: [(String, String, String)] = [
        (
            "{ file: /in/a }", "coalesce: 5s",
            "t.yaml:4:1: “coalesce” needs “merge” here: collect for a list of all, replace for the "
                + "last one"
        ),
        (
            "{ message: q }", "merge: add",
            "t.yaml:4:1: “merge” is replace or collect here: “message” gives no number"
        ),
        (
            "{ signal: SIGHUP }", "missed: all",
            "t.yaml:4:1: “missed” is for ticks, and “signal” has none"
        ),
        (
            "{ every: 5m }", "merge: collect",
            "t.yaml:4:1: “merge” is for data, and ticks have none"
        ),
        (
            "event", "overlap: quue",
            "t.yaml:4:10: “overlap” must be allow, skip, queue or cancelRunning, not “quue”; did "
                + "you mean “queue”?"
        ),
        (
            "event", "limit: 0",
            "t.yaml:4:8: “limit” must be a whole number from 1 to 2147483647, not 0"
        ),
        ("event", "set: [1]", "t.yaml:4:6: “set” must be a map from names to values, not a list"),
        ("event", "unti: x", "t.yaml:4:1: unknown key “unti”; did you mean “until”?"),
    ]

    @Test(arguments: policies)
    func `a policy that does not fit is told with its place`(
        on: String,
        more: String,
        says: String
    ) {
        do {
            _ = try Self.read(Self.file(on, more + "\n"))
            Issue.record("\(more) was read")
        } catch {
            #expect("\(error)" == says)
        }
    }

    @Test(arguments: [
        (
            "set: { day: '${event.date}', all: ['a ${event.data.b}'] }",
            "4:36: “${event.data.b}” needs data, and ticks have none"
        ),
        (
            "set: { all: '${event.data}', day: 'a ${event.data}' }",
            "4:35: “${event.data}” needs data, and ticks have none"
        ),
    ])
    func `a file of a trigger on ticks that needs data is refused, and a stored one is read`(
        more: String,
        says: String
    ) throws {
        let text = Self.file("{ every: 5m }", more + "\n")
        #expect(try Self.read(text).source.isTimer)
        try Fixture.withFile("t.yaml", Array(text.utf8)) { path in
            let error = #expect(throws: GraphFileError.self) { try TriggerFile.read(path: path) }
            let problems = error?.problems.map { "\($0.line):\($0.column): \($0.message)" }
            #expect(problems == [says])
        }
    }

    // MARK: - The files with which the schema is compared

    /// The triggers of a file that separates them by lines with `---`.
    private static func fixtures(_ name: String) throws -> [String] {
        String(decoding: try Fixture.bytes("Triggers/" + name), as: UTF8.self)
            .components(separatedBy: "---\n")
    }

    @Test func `good triggers are read, written and read to the same triggers`() throws {
        let texts = try Self.fixtures("good.yaml")
        #expect(texts.count == 10)
        for text in texts {
            let trigger = try Self.read(text)
            let written = GraphFileCodec().encode(trigger)
            let again = try GraphFileCodec().decodeTrigger(written, contentType: "application/json")
            #expect(again == trigger)
        }
    }

    @Test func `bad triggers are refused with the messages that they announce`() throws {
        let texts = try Self.fixtures("bad.yaml") + Self.fixtures("bad-beyond-schema.yaml")
        #expect(texts.count == 11)
        for text in texts {
            let mark = "# expect "
            let expected = text.split(separator: "\n").prefix { $0.hasPrefix(mark) }
                .map { String($0.dropFirst(mark.count)) }
            do throws(GraphFileError) {
                _ = try TriggerFile.read(Array(text.utf8), file: "t", format: .yaml)
                Issue.record("it was read: \(text)")
            } catch {
                #expect(error.problems.map { String($0.description.dropFirst(2)) } == expected)
            }
        }
    }

    @Test(arguments: [
        (#"{"dya": 1}"#, "set: the graph has no parameter “dya”; did you mean “day”?"),
        (
            "{}",
            "1:15: parameter “day” has no default and needs a value (in “set” of the trigger)"
        ),
    ])
    func `values that a graph does not take are those of “set”`(
        values: String,
        message: String
    ) throws {
        let graph = TriggerGraph(
            file: "g.yaml",
            contentType: "application/yaml",
            text: "parameters: { day: }\noperations: { a: { run: 'echo ${day}' } }"
        )
        do {
            _ = try GraphFileCodec().graph(graph, parameters: values, event: "{}")
            Issue.record("it was read")
        } catch {
            #expect("\(error)".contains(message), "\(error)")
        }
    }

    /// Four parts, so that they run side by side.
    @Test(arguments: 0..<4)
    func `damaged trigger files are read or refused`(part: Int) throws {
        let seeds = Self.sources.map { Array(Self.file($0.0, "overlap: queue\n").utf8) }
        var generator = MutationTests.Generator(state: 0x7219_0000 + UInt64(part))
        var refused = 0
        for _ in 0..<2_500 {
            let seed = seeds[Int.random(in: 0..<seeds.count, using: &generator)]
            let other = seeds[Int.random(in: 0..<seeds.count, using: &generator)]
            let bytes = MutationTests.mutated(seed, other, using: &generator)
            do throws(GraphFileError) {
                let trigger = try TriggerFile.read(bytes, file: "t.yaml", format: .yaml)
                let written = GraphFileCodec().encode(trigger)
                let again = try TriggerFile.read(written, file: "t.json", format: .json)
                #expect(again == trigger)
            } catch {
                refused += 1
                #expect(
                    !error.problems.isEmpty && error.problems.allSatisfy { !$0.message.isEmpty }
                )
            }
        }
        #expect((500..<2_450).contains(refused), "mutations that neither break nor keep anything")
    }
}
