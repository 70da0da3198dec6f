import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// Whether a process is started, given the times of its files.
@Suite struct StartDecisionTests {
    private static func file(_ path: String, _ seconds: Int64?, _ nanoseconds: Int64 = 0)
        -> ObservedFile
    {
        guard let seconds else { return ObservedFile(path, .missing) }
        let time = ModificationTime(seconds: seconds, nanoseconds: nanoseconds)
        return ObservedFile(path, .exists(modified: time))
    }

    private static let locked = ObservedFile("p", .unknown(why: "Permission denied"))

    struct Row: Sendable {
        var produced: [ObservedFile]
        var consumed: [ObservedFile]
        var isUpToDate: Bool

        init(_ produced: [ObservedFile], _ consumed: [ObservedFile], _ isUpToDate: Bool) {
            self.produced = produced
            self.consumed = consumed
            self.isUpToDate = isUpToDate
        }
    }

    static let rows: [Row] = [
        // Newer, equal, older by a nanosecond.
        Row([file("p", 5, 1)], [file("c", 5)], true), Row([file("p", 5)], [file("c", 5)], true),
        Row([file("p", 4, 999_999_999)], [file("c", 5)], false),
        Row([file("p", 5)], [file("c", 5, 1)], false),
        // The oldest product and the newest consumed file count, wherever they are in the lists.
        Row([file("p", 9), file("q", 3)], [file("c", 4), file("d", 1)], false),
        Row([file("p", 3), file("q", 9)], [file("c", 1), file("d", 4)], false),
        Row([file("p", 4), file("q", 9)], [file("c", 1), file("d", 4)], true),
        // Without consumed files, it is enough that the products exist.
        Row([file("p", -7)], [], true), Row([file("p", nil)], [], false),
        // Times before 1970.
        Row([file("p", -2)], [file("c", -1)], false), Row([file("p", -1)], [file("c", -2)], true),
        Row([file("p", .max)], [file("c", .min)], true),
        // Any product that is missing or not known.
        Row([file("p", 9), file("q", nil)], [file("c", 1)], false), Row([locked], [], false),
        // Nothing is produced.
        Row([], [], false), Row([], [file("c", 1)], false),
    ]

    @Test(arguments: rows)
    func `a process is started unless every product is there and none is older`(row: Row) {
        let decision = StartDecision(
            produced: row.produced,
            consumed: row.consumed,
            skipsIfUpToDate: true,
            isRepeat: false
        )
        #expect(decision == (row.isUpToDate ? .upToDate : .start))
        let other = StartDecision(
            produced: row.produced,
            consumed: row.consumed,
            skipsIfUpToDate: false,
            isRepeat: false
        )
        #expect(other == .start)
        // An earlier attempt may have left what it had not finished.
        let again = StartDecision(
            produced: row.produced,
            consumed: row.consumed,
            skipsIfUpToDate: true,
            isRepeat: true
        )
        #expect(again == .start)
    }

    private func message(_ decision: StartDecision) -> String {
        guard case .fail(let error) = decision else { return "\(decision)" }
        #expect(error.isRetryable)
        return error.description
    }

    @Test(arguments: [true, false])
    func `a consumed file that is missing fails the attempt, and is named`(skips: Bool) {
        let there = Self.file("c", 1)
        let missing = StartDecision(
            produced: skips ? [Self.file("p", 9)] : [],
            consumed: [there, Self.file("in/x y", nil), Self.locked],
            skipsIfUpToDate: skips,
            isRepeat: false
        )
        let hidden = StartDecision(
            produced: [],
            consumed: [there, Self.locked],
            skipsIfUpToDate: skips,
            isRepeat: false
        )

        #expect(
            message(missing)
                == "the file “in/x y”, which it consumes, does not exist (and 1 more of its files)"
        )
        #expect(
            message(hidden)
                == "the file “p”, which it consumes, cannot be looked at: Permission denied"
        )
    }

    @Test func `a product that is missing after the success is a failure that may be retried`() {
        let there = Self.file("p", 1)
        #expect(ObservedFile.missingProduct(among: [there]) == nil)
        let error = ObservedFile.missingProduct(among: [there, Self.file("out/a", nil)])
        #expect(error?.isRetryable == true)
        #expect(
            error?.description
                == "the file “out/a”, which it produces, does not exist after its success"
        )
    }

    @Test func `unfinished is what a process changed or made, and nothing that was not known`() {
        let before = [
            Self.file("same", 5), Self.file("changed", 5), Self.file("made", nil),
            Self.file("gone", 5), Self.file("never", nil), Self.locked, Self.file("back", 9),
        ]
        let after = [
            Self.file("same", 5), Self.file("changed", 5, 1), Self.file("made", 1),
            Self.file("gone", nil), Self.file("never", nil), Self.file("p", 7),
            Self.file("back", 1),
        ]

        let places = ObservedFile.unfinished(before: before, after: after)

        #expect(places.map { before[$0].path } == ["changed", "made", "back"])
    }

    @Test func `a grant says whether an earlier attempt may have started`() throws {
        var configuration = SchedulerBench.noReadAhead
        configuration.beat = .seconds(100_000)
        configuration.lease = .seconds(300_000)
        var bench = SchedulerBench(configuration)
        bench.join()
        try bench.submit([.nothing("a") { $0.retry = RetryPolicy(limit: 1) }])
        func repeats(_ effects: Scheduler.Effects) -> [Bool] {
            effects.messages.flatMap { message -> [Bool] in
                guard case .dispatch(_, let grants) = message.body else { return [] }
                return grants.map(\.isRepeat)
            }
        }

        #expect(repeats(bench.drain()) == [false])
        bench.giveBack("a")
        #expect(repeats(bench.drain()) == [false])
        bench.start("a")
        bench.finish("a", .failed(.timeout))
        bench.advance(by: .seconds(3_600))
        #expect(repeats(bench.drain()) == [true])
    }

    @Test func `only a success is up to date, whatever a worker says`() throws {
        var bench = SchedulerBench()
        bench.join()
        try bench.submit([.nothing("a"), .nothing("b")])
        for (name, end) in [("a", AttemptEnd.succeeded), ("b", .failed(.timeout))] {
            bench.start(name)
            var result = bench.result(end)
            result.isUpToDate = true
            bench.send(.finished(bench.attempt(name).held, result), from: 0)
        }

        #expect(bench.outcome("a") == .succeeded)
        #expect(bench.scheduler.isUpToDate(bench.id("a")))
        #expect(!bench.scheduler.isUpToDate(bench.id("b")))
    }
}
