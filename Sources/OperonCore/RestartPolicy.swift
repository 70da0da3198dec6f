/// Decides whether a program that ended is started again, and after which pause. Its supervisor
/// drives it. It uses no clock, and takes its randomness from its seed.
package struct RestartPolicy: Sendable {
    package struct Configuration: Hashable, Sendable {
        /// The first pause. Each further pause doubles it.
        package var pauseMin = Duration.milliseconds(500)
        /// The longest pause: a host whose problem is solved is back within half a minute.
        package var pauseMax = Duration.seconds(30)
        /// After a run of this length, earlier ends no longer count.
        package var stableAfter = Duration.seconds(60)
        /// Exit codes that another start would not change: 0 is a drain, 2 a usage error, 130 and
        /// 143 a request to end at once.
        package var finalCodes: Set<Int32> = [0, 2, 130, 143]

        package init() {}
    }

    /// How the program ended.
    package enum End: Hashable, Sendable {
        case exit(code: Int32)
        case signal(Int32)
        /// The program could not be started at all.
        case notStarted
    }

    package enum Step: Hashable, Sendable {
        case restart(after: Duration)
        case end(code: Int32)
    }

    private let configuration: Configuration
    private var generator: SeededGenerator
    /// Ends since the last run of at least `stableAfter`.
    private var ends = 0

    package init(configuration: Configuration = Configuration(), seed: UInt64) {
        self.configuration = configuration
        generator = SeededGenerator(seed: seed)
    }

    /// The program ended after running for `lived`. `wasAsked`: it was asked to end.
    package mutating func ended(_ end: End, after lived: Duration, wasAsked: Bool) -> Step {
        switch end {
        case .exit(let code) where wasAsked || configuration.finalCodes.contains(code):
            return .end(code: code)
        case .signal(let number) where wasAsked:
            // As a shell reports it.
            return .end(code: 128 + number)
        case .notStarted where wasAsked: return .end(code: 0)
        case .exit, .signal, .notStarted: break
        }
        ends = lived >= configuration.stableAfter ? 1 : ends + 1
        return .restart(after: nextPause())
    }

    /// Between half of the pause and the whole, so that many programs that ended together restart
    /// one by one.
    private mutating func nextPause() -> Duration {
        var pause = configuration.pauseMin
        // Bounded: it stops doubling at the longest pause.
        for _ in 1..<max(1, ends) where pause < configuration.pauseMax { pause *= 2 }
        pause = min(pause, configuration.pauseMax)
        return pause * Double.random(in: 0.5...1, using: &generator)
    }
}
