import OperonCore
import OperonModel
import OperonRuntime

/// What a seed draws before it begins.
struct ShellScenario {
    enum Fault {
        case coordinatorKilled
        /// At the next passing of this place.
        case coordinatorKilledAt(CrashPoint)
        /// As before, and what is not synced is lost.
        case powerCut(CrashPoint?)
        case coordinatorLeaves
        case brokerDown
        case coordinatorCut
        case workerKilled
        case workerCut
        case diskFull
        case syncFails
        /// The calendar is set.
        case clockSet(Duration)
    }

    let workers: Int
    let slots: Int
    let clients: Int
    let graphsPerClient: Int
    let operationsMax: Int
    /// The longest run of an operation.
    let runMax: Duration
    /// The probability that an attempt fails, 0…1.
    let failure: Double
    /// The probability of each kind of request of an operation, 0…1.
    let addition: Double
    /// The probability that a message is lost, 0…1.
    let loss: Double
    /// The longest way of a message.
    let delayMax: Duration
    /// The longest time of a transaction and of a sync.
    let diskMax: Duration
    let operationsPerMessage: Int
    let retention: Retention?
    let hasTriggers: Bool
    let hasIntruder: Bool
    let faults: [(time: Duration, fault: Fault)]
    /// From then on nothing fails any more.
    let healAt: Duration
    let limits: Limits
    /// Whether some operations get more inputs than they may have.
    let inputsAreLimited: Bool

    init(_ random: inout SeededGenerator) {
        func draw(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
        workers = draw(1...3)
        slots = draw(1...3)
        clients = draw(1...3)
        graphsPerClient = draw(1...3)
        operationsMax = draw(1...3) * 4
        runMax = .milliseconds(draw(1...3) == 1 ? 5_000 : 300)
        failure = draw(0...1) == 0 ? 0 : 0.15
        addition = draw(0...1) == 0 ? 0 : 0.2
        loss = draw(0...3) == 0 ? 0.03 : 0
        delayMax = .milliseconds(draw(1...20))
        diskMax = .milliseconds(draw(1...3) == 1 ? 400 : 5)
        operationsPerMessage = draw(0...1) == 0 ? 1 : 16
        retention = draw(0...3) == 0 ? Retention(graphs: draw(1...3)) : nil
        hasTriggers = draw(0...2) == 0
        hasIntruder = draw(0...3) == 0
        let length = draw(3...30)
        var faults: [(time: Duration, fault: Fault)] = []
        if draw(0...9) > 0 {
            for _ in 0..<draw(1...8) {
                faults.append(
                    (.milliseconds(draw(0...length * 1_000)), Self.fault(&random, hasTriggers))
                )
            }
        }
        self.faults = faults
        healAt = .seconds(length + 1)
        var limits = Limits()
        // Small ones, so that outputs are fetched in pieces.
        limits.inlineInputBytes = 64
        limits.chunkBytes = 48
        limits.chunksAhead = 2
        limits.cachedBytes = 600
        inputsAreLimited = draw(0...4) == 0
        if inputsAreLimited { limits.inputsBytes = 350 }
        self.limits = limits
    }

    /// Events in hand are noted in a file, which the model store does not have.
    private static let points = CrashPoint.allCases.filter { point in
        point != .inHand && point != .requestInHand
    }

    private static func fault(_ random: inout SeededGenerator, _ hasTriggers: Bool) -> Fault {
        let point = points.randomElement(using: &random) ?? .decided
        // A trigger that is added at a date of the future has its first tick after that.
        // After a restart, the retry of an operation in Swift waits for the date that was
        // stored: here, no longer than until the end of the seed.
        let latest = hasTriggers ? 0 : 200
        let step = Duration.seconds(Int.random(in: -4_000...latest, using: &random))
        let faults: [Fault] = [
            .coordinatorKilled, .coordinatorKilledAt(point), .coordinatorKilledAt(point),
            .powerCut(nil), .powerCut(point), .powerCut(point), .coordinatorLeaves, .brokerDown,
            .coordinatorCut, .workerKilled, .workerKilled, .workerCut, .diskFull, .syncFails,
            .clockSet(step),
        ]
        return faults.randomElement(using: &random) ?? .brokerDown
    }
}
