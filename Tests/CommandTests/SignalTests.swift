import Glibc
import Testing

/// What signals do to `operon run`, and that nothing it started survives it.
@Suite(.serialized) struct SignalTests {
    /// Fills four slots with what would last for ever, and leaves something to wait.
    private static let endless = """
        operations:
          a: { run: sleep 1000 }
          b: { run: sleep 1000 & sleep 1000 }
          c: { command: [sleep, 1000] }
          d: { wait: 1000s }
          e: { operation: nothing, dependencies: [a] }
          f: { run: sleep 1000 }
        """

    private static func startEndless(_ workspace: Workspace, _ place: Place) async throws -> Program
    {
        let file = try workspace.write("endless.yaml", endless)
        if place == .broker { try workspace.startWorkers(2, slots: 2) }
        let run = try workspace.startRun(file, on: place, ["--output", "json"])
        for name in ["a", "b", "c", "d"] { try await run.says("running \(name)\n") }
        return run
    }

    @Test(arguments: Place.allCases, [SIGINT, SIGTERM])
    func `the first signal cancels everything and waits for it`(
        place: Place,
        signal: Int32
    ) async throws {
        try await Workspace.run { workspace in
            let run = try await Self.startEndless(workspace, place)
            run.signal(signal)
            let ended = try await run.end()

            let report = try ended.report()
            #expect(ended.end == .exit(128 + signal))
            #expect(report.counts == Report.Counts(cancelled: 6, total: 6))
            #expect(report["f"]?.attempts.count == 0)
            #expect(report["a"]?.attempts.map(\.ended) == ["cancelled"])
            #expect(report["a"]?.reason == "interrupted")
            #expect(ended.errors.contains("Cancelling"))
            try await workspace.waitUntilNoProcess(named: "sleep")
        }
    }

    @Test(arguments: Place.allCases)
    func `the first signal lets an operation clean up, and believes its success`(
        place: Place
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  tidy:
                    run: |
                      trap 'sleep 0.2; echo tidied >> ledger; exit 0' TERM
                      touch ready
                      while :; do sleep 1; done
                  stubborn:
                    run: |
                      trap 'sleep 0.2; echo left >> ledger; exit 4' TERM
                      touch ready2
                      while :; do sleep 1; done
                  after: { run: echo after >> ledger, dependencies: [tidy] }
                """
            )
            if place == .broker { try workspace.startWorkers(2, slots: 2) }
            let run = try workspace.startRun(file, on: place, ["--output", "json"])
            try await workspace.waitForFile("ready")
            try await workspace.waitForFile("ready2")
            run.signal(SIGINT)
            let ended = try await run.end()

            let outcomes = try ended.report().outcomes
            #expect(ended.end == .exit(130))
            #expect(
                outcomes == ["tidy": "succeeded", "stubborn": "cancelled", "after": "cancelled"]
            )
            #expect(workspace.lines(of: "ledger").sorted() == ["left", "tidied"])
        }
    }

    @Test(arguments: Place.allCases, [SIGINT, SIGTERM])
    func `the second signal kills what does not want to end`(
        place: Place,
        signal: Int32
    ) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  deaf:
                    grace: 1h
                    run: |
                      trap 'sleep 0.5; touch told' TERM INT
                      touch ready
                      while :; do sleep 0.05; done
                  after: { run: echo after >> ledger, dependencies: [deaf] }
                """
            )
            if place == .broker { try workspace.startWorkers(1, slots: 2) }
            let run = try workspace.startRun(file, on: place, ["--output", "json"])
            try await workspace.waitForFile("ready")
            run.signal(signal)
            try await run.says("Cancelling")
            try await workspace.waitForFile("told")
            #expect(!run.hasEnded)
            run.signal(signal)
            let ended = try await run.end()

