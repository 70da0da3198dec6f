import ClusterKit
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import OperonRuntime
import Testing

/// Commands that meet, in the middle, what they are about.
@Suite(.serialized, .timeLimit(.minutes(15))) struct CommandRaceTests {
    private static let rounds = 1_000

    /// Moves the start of one side before or behind that of the other, so that each wins about as
    /// often, however fast the machine is: towards whoever lost, in larger steps the longer it
    /// loses.
    private struct Handicap {
        /// How long the second side waits; negative: how long the first does.
        private var delay = Duration.zero
        private var step = stepMin
        private var firstWonLast: Bool?

        private static let stepMin = Duration.microseconds(2)
        private static let stepMax = Duration.milliseconds(20)
        private static let delayMax = Duration.milliseconds(500)

        mutating func note(firstWon: Bool) {
            let isRepeated = firstWon == firstWonLast
            step = isRepeated ? min(step * 2, Self.stepMax) : max(step / 4, Self.stepMin)
            firstWonLast = firstWon
            delay += firstWon ? .zero - step : step
            delay = min(max(delay, .zero - Self.delayMax), Self.delayMax)
        }

        /// A timer is too coarse for what is raced here.
        private static func wait(_ time: Duration) async {
            let end = ContinuousClock.now + time
            while ContinuousClock.now < end { await Task.yield() }
        }

        /// Runs both at once.
        func race(
            _ first: @escaping @Sendable () async throws -> Void,
            _ second: @escaping @Sendable () async throws -> Void
        ) async throws {
            let delay = delay
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    await Self.wait(.zero - delay)
                    try await first()
                }
                group.addTask {
                    await Self.wait(delay)
                    try await second()
                }
                try await group.waitForAll()
            }
        }
    }

    /// A cluster with a file, whose one worker has gates for what these tests run.
    private static func run(
        _ place: Place,
        slots: Int,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (TestCluster) async throws -> Void
    ) async throws {
        try await TestCluster.run(.real(place, store: .file)) { cluster in
            try await cluster.join("w", slots: slots)
            try await body(cluster)
        }
    }

    /// What the client was told of each operation, and how it ended.
    private struct Tally {
        var cancelled = 0
        var succeeded = 0
    }

    @Test(arguments: Place.allCases)
    func `cancel and finish race a thousand times, and each operation has one outcome`(
        place: Place
    ) async throws {
        try await Self.run(place, slots: Self.rounds) { cluster in
            let names = (0..<Self.rounds).map { "o\($0)" }
            for name in names { await cluster.gates.close(name) }
            try await cluster.submit("race", names.map { ($0, [], nil) })
            try await cluster.gates.waitForStarts(Self.rounds)

            var handicap = Handicap()
            var tally = Tally()
            for (number, name) in names.enumerated() {
                let selector = OperationSelector(graph: "race", operation: name)
                let told = Told()
                try await handicap.race {
                    let view = try await cluster.client.cancel(
                        .operation(selector),
                        CancelRequest()
                    )
                    await told.take(view)
                } _: {
                    await cluster.gates.open(name)
                }
                let outcome = try await cluster.outcome(of: number)
                switch outcome {
                case .cancelled: tally.cancelled += 1
                case .succeeded: tally.succeeded += 1
                case .failed, .skipped: Issue.record("\(name) ended \(outcome)")
                }
                let wasInTime = await told.affected
                #expect(wasInTime == 1 || outcome == .succeeded, "\(name): \(wasInTime)")
                handicap.note(firstWon: outcome == .cancelled)
            }

            #expect(tally.cancelled >= 50 && tally.succeeded >= 50, "\(tally)")
            #expect(await cluster.gates.starts.values.allSatisfy { $0 == 1 })
            try await cluster.expectOneOutcomeEach(Self.rounds, of: "race")
        }
    }

    @Test(arguments: Place.allCases)
    func `suspend and dispatch race, and nothing starts once a suspension is effective`(
        place: Place
    ) async throws {
        // Each race needs an operation that runs and is let go, and a slot for the one behind it.
        try await Self.run(place, slots: 2 * Self.rounds) { cluster in
            let numbers = Array(0..<Self.rounds)
            for number in numbers { await cluster.gates.close("d\(number)") }
            try await cluster.submit(
                "race",
                numbers.map { ("d\($0)", [], nil) }
                    + numbers.map { ("o\($0)", ["d\($0)"], $0 % 2 == 0 ? nil : "q\($0)") }
            )
            try await cluster.gates.waitForStarts(Self.rounds)

            var handicap = Handicap()
            var held: [Int] = []
            for number in numbers {
                let target = Self.target(number)
                try await handicap.race {
                    var request = SuspendRequest()
                    request.wait = 60
                    let view = try await cluster.client.suspend(target, request)
                    #expect(view.isEffective)
                } _: {
                    await cluster.gates.open("d\(number)")
                }
                // The answer is here: from now on its worker starts it no more. One that it has
                // started may reach its gate behind the answer.
                let isHeld = await !cluster.hasStarted(Self.rounds + number)
                if isHeld { held.append(number) }
                handicap.note(firstWon: isHeld)
            }
            for number in numbers where !held.contains(number) {
                #expect(try await cluster.outcome(of: Self.rounds + number) == .succeeded)
            }

            #expect(held.count >= 50 && held.count <= Self.rounds - 50, "\(held.count) held")
            let starts = await cluster.gates.starts
            let late = held.filter { starts["o\($0)"] != nil }
            #expect(late == [], "started after the suspension was effective")
            for number in held { _ = try await cluster.client.resume(Self.target(number)) }
            for number in held {
                #expect(try await cluster.outcome(of: Self.rounds + number) == .succeeded)
            }
            #expect(await cluster.gates.starts.values.allSatisfy { $0 == 1 })
            try await cluster.expectOneOutcomeEach(2 * Self.rounds, of: "race")
        }
    }

    /// The operation itself, or its queue, by turns.
    private static func target(_ number: Int) -> TargetSelector {
        number % 2 == 0
            ? .operation(OperationSelector(graph: "race", operation: "o\(number)"))
            : .queue("q\(number)")
    }

    @Test func `a graph of 100,000 operations is cancelled in one call, and starts nothing more`()
        async throws
    {
        try await Self.run(.inProcess, slots: 8) { cluster in
            let names = (0..<100_000).map { "o\($0)" }
            for name in names { await cluster.gates.close(name) }
            // Chains of ten: some of it is ready, most of it waits.
            try await cluster.submit(
                "large",
                names.indices.map { index in
                    (names[index], index % 10 == 0 ? [] : [names[index - 1]], nil)
                }
            )
            try await cluster.gates.waitForStarts(8)
            let view = try await cluster.client.cancel(.graph("large"), CancelRequest())
            let started = await cluster.gates.starts
            let inFlight = cluster.history.current.attempts.count

            #expect(view.affected == names.count)
            #expect(view.running + view.finished == names.count)
            #expect(view.running == inFlight)
            await cluster.service.waitUntilFinished(GraphID(rawValue: 0))
            #expect(await cluster.gates.starts == started, "something started after the answer")
            #expect(cluster.history.current.attempts.count == inFlight, "more was given to workers")
            let counts = try await cluster.client.graph("large").counts
            #expect(counts.cancelled == names.count)
        }
    }

    @Test(arguments: 0..<10)
    func `a graph that is cancelled at full speed gives nothing more to workers`(
        round: Int
    ) async throws {
        try await Self.run(.inProcess, slots: 8) { cluster in
            let count = 3_000
            try await cluster.submit("fast", (0..<count).map { ("o\($0)", [], nil) })
            try await cluster.gates.waitForStarts(100 + 50 * round)
            var request = CancelRequest()
            request.wait = 60
            let view = try await cluster.client.cancel(.graph("fast"), request)
            // Everything has its outcome: no start is possible.
            let started = await cluster.gates.starts
            let attempts = cluster.history.current.attempts.count

            #expect(view.isEffective)
            #expect(view.affected < count)
            // What was given to the worker before may have started meanwhile, and nothing else.
            let counts = try await cluster.client.graph("fast").counts
            #expect(counts.succeeded + counts.cancelled == count)
            #expect(attempts <= count - view.affected + view.running)
            await cluster.service.waitUntilFinished(GraphID(rawValue: 0))
            #expect(await cluster.gates.starts == started)
            #expect(started.values.allSatisfy { $0 == 1 })
            try await cluster.expectOneOutcomeEach(count, of: "fast")
        }
    }
}

