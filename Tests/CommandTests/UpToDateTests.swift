import Foundation
import Glibc
import OperonCore
import OperonFaultKit
import OperonModel
import Testing

/// Graphs whose operations run only if their files need it.
@Suite(.timeLimit(.minutes(5))) struct UpToDateTests {
    private static let graph = """
        name: program
        defaults: { skip: upToDate }
        operations:
          compile:
            forEach: [main, list]
            run: echo "compile $item" >> ran && cat "$item.c" > "$item.o"
            consumes: ["${item}.c"]
            produces: ${item}.o
          link:
            run: echo link >> ran && cat main.o list.o > program
            consumes: [main.o, list.o]
            produces: program
            dependencies: [compile]

        """

    /// The names of the operations that were up to date.
    private static func upToDate(_ ended: Ended) throws -> [String] {
        struct Report: Decodable {
            struct Operation: Decodable {
                var name: String
                var isUpToDate: Bool?
            }
            var operations: [Operation]
        }
        let report = try JSONDecoder().decode(Report.self, from: Data(ended.output.utf8))
        return report.operations.filter { $0.isUpToDate == true }.map(\.name).sorted()
    }

    /// Makes a file older or newer than everything else.
    private static func touch(_ path: String, _ seconds: Int) {
        let time = timespec(tv_sec: seconds, tv_nsec: 0)
        #expect(utimensat(AT_FDCWD, path, [time, time], 0) == 0)
    }

    @Test func `a dry run says what would be up to date`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            for name in ["main.c", "list.c", "main.o", "list.o", "program"] {
                Self.touch(try workspace.write(name, name), 1_000)
            }
            func upToDate() async throws -> [String] {
                let plan = try await workspace.operon(["run", "--dry-run", file])
                #expect(plan.end == .exit(0), "\(plan.errors)")
                let lines = plan.output.split(separator: "\n")
                #expect(lines.count == 4)
                return lines.filter { $0.hasSuffix(": up to date") }
                    .compactMap { $0.split(separator: ":").first.map(String.init) }.sorted()
            }
            #expect(try await upToDate() == ["compile[main]", "compile[list]", "link"].sorted())
            // The program is newer than the new source, but not than what is made of it.
            Self.touch(workspace.path("main.c"), 2_000)
            Self.touch(workspace.path("program"), 3_000)
            #expect(try await upToDate() == ["compile[list]"])
            #expect(workspace.lines(of: "ran").isEmpty)
        }
    }

    @Test(arguments: Place.allCases)
    func `a second run starts nothing, and after a change only what depends on it`(
        place: Place
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.graph)
            for source in ["main.c", "list.c"] {
                Self.touch(try workspace.write(source, source), 1_000)
            }
            if place == .broker { try workspace.startWorkers(1, slots: 2) }
            let options = ["--output", "json"]
            let first = try await workspace.run(file, on: place, options)
            #expect(first.end == .exit(0), "\(first.errors)")
            #expect(try Self.upToDate(first).isEmpty)
            #expect(workspace.lines(of: "ran").count == 3)

            let second = try await workspace.run(file, on: place, options)
            #expect(try second.report().counts == Report.Counts(succeeded: 4, total: 4))
            #expect(try Self.upToDate(second) == ["compile[list]", "compile[main]", "link"])
            #expect(workspace.lines(of: "ran").count == 3)

            // Older than what depends on it, and then newer than everything.
            Self.touch(workspace.path("program"), 3_000)
            Self.touch(workspace.path("list.o"), 2_000)
            Self.touch(workspace.path("list.c"), 2_001)
            let third = try await workspace.run(file, on: place, options)
            #expect(try Self.upToDate(third) == ["compile[main]"])
            #expect(workspace.lines(of: "ran").suffix(2) == ["compile list", "link"])

            let fourth = try await workspace.run(file, on: place, ["--elements"])
            for name in ["compile[main]", "compile[list]", "link"] {
                let line = "succeeded (up to date) \(name)\n"
                #expect(fourth.errors.contains(line), "\(fourth.errors)")
            }
            #expect(fourth.errors.contains("4 succeeded (3 up to date)"), "\(fourth.errors)")
        }
    }

    /// Targets that consume sources and earlier targets, with times of few different values.
    private struct Rules {
        var consumed: [[String]] = []
        var times: [String: timespec] = [:]

        init(seed: UInt64) {
            var random = SeededGenerator(seed: seed)
            func upTo(_ count: Int) -> Int { Int(random.next() % UInt64(count + 1)) }
            var files = (0...upTo(4)).map { "s\($0)" }
            for number in 0...(4 + upTo(8)) {
                let some = (0..<upTo(4)).map { _ in files[upTo(files.count - 1)] }
                consumed.append(Set(some).sorted())
                files.append("t\(number)")
            }
            for file in files where file.hasPrefix("s") || upTo(6) > 0 {
                times[file] = timespec(tv_sec: 1_000 + upTo(6), tv_nsec: upTo(2))
            }
        }

        var targets: [String] { consumed.indices.map { "t\($0)" } }

        var makefile: String {
            zip(targets, consumed).reduce("all: \(targets.joined(separator: " "))\n") {
                text,
                rule in
                let (target, files) = rule
                let line = "echo \(target) >> ran; touch \(target)"
                return text + "\(target): \(files.joined(separator: " "))\n\t\(line)\n"
            }
        }

        var graph: String {
            zip(targets, consumed).reduce("defaults: { skip: upToDate }\noperations:\n") {
                text,
                rule in
                let (target, files) = rule
                let others = files.filter { $0.hasPrefix("t") }.joined(separator: ", ")
                return text + "  \(target): { run: 'echo \(target) >> ran; touch \(target)',"
                    + " produces: \(target), consumes: [\(files.joined(separator: ", "))],"
                    + " dependencies: [\(others)] }\n"
            }
        }
    }

    @Test(arguments: 1...12 as ClosedRange<UInt64>)
    func `what make runs is run, and nothing else`(seed: UInt64) async throws {
        let rules = Rules(seed: seed)
        try await Workspace.run { workspace in
            for folder in ["make", "operon"] {
                try FileManager.default.createDirectory(
                    atPath: workspace.path(folder),
                    withIntermediateDirectories: false
                )
                for (file, time) in rules.times {
                    let path = try workspace.write("\(folder)/\(file)", "")
                    #expect(utimensat(AT_FDCWD, path, [time, time], 0) == 0)
                }
            }
            _ = try workspace.write("make/Makefile", rules.makefile)
            let make = "operations: { make: { run: /usr/bin/make -s -C make } }"
            let oracle = try workspace.write("make.yaml", make)
            let made = try await workspace.run(oracle, on: .inProcess)
            #expect(made.end == .exit(0), "\(made.errors)")

            let file = try workspace.write("operon/graph.yaml", rules.graph)
            let ran = try await workspace.run(file, on: .inProcess, ["--output", "json"])
            #expect(ran.end == .exit(0), "\(ran.errors)")
            let expected = workspace.lines(of: "make/ran").sorted()
            #expect(workspace.lines(of: "operon/ran").sorted() == expected)
            let rest = Set(rules.targets).subtracting(expected)
            #expect(try Self.upToDate(ran) == rest.sorted())
        }
    }

    /// What it writes is there before it is finished.
    private static let slow = """
        operations:
          made:
            run: |
              echo part >> made; touch begun
              until test -e go; do sleep 0.05; done
              echo end >> made
            produces: made
            skip: upToDate

        """

    @Test func `Ctrl-C in the middle leaves nothing that the next run takes for up to date`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.slow)
            let run = try workspace.start("operon", ["run", file])
            try await workspace.waitForFile("begun")
            run.signal(SIGINT)
            #expect(try await run.end().end == .exit(130))
            #expect(!FileManager.default.fileExists(atPath: workspace.path("made")))

            _ = try workspace.write("go", "")
            let again = try await workspace.operon(["run", file, "--output", "json"])
            #expect(try Self.upToDate(again).isEmpty)
            #expect(workspace.lines(of: "made") == ["part", "end"])
        }
    }

    @Test func `after kill -9 of a worker the next attempt takes nothing for up to date`()
        async throws
    {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.slow)
            let worker = try workspace.startWorkers(1, slots: 1)[0]
            let run = try workspace.startRun(file, on: .broker, ["--output", "json"])
            try await workspace.waitForFile("begun")
            worker.signal(SIGKILL)
            try await workspace.waitUntilNoProcess(named: "sleep")
            #expect(workspace.lines(of: "made") == ["part"])
            _ = try workspace.write("go", "")
            try workspace.startWorkers(1, slots: 1)
            let ended = try await run.end()

            #expect(ended.end == .exit(0), "\(ended.errors)")
            #expect(try Self.upToDate(ended).isEmpty)
            #expect(workspace.lines(of: "made") == ["part", "part", "end"])
        }
    }

    @Test func `a retry does not make a success of what failed`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  made:
                    run: mkdir -p made; exit 1
                    produces: made
                    skip: upToDate
                    retry: { limit: 1, delay: 1ms }
                """
            )
            let ended = try await workspace.operon(["run", file, "--output", "json"])

            #expect(ended.end == .exit(1), "\(ended.errors)")
            #expect(try ended.report()["made"]?.attempts.count == 2)
        }
    }

    @Test func `a run that is continued knows what was up to date`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  made: { run: echo ran >> ran, produces: made, skip: upToDate }
                  left: { run: 'while ! [ -e go ]; do sleep 0.05; done', dependencies: [made] }
                """
            )
            _ = try workspace.write("made", "")
            let arguments = ["run", file, "--store", "kept.db"]
            let run = try workspace.start("operon", arguments)
            try await run.says("running left\n")
            run.signal(SIGKILL)
            _ = try await run.end()
            try await workspace.waitUntilNoProcess(named: "sleep")
            _ = try workspace.write("go", "")

            let again = try await workspace.operon(arguments + ["--resume", "--output", "json"])
            #expect(again.end == .exit(0), "\(again.errors)")
            #expect(try Self.upToDate(again) == ["made"])
        }
    }

    @Test func `a coordinator tells what was up to date, before and after a restart`()
        async throws
    {
        try await Workspace.run { workspace in
            _ = try workspace.write("made", "")
            let file = try workspace.write(
                "g.yaml",
                """
                name: g
                operations:
                  made: { run: echo ran >> ran, produces: made, skip: upToDate }
                  plain: { run: "true", produces: made }
                  missing: { run: "true", consumes: gone, retry: 1 }
                """
            )
            let up = try await Up(workspace)
            #expect(try await up.operon("submit", file, "--wait").end == .exit(1))
            for _ in 0..<2 {
                let show = try await up.operon("show", "g/made")
                let lines = show.outputLines
                #expect(lines.first?.hasSuffix("/made succeeded (up to date)") == true, "\(lines)")
                #expect(lines.last?.hasSuffix("succeeded (up to date)") == true, "\(lines)")
                let list = try await up.operon("operations", "g")
                #expect(list.outputLines.count { $0.contains("(up to date)") } == 1)
                let status = try await up.operon("status", "g")
                #expect(status.output.contains("3: 2 succeeded (1 up to date), 1 failed"))
                let json = try await up.operon("show", "g/made", "--output", "json")
                let detail = try JSONDecoder().decode(
                    OperationDetail.self,
                    from: Data(json.output.utf8)
                )
                #expect(detail.operation.isUpToDate == true)
                #expect(detail.attempts.map(\.isUpToDate) == [true])
                let plain = try await up.operon("show", "g/plain", "--output", "json")
                #expect(!plain.output.contains("isUpToDate"))
                let missing = try await up.operon("show", "g/missing")
                let error = "the file “gone”, which it consumes, does not exist"
                #expect(missing.output.components(separatedBy: error).count == 4)
                let events = try await up.operon("events", "--after", "0", "--output", "json")
                let told = events.outputLines.filter { $0.contains("\"isUpToDate\":true") }
                #expect(told.count == 1 && told[0].contains("\"made\""), "\(told)")
                try await up.restart()
            }
            #expect(workspace.lines(of: "ran").isEmpty)
        }
    }
}
