import OperonModel
import OperonTerminal
import Testing

@Suite struct LinePrinterTests {
    @Test func `status lines are overprinted`() throws {
        let output = ScreenOutput()
        var printer = LinePrinter(output: output, style: unicode)

        printer.redraw(at: at(0)) { _ in ["one", "two"] }
        printer.redraw(at: at(1)) { _ in ["three"] }

        #expect(try output.screen() == ["three"])
    }

    @Test func `lines are printed above the status, each change in one write`() throws {
        let output = ScreenOutput()
        var printer = LinePrinter(output: output, style: unicode)
        printer.redraw(at: at(0)) { _ in ["status 0"] }

        printer.print(["a log line", "another"])
        printer.redraw(at: at(0.01)) { _ in ["status 1"] }
        printer.finish { _ in ["status 2"] }

        #expect(try output.screen() == ["a log line", "another", "status 2"])
        #expect(output.writes.count == 4)
    }

    @Test func `at most ten redraws a second are drawn, and the last state always`() throws {
        let output = ScreenOutput()
        var printer = LinePrinter(output: output, style: unicode)

        for step in 0..<1_000 {
            printer.redraw(at: at(Double(step) / 1_000)) { _ in ["step \(step)"] }
        }
        #expect(output.writes.count == 10)
        printer.finish { _ in ["step 1000"] }

        #expect(output.writes.count == 11)
        #expect(try output.screen() == ["step 1000"])
    }

    @Test func `the width is asked for at each redraw`() {
        let output = ScreenOutput(columns: 100)
        var printer = LinePrinter(output: output, style: unicode)
        var widths: [Int] = []

        printer.redraw(at: at(0)) {
            widths.append($0); return [""]
        }
        output.reportedSize = TerminalSize(columns: 40, rows: 24)
        printer.redraw(at: at(1)) {
            widths.append($0); return [""]
        }
        output.reportedSize = nil
        printer.redraw(at: at(2)) {
            widths.append($0); return [""]
        }

        #expect(widths == [99, 39, 79])
    }

    @Test func `a block taller than the screen is cut and says so`() throws {
        let output = ScreenOutput(columns: 80, rows: 5)
        var printer = LinePrinter(output: output, style: unicode)

        printer.redraw(at: at(0)) { _ in (1...10).map { "group \($0)" } }

        #expect(try output.screen() == ["group 1", "group 2", "group 3", "… and 7 more"])
    }

    @Test func `a stopped terminal holds nothing up`() {
        let output = ScreenOutput()
        var printer = LinePrinter(output: output, style: unicode)
        output.takesWrites = false

        printer.redraw(at: at(0)) { _ in ["status"] }

        #expect(output.writes.isEmpty)
    }

    @Test func `a pipe gets lines and no status`() {
        let output = ScreenOutput()
        var printer = LinePrinter(output: output, style: .plain)

        printer.redraw(at: at(0)) { _ in ["status"] }
        printer.print(["line"])
        printer.finish { _ in ["status"] }
        printer.clear()

        #expect(output.writes == ["line\n"])
    }

    @Test func `clearing takes the status off the screen`() throws {
        let output = ScreenOutput()
        var printer = LinePrinter(output: output, style: unicode)
        printer.print(["kept"])
        printer.redraw(at: at(0)) { _ in ["one", "two"] }

        printer.clear()

        #expect(try output.screen() == ["kept"])
    }

    // MARK: - The display

    @Test(arguments: [
        (80, ["failed a: exit code 1", "Sure? "]), (6, ["Sure? ", "said", "Sure? "]),
    ])
    func `what comes while somebody types is above the prompt`(
        columns: Int,
        screen: [String]
    ) async throws {
        let output = ScreenOutput(columns: columns)
        let display = ProgressDisplay(
            printer: LinePrinter(output: output, style: unicode),
            startedAt: at(0)
        )
        await display.tick(at: at(1))
        await display.pause()
        await display.ask("Sure? ")
        await display.tick(at: at(2))
        let line = columns == 80 ? "failed a: exit code 1" : "said"
        await display.print([line], at: at(3))
        #expect(try output.screen() == screen)
        // Nobody has ended the line of the prompt.
        await display.resume(isAnswered: false, at: at(4))
        await display.print(["more"], at: at(5))
        #expect(try output.screen() == screen + ["more"])
    }

