/// Decides whether a program that ended is started again, and after which pause. Driven by its
/// supervisor; it knows no clock, and chance comes from its seed.
package struct RestartPolicy: Sendable {
    package struct Configuration: Hashable, Sendable {
        /// The first pause; each further one doubles it.
        package var pauseMin = Duration.milliseconds(500)
        /// No pause is longer: a host whose trouble is over is back within half a minute.
        package var pauseMax = Duration.seconds(30)
        /// A life of this length forgets the ends before it.
        package var goodLife = Duration.seconds(60)
        /// Exit codes that another start would not change: 0 is a drain, 2 a wrong call, 130 and
        /// 143 somebody's wish that it be over at once.
        package var finalCodes: Set<Int32> = [0, 2, 130, 143]

        package init() {}
    }

    /// How it ended.
    package enum End: Hashable, Sendable {
        case exit(code: Int32)
        case signal(Int32)
        /// It could not be started at all.
        case notStarted
    }

    package enum Step: Hashable, Sendable {
        case restart(after: Duration)
        case end(code: Int32)
    }

    private let configuration: Configuration
    private var generator: SeededGenerator
    /// Ends since the last good life.
    private var ends = 0

    package init(configuration: Configuration = Configuration(), seed: UInt64) {
        self.configuration = configuration
        generator = SeededGenerator(seed: seed)
    }

    /// It ended after a life of `lived`. `wasAsked`: somebody wants it to be over.
    package mutating func ended(_ end: End, after lived: Duration, wasAsked: Bool) -> Step {
        switch end {
        case .exit(let code) where wasAsked || configuration.finalCodes.contains(code):
            return .end(code: code)
        case .signal(let number) where wasAsked:
            // As a shell tells it.
            return .end(code: 128 + number)
        case .notStarted where wasAsked: return .end(code: 0)
        case .exit, .signal, .notStarted: break
        }
        ends = lived >= configuration.goodLife ? 1 : ends + 1
        return .restart(after: nextPause())
    }

    /// Between half of it and the whole, so that many that ended together come back one by one.
    private mutating func nextPause() -> Duration {
        var pause = configuration.pauseMin
        // Bounded: it stops doubling at the longest pause.
        for _ in 1..<max(1, ends) where pause < configuration.pauseMax { pause *= 2 }
        pause = min(pause, configuration.pauseMax)
        return pause * Double.random(in: 0.5...1, using: &generator)
    }
}
