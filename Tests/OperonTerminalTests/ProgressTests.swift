import OperonModel
import OperonTerminal
import Testing

@Suite struct ProgressTests {
    @Test func `every operation is counted in one phase`() {
        let group = halfway()

        #expect(group[.pending] == 8)
        #expect(group[.ready] == 8)
        #expect(group[.executing] == 12)
        #expect(group[.succeeded] == 9)
        #expect(group[.failed] == 1)
        #expect(group[.skipped] == 2)
        #expect(group.total == 40)
        #expect(group.finished == 12)
    }

    @Test func `the time left follows from the work done since the first start`() {
        // 7 s for 10 operations that ran; 28 are left, 2 were skipped and cost nothing.
        #expect(halfway().timeLeft(at: at(9)).map { ($0.seconds * 10).rounded() } == 196)
        #expect(halfway().timeLeft(at: at(12)).map { ($0.seconds * 10).rounded() } == 166)
    }

    @Test func `a long operation counts for as much as its work`() {
        var model = ProgressModel(startedAt: at(0))
        let group = model.addGroup(name: "g")
        model.operationsAdded(1, to: group, in: .ready, work: 90)
        model.operationsAdded(1, to: group, in: .ready, work: 10)

        model.operationMoved(in: group, from: .ready, to: .executing, work: 90, at: at(0))
        model.operationMoved(in: group, from: .executing, to: .succeeded, work: 90, at: at(9))

        #expect(model.groups[group].timeLeft(at: at(9)) == .seconds(1))
    }

    @Test func `there is no estimate before the first end and after the last`() {
        var model = ProgressModel(startedAt: at(0))
        let group = model.addGroup(name: "g")
        model.operationsAdded(1, to: group, in: .ready, work: 1)
        model.operationMoved(in: group, from: .ready, to: .executing, work: 1, at: at(0))

        #expect(model.groups[group].timeLeft(at: at(5)) == nil)
        #expect(!model.isFinished)

        model.operationMoved(in: group, from: .executing, to: .succeeded, work: 1, at: at(6))

        #expect(model.groups[group].timeLeft(at: at(7)) == nil)
        #expect(model.isFinished)
    }

    @Test func `the clock of a group stops with its last outcome`() {
        var model = ProgressModel(startedAt: at(1))
        let group = model.addGroup(name: "g")
        model.operationsAdded(1, to: group, in: .executing, work: 1)
        #expect(model.groups[group].elapsed(at: at(4)) == .seconds(3))

        model.operationMoved(in: group, from: .executing, to: .succeeded, work: 1, at: at(5))

        #expect(model.groups[group].elapsed(at: at(60)) == .seconds(4))
    }

    private static func counts(
        ready: Int = 0,
        executing: Int = 0,
        succeeded: Int = 0,
        failed: Int = 0,
        skipped: Int = 0
    ) -> StateCounts {
        var counts = StateCounts()
        counts.ready = ready
        counts.executing = executing
        counts.succeeded = succeeded
        counts.failed = failed
        counts.skipped = skipped
        return counts
    }

    @Test func `counts alone give phases, the time left and the time that a group took`() {
        var model = ProgressModel(startedAt: at(0))
        let group = model.addGroup(name: "g")
        // What ended before tells nothing about the speed.
        model.counted(Self.counts(ready: 30, succeeded: 10), in: group, at: at(1))
        #expect(model.groups[group].total == 40)
        #expect(model.groups[group].timeLeft(at: at(2)) == nil)
        model.counted(Self.counts(ready: 26, executing: 4, succeeded: 10), in: group, at: at(2))
        let later = Self.counts(ready: 16, executing: 4, succeeded: 14, failed: 1, skipped: 5)
        model.counted(later, in: group, at: at(12))
        // 10 s for 5 operations that ran; 20 are left.
        #expect(model.groups[group].timeLeft(at: at(12)) == .seconds(40))
        #expect(model.groups[group][.ready] == 16)
        #expect(model.groups[group][.failed] == 1)

        model.counted(Self.counts(succeeded: 34, failed: 1, skipped: 5), in: group, at: at(20))
        #expect(model.groups[group].timeLeft(at: at(21)) == nil)
        #expect(model.groups[group].elapsed(at: at(60)) == .seconds(20))
    }

    @Test(arguments: [
        (counts(ready: -5, succeeded: 10), 10), (counts(ready: .max, executing: .max), 0),
        (counts(succeeded: .min, failed: 1), 1),
    ])
    func `counts that no graph can have are shown as some that one can`(
        _ counts: StateCounts,
        finished: Int
    ) {
        var model = ProgressModel(startedAt: at(0))
        let group = model.addGroup(name: "g")
        model.counted(counts, in: group, at: at(1))
        model.counted(counts, in: group, at: at(2))
        #expect(model.groups[group].finished == finished)
        #expect((0...1).contains(model.groups[group].fraction))
    }

    @Test func `a repeated operation that is not counted any more is forgotten`() {
        var model = ProgressModel(startedAt: at(0))
        let views = ["r[*]", "s[*]"].map { name in
            RepeatedProgressView(name: name, counts: Self.counts(ready: 4, executing: 2))
        }
        model.counted(views, at: at(1))
        #expect(model.groups.map(\.name) == ["r[*]", "s[*]"])
        let later = RepeatedProgressView(
            name: "s[*]",
            counts: Self.counts(ready: 2, executing: 2, succeeded: 2)
        )
        model.counted([later], at: at(3))
        #expect(model.groups.map(\.name) == ["s[*]"])
        // It goes on counting where it was: 2 s for 2 operations; 4 are left.
        #expect(model.groups[0].timeLeft(at: at(3)) == .seconds(4))
        // While nothing ends, the estimate counts down. It does not grow.
        #expect(model.groups[0].timeLeft(at: at(5)) == .seconds(2))
        #expect(model.groups[0].timeLeft(at: at(7)) == nil)
    }