            let report = try ended.report()
            #expect(ended.end == .exit(128 + signal))
            #expect(report["deaf"]?.outcome != "succeeded")
            #expect(report["after"]?.outcome == "cancelled")
            // Until the second signal, whatever had ended before.
            #expect(report.makespan >= 0.5)
            #expect(workspace.lines(of: "ledger") == [])
            try await workspace.waitUntilNoProcess(named: "ready")
        }
    }

    @Test func `what a terminal sends to the whole group is for the run alone`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                "operations: { a: { run: \"sleep 0.5; trap 'exit 0' TERM; touch r; sleep 9\" } }"
            )
            let run = try workspace.startRun(file, on: .inProcess, ["--output", "json"])
            try await workspace.waitForFile("r")
            kill(-run.process, SIGINT)
            let ended = try await run.end()

            // Had the operation got the interrupt too, it would have died of it.
            #expect(ended.end == .exit(130))
            #expect(try ended.report()["a"]?.outcome == "succeeded")
        }
    }

    @Test func `a signal while nobody is there to run anything ends the run`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.endless)
            let run = try workspace.startRun(file, on: .broker, ["--output", "json"])
            try await run.says("Waiting for a worker")
            run.signal(SIGINT)
            let ended = try await run.end()

            #expect(ended.end == .exit(130))
            #expect(try ended.report().counts == Report.Counts(cancelled: 6, total: 6))
        }
    }

    @Test func `a run that is killed leaves no process behind`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.leavers)
            let run = try workspace.startRun(file, on: .inProcess)
            for name in ["r1", "r2", "r3"] { try await workspace.waitForFile(name) }
            #expect(workspace.processes().count >= 6)
            run.signal(SIGKILL)
            let ended = try await run.end()

            #expect(ended.end == .signal(SIGKILL))
            try await workspace.waitUntilNoProcess()
        }
    }

    /// Operations whose descendants leave their group, their session and their parents.
    private static let leavers = """
        operations:
          a: { run: touch r1; sleep 1000 }
          b: { run: (setsid sleep 1000 &); touch r2; sleep 1000 }
          c: { run: "trap '' TERM HUP INT; nohup sleep 1000 >/dev/null & touch r3; sleep 1000" }
        """

    // MARK: - Workers

    @Test func `a worker that is killed leaves no process behind`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write("graph.yaml", Self.leavers)
            let worker = try workspace.startWorkers(1, slots: 4)[0]
            let run = try workspace.startRun(file, on: .broker)
            for name in ["r1", "r2", "r3"] { try await workspace.waitForFile(name) }
            worker.signal(SIGKILL)
            try await workspace.waitUntilNoProcess(named: "sleep")
            #expect(!run.hasEnded)
        }
    }

    @Test func `a worker that drains finishes what runs and gives back what waits`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  long:
                    run: |
                      echo long >> ledger; touch ready
                      while [ ! -e go ]; do sleep 0.02; done
                  more: { run: echo more >> ledger, dependencies: [long] }
                  other: { run: echo other >> ledger }
                """
            )
            let worker = try workspace.startWorkers(1, slots: 1)[0]
            let run = try workspace.startRun(file, on: .broker, ["--output", "json"])
            try await workspace.waitForFile("ready")
            worker.signal(SIGTERM)
            try await worker.says("draining")
            #expect(!worker.hasEnded)
            _ = try workspace.write("go", "")
            let drained = try await worker.end()
            try workspace.startWorkers(1, slots: 1)
            let ended = try await run.end()

            #expect(drained.end == .exit(0))
            let report = try ended.report()
            #expect(ended.end == .exit(0))
            report.expectSuccess()
            let endings = report.operations.flatMap { $0.attempts.map(\.ended) }
            #expect(!endings.contains("lost"))
            #expect(report["long"]?.attempts.map(\.worker) == ["w1"])
            #expect(report["more"]?.worker == "w2")
            #expect(workspace.lines(of: "ledger").sorted() == ["long", "more", "other"])
        }
    }

    @Test func `a worker gives back what does not finish while it drains`() async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  long:
                    run: |
                      echo "$OPERON_ATTEMPT" >> ledger
                      if [ "$OPERON_ATTEMPT" = 1 ]; then touch ready; sleep 1000; fi
                """
            )
            let worker = try workspace.startWorkers(1, slots: 1, ["--drain-timeout", "0.2"])[0]
            let run = try workspace.startRun(file, on: .broker, ["--output", "json"])
            try await workspace.waitForFile("ready")
            worker.signal(SIGTERM)
            let drained = try await worker.end()
            try workspace.startWorkers(1, slots: 1)
            let ended = try await run.end()

            #expect(drained.end == .exit(0))
            #expect(ended.end == .exit(0))
            let report = try ended.report()
            #expect(report["long"]?.attempts.map(\.ended) == ["returned", "succeeded"])
            #expect(report["long"]?.attempts.map(\.number) == [1, 2])
            #expect(workspace.lines(of: "ledger") == ["1", "2"])
        }
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `the second signal ends a worker at once`(signal: Int32) async throws {
        try await Workspace.run { workspace in
            let file = try workspace.write(
                "graph.yaml",
                """
                operations:
                  deaf:
                    grace: 1h
                    run: |
                      trap '' TERM INT
                      touch ready
                      while :; do sleep 0.05; done
                """
            )
            let worker = try workspace.startWorkers(1, slots: 1)[0]
            _ = try workspace.startRun(file, on: .broker)
            try await workspace.waitForFile("ready")
            worker.signal(signal)
            try await worker.says("draining")
            worker.signal(signal)
            let ended = try await worker.end()

            #expect(ended.end == .exit(128 + signal))
            try await workspace.waitUntilNoProcess(named: "ready")
        }
    }

    @Test func `an idle worker drains at once, with a broker or without`() async throws {
        try await Workspace.run { workspace in
            let connected = try workspace.startWorkers(1, slots: 1)[0]
            let alone = try workspace.startWorkers(1, slots: 1, broker: "amqp://127.0.0.1:1")[0]
            // Until then a signal would not drain it.
            try await connected.says("with 1 slot")
            try await alone.says("with 1 slot")
            connected.signal(SIGTERM)
            alone.signal(SIGTERM)

            #expect(try await connected.end(within: .seconds(20)).end == .exit(0))
            #expect(try await alone.end(within: .seconds(20)).end == .exit(0))
        }
    }
}