/// What an answer said, from the task that got it to the one that looks.
private actor Told {
    private(set) var affected = 0

    func take(_ view: CommandView) { affected = view.affected }
}

extension TestCluster {
    /// Operations of the kind with gates, each with what it depends on.
    fileprivate func submit(
        _ name: String,
        _ operations: [(name: String, after: [String], queue: String?)]
    ) async throws {
        let described = operations.map { operation in
            var description = OperationDescription(
                name: operation.name,
                work: .registered(kind: "Play", input: .empty)
            )
            description.dependencies = operation.after.map { DependencyDescription($0) }
            if let queue = operation.queue { description.queue = queue }
            return description
        }
        try await submit(GraphDescription(name: name, operations: described))
    }

    /// Of an operation of the first graph, when it has one.
    fileprivate func outcome(of number: Int) async throws -> OutcomeKind {
        try await history.wait { $0[number].outcome != nil }
        return try #require(history.current[number].outcome?.kind)
    }

    /// Whether the coordinator knows that it runs or has run.
    fileprivate func hasStarted(_ number: Int) async -> Bool {
        let id = OperationID(graph: GraphID(rawValue: 0), index: UInt32(number))
        return await service.query { [.executing, .finished].contains($0.state(of: id)) }
    }

    /// The coordinator decided one outcome for each of so many operations, and its store says the
    /// same.
    fileprivate func expectOneOutcomeEach(_ count: Int, of graph: String) async throws {
        let state = history.current
        #expect(state.finished.count == count)
        #expect(Set(state.finished).count == state.finished.count)
        let counts = try await client.graph(graph).counts
        #expect(counts.total == count && counts.finished == count)
        let outcomes = state.operations.values.map { $0.outcome?.kind }
        #expect(counts.succeeded == outcomes.count { $0 == .succeeded })
        #expect(counts.cancelled == outcomes.count { $0 == .cancelled })
    }
}