    @Test func `a retried attempt leaves the work to be done`() {
        var model = ProgressModel(startedAt: at(0))
        let group = model.addGroup(name: "g")
        model.operationsAdded(2, to: group, in: .executing, work: 2)
        model.operationMoved(in: group, from: .executing, to: .ready, work: 1, at: at(1))
        model.operationMoved(in: group, from: .ready, to: .executing, work: 1, at: at(2))
        model.operationMoved(in: group, from: .executing, to: .succeeded, work: 1, at: at(4))

        #expect(model.groups[group].timeLeft(at: at(4)) == .seconds(2))
    }

    @Test func `reopening finished operations adds their work again`() {
        var model = ProgressModel(startedAt: at(0))
        let group = model.addGroup(name: "g")
        model.operationsAdded(1, to: group, in: .ready, work: 1)
        model.operationMoved(in: group, from: .ready, to: .executing, work: 1, at: at(0))
        model.operationMoved(in: group, from: .executing, to: .failed, work: 1, at: at(3))

        model.operationMoved(in: group, from: .failed, to: .ready, work: 1, at: at(3))

        #expect(!model.isFinished)
        #expect(model.groups[group].timeLeft(at: at(3)) == .seconds(3))
    }

    @Test(arguments: [
        (OperationState.pending, nil as OutcomeKind?, ProgressPhase.pending),
        (.ready, nil, .ready), (.dispatched, nil, .ready), (.executing, nil, .executing),
        (.finished, .succeeded, .succeeded), (.finished, .failed, .failed),
        (.finished, .cancelled, .cancelled), (.finished, .skipped, .skipped),
    ])
    func `a phase is a state and an outcome`(
        state: OperationState,
        outcome: OutcomeKind?,
        phase: ProgressPhase
    ) {
        #expect(ProgressPhase(state, outcome) == phase)
    }

    // MARK: - The line

    @Test(arguments: [
        (
            120,
            "wordcount [████████░░░░░░░░░░░░░░░░░░░░] 12/40 12 running 8 ready 1 failed"
                + " 2 skipped 0:12 ETA 0:16"
        ),
        (79, "wordcount [██░░░░░░░] 12/40 12 running 8 ready 1 failed 2 skipped 0:12 ETA 0:16"),
        (60, "wordcount 12/40 12 running 1 failed 2 skipped 0:12 ETA 0:16"),
        (40, "wordcount 12/40 1 failed ETA 0:16"),
        (20, "wordcount 12/40"),
        (14, "word…unt 12/40"),
        (7, "12/40"),
        (3, "12/"),
    ])
    func `a line says what fits`(width: Int, expected: String) {
        let line = ProgressLine(style: unicode).text(for: halfway(), at: at(12), width: width)

        #expect(line == expected)
        #expect(TerminalText.width(line) <= width)
    }

    @Test func `a dumb terminal gets a line of ASCII`() {
        let line = ProgressLine(style: ascii).text(
            for: halfway(name: "wörter “a”"),
            at: at(12),
            width: 100
        )

        #expect(
            line
                == "w?rter \"a\" [########--------------------] 12/40 12 running 8 ready"
                + " 1 failed 2 skipped 0:12 ETA 0:16"
        )
    }

    @Test func `colours add no width and are reset`() {
        let plain = ProgressLine(style: unicode).text(for: halfway(), at: at(12), width: 60)
        let line = ProgressLine(style: colored).text(for: halfway(), at: at(12), width: 60)

        #expect(line.contains("\u{1B}[31;1m1 failed\u{1B}[0m"))
        #expect(TerminalText.line(line) == plain)
    }

    @Test func `no line of any width is wider than asked`() {
        for width in 1...130 {
            for style in [unicode, ascii] {
                let line = ProgressLine(style: style).text(
                    for: halfway(name: "数え上げる長い名前"),
                    at: at(12),
                    width: width
                )
                #expect(TerminalText.width(line) <= width, "\(width): \(line)")
            }
        }
    }

    @Test func `a name cannot speak to the terminal`() {
        let line = ProgressLine(style: unicode).text(
            for: halfway(name: "a\u{1B}]0;title\u{7}b\u{1B}[2Jc\nd"),
            at: at(12),
            width: 100
        )

        #expect(line.hasPrefix("abc\\u{a}d "))
        #expect(!line.contains("\u{1B}"))
    }

    @Test func `a full bar means finished`() {
        var model = ProgressModel(startedAt: at(0))
        let group = model.addGroup(name: "g")
        model.operationsAdded(1_000, to: group, work: 1_000)
        for _ in 0..<999 {
            model.operationMoved(in: group, from: .pending, to: .succeeded, work: 1, at: at(1))
        }
        let line = ProgressLine(style: unicode)
        #expect(line.text(for: model.groups[group], at: at(1), width: 79).contains("░"))

        model.operationMoved(in: group, from: .pending, to: .succeeded, work: 1, at: at(1))

        #expect(!line.text(for: model.groups[group], at: at(1), width: 79).contains("░"))
    }

    @Test func `a change of state is one line`() {
        let change = StateChangeLine(style: .plain)

        let failed = change.text(
            for: halfway(),
            operation: "count-a\nfake",
            phase: .failed,
            duration: .milliseconds(1_234),
            detail: "exit code 3"
        )
        let started = change.text(
            for: halfway(),
            operation: "merge",
            phase: .executing,
            duration: nil
        )

        #expect(failed == "[12/40] failed count-a\\u{a}fake (1.2s): exit code 3")
        #expect(started == "[12/40] running merge")
    }
}