    @Test func `on a pipe each start and each outcome is one line`() async {
        let output = ScreenOutput()
        let display = ProgressDisplay(
            printer: LinePrinter(output: output, style: .plain),
            startedAt: at(0)
        )
        let group = await display.addGroup(name: "g")
        await display.operationsAdded(2, to: group, work: 2)

        await display.operationsMoved(
            [.init("a", from: .pending, to: .ready, work: 1)],
            in: group,
            at: at(0)
        )
        await display.operationsMoved(
            [.init("a", from: .ready, to: .executing, work: 1)],
            in: group,
            at: at(0)
        )
        await display.operationsMoved(
            [
                .init(
                    "a",
                    from: .executing,
                    to: .failed,
                    work: 1,
                    duration: .milliseconds(15),
                    detail: "exit code 1"
                )
            ],
            in: group,
            at: at(1)
        )
        await display.operationsMoved(
            [.init("b", from: .pending, to: .skipped, work: 1, detail: "because “a” failed")],
            in: group,
            at: at(1)
        )
        await display.finish(at: at(1))

        #expect(
            output.writes == [
                "[0/2] running a\n",
                "[1/2] failed a (15ms): exit code 1\n",
                "[2/2] skipped b: because \"a\" failed\n",
            ]
        )
    }

    @Test func `on a terminal there is one line per group, logs above it`() async throws {
        let output = ScreenOutput(columns: 41)
        let display = ProgressDisplay(
            printer: LinePrinter(output: output, style: unicode),
            startedAt: at(0)
        )
        let first = await display.addGroup(name: "one")
        let second = await display.addGroup(name: "two")
        await display.operationsAdded(1, to: first, work: 1)
        await display.operationsAdded(3, to: second, work: 3)
        await display.tick(at: at(0))

        await display.operationsMoved(
            [.init("a", from: .pending, to: .succeeded, work: 1)],
            in: first,
            at: at(0.01)
        )
        await display.print(["said by an operation"], at: at(0.02))
        await display.finish(at: at(2))

        #expect(
            try output.screen() == [
                "said by an operation",
                "one [█████████████████████████] 1/1 0:00",
                "two [░░░░░░░░░░░░░░░░░░░░░░░░░] 0/3 0:02",
            ]
        )
    }

    private typealias Move = ProgressDisplay.Move

    @Test func `on a terminal what runs is named, the longest first`() async throws {
        let output = ScreenOutput(columns: 41)
        let display = ProgressDisplay(
            printer: LinePrinter(output: output, style: unicode),
            startedAt: at(0)
        )
        let group = await display.addGroup(name: "g")
        await display.operationsAdded(20, to: group, work: 20)
        for (name, second) in [("first", 1), ("second", 2), ("short", 69.5)] {
            await display.operationsMoved(
                [Move(name, from: .pending, to: .executing, work: 1)],
                in: group,
                at: at(second)
            )
        }
        await display.tick(at: at(70))
        // What has just started is not named yet.
        #expect(try output.screen().dropFirst() == ["  first 1:09", "  second 1:08"])
        let long = String(repeating: "n", count: 60)
        await display.operationsMoved(
            [
                Move("first", from: .executing, to: .succeeded, work: 1),
                Move("second", from: .executing, to: .ready, work: 1),
                Move(long, from: .pending, to: .executing, work: 1),
            ],
            in: group,
            at: at(71)
        )
        await display.tick(at: at(75))
        let lines = try output.screen()
        #expect(lines.dropFirst() == ["  short 0:05", "  nnnnnnnnnnnnnnnn…nnnnnnnnnnnnnnnn 0:04"])
        #expect(lines.allSatisfy { TerminalText.width($0) < 41 })
        await display.finish(at: at(80))
        #expect(try output.screen().count == 1)
    }

    @Test func `on a terminal a failure is told at once, and what is skipped because of it`()
        async throws
    {
        let output = ScreenOutput(columns: 80)
        let display = ProgressDisplay(
            printer: LinePrinter(output: output, style: unicode),
            startedAt: at(0)
        )
        let group = await display.addGroup(name: "g")
        await display.operationsAdded(100, to: group, work: 100)
        let next = NextAttempt(number: 2, of: 2, pause: .seconds(4), why: "exit code 3")
        await display.retried("a", next, in: group, at: at(1))
        await display.operationsMoved(
            [
                Move(
                    "a",
                    from: .pending,
                    to: .failed,
                    work: 1,
                    duration: .seconds(2),
                    detail: "exit code 3"
                ),
                Move("b", from: .pending, to: .skipped, work: 1, detail: "because of “a”"),
                Move("c", from: .pending, to: .skipped, work: 1, detail: "because of “a”"),
                Move("d", from: .pending, to: .skipped, work: 1, detail: "because of “b”"),
            ],
            in: group,
            at: at(2)
        )
        #expect(
            try output.screen().dropLast() == [
                "retry a: attempt 2 of 2 in 4.0s: exit code 3",
                "failed a (2.0s): exit code 3",
                "skipped 2 operations: because of “a”",
                "skipped d: because of “b”",
            ]
        )
        // Of very many, the summary counts the rest.
        await display.operationsMoved(
            (0..<50).map { Move("x\($0)", from: .pending, to: .failed, work: 1) },
            in: group,
            at: at(3)
        )
        #expect(try output.screen().filter { $0.hasPrefix("failed x") }.count == 19)
    }

    @Test func `what went wrong is told above counts that come from elsewhere`() async throws {
        let output = ScreenOutput(columns: 80)
        let display = ProgressDisplay(
            printer: LinePrinter(output: output, style: unicode),
            startedAt: at(0)
        )
        let group = await display.addGroup(name: "g")
        let next = NextAttempt(number: 4, of: 2, pause: nil, why: "x\u{1B}[2J\ny")
        await display.retried("a", next, in: group, at: at(1))
        await display.tell(
            [
                Move("b", from: .executing, to: .failed, work: 0, detail: "x"),
                Move("c", from: .pending, to: .skipped, work: 0, detail: ""),
                Move("d", from: .pending, to: .skipped, work: 0, detail: ""),
            ],
            at: at(2)
        )
        #expect(
            try output.screen().dropLast() == [
                "retry a: attempt 4 of 4: x\\u{a}y", "failed b: x", "skipped 2 operations",
            ]
        )
        let many = (0..<50).map { Move("f\($0)", from: .pending, to: .failed, work: 0) }
        await display.tell(many, at: at(3))
        #expect(try output.screen().filter { $0.hasPrefix("failed f") }.count == 19)
        #expect(await display.progress.groups[group].total == 0)
    }

    @Test func `after the last line nothing is drawn, whoever still tells the time`() async throws {
        let output = ScreenOutput(columns: 41)
        let display = ProgressDisplay(
            printer: LinePrinter(output: output, style: unicode),
            startedAt: at(0)
        )
        let group = await display.addGroup(name: "one")
        await display.operationsAdded(1, to: group, in: .succeeded, work: 1)
        await display.tick(at: at(0))

        await display.finish(at: at(1))
        await display.tick(at: at(2))
        await display.print(["said later"], at: at(3))
        await display.finish(at: at(4))

        let screen = try output.screen()
        #expect(screen.count == 2, "\(screen)")
        #expect(screen.first?.contains("1/1") == true)
        #expect(screen.last == "said later")
    }

    @Test func `a quiet display counts and prints, and shows no progress`() async {
        let output = ScreenOutput()
        let display = ProgressDisplay(
            printer: LinePrinter(output: output, style: unicode),
            startedAt: at(0),
            isQuiet: true
        )
        let group = await display.addGroup(name: "g")
        await display.operationsAdded(1, to: group, work: 1)

        await display.operationsMoved(
            [.init("a", from: .pending, to: .succeeded, work: 1)],
            in: group,
            at: at(1)
        )
        await display.print(["needed"], at: at(2))
        await display.finish(at: at(3))

        #expect(output.writes == ["needed\n"])
        #expect(await display.progress.isFinished)
    }
}
