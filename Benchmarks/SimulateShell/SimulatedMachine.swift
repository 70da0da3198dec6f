import HeapModule
import OperonCore
import OperonModel
import OperonRuntime

/// The clock of a seed, and what happens when. Time passes while nothing else can be done, and now
/// and then between two jobs.
///
/// `@unchecked Sendable`: everything in this process runs on one thread.
final class SimulatedMachine: @unchecked Sendable {
    private struct Timer: Comparable {
        let time: Timestamp
        /// Orders timers of the same time.
        let number: UInt64
        let action: @Sendable () -> Void

        static func < (left: Timer, right: Timer) -> Bool {
            (left.time, left.number) < (right.time, right.number)
        }

        static func == (left: Timer, right: Timer) -> Bool { left.number == right.number }
    }

    /// It was a thousand seconds ago that the machine was started.
    static let start = Timestamp(nanoseconds: 1_000_000_000_000)
    private static let startDate = WallTime(nanosecondsSince1970: 1_790_000_000_000_000_000)

    private(set) var now = start
    /// How far the calendar was set.
    private var shift = Duration.zero
    /// The latest date that it has had.
    private(set) var latestDate = startDate
    var random: SeededGenerator
    private var timers = Heap<Timer>()
    private var lastNumber: UInt64 = 0
    /// Nobody sleeps any more.
    private var isOver = false
    private var sleepers: [UInt64: CheckedContinuation<Void, any Error>] = [:]

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    /// Since the start.
    var elapsed: Duration { now - Self.start }

    var source: TimeSource {
        TimeSource(
            now: { self.now },
            wall: { self.date },
            sleep: { try await self.sleep(until: $0) },
            sleepUntilDate: { date in
                // As the clock of the machine does it, which may be set meanwhile.
                while date > self.date {
                    try await self.sleep(for: min(date - self.date, .seconds(10)))
                }
            }
        )
    }

    /// The date as it would be if nobody set the calendar.
    var rightDate: WallTime { Self.startDate + elapsed }

    /// What the calendar shows.
    var date: WallTime {
        let date = rightDate + shift
        latestDate = max(latestDate, date)
        return date
    }

    /// Sets the calendar right.
    func setRight() { set(by: .zero - shift) }

    func set(by step: Duration) {
        _ = date
        shift += step
    }

    func at(_ time: Timestamp, _ action: @escaping @Sendable () -> Void) {
        lastNumber += 1
        timers.insert(Timer(time: max(time, now), number: lastNumber, action: action))
    }

    func after(_ duration: Duration, _ action: @escaping @Sendable () -> Void) {
        at(now + duration, action)
    }

    /// Whether nothing is left to happen.
    var isIdle: Bool { timers.isEmpty && JobQueue.isEmpty }

    /// Runs everything until this is true. Returns whether it became true in this many steps.
    func run(steps: Int, until isDone: () -> Bool) -> Bool {
        for _ in 0..<steps {
            if isDone() { return true }
            // Now and then something else happens first, as if the jobs took that long.
            let isLong = !timers.isEmpty && draw(0.02)
            if !isLong, JobQueue.runOne(random.next()) { continue }
            guard let timer = timers.popMin() else { return false }
            now = timer.time
            timer.action()
        }
        return false
    }

    /// Ends all waiting, and runs what is left to be done.
    func finish() {
        isOver = true
        timers = Heap()
        repeat {
            let sleepers = sleepers
            self.sleepers = [:]
            for id in sleepers.keys.sorted() {
                sleepers[id]?.resume(throwing: CancellationError())
            }
        } while JobQueue.runOne(random.next()) || !sleepers.isEmpty
    }

    func sleep(for duration: Duration) async throws { try await sleep(until: now + duration) }

    private func sleep(until time: Timestamp) async throws {
        lastNumber += 1
        let id = lastNumber
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation {
                (continuation: CheckedContinuation<Void, any Error>) in
                guard !isOver, !Task.isCancelled else {
                    return continuation.resume(throwing: CancellationError())
                }
                sleepers[id] = continuation
                at(time) { self.sleepers.removeValue(forKey: id)?.resume() }
            }
        } onCancel: {
            sleepers.removeValue(forKey: id)?.resume(throwing: CancellationError())
        }
    }

    /// A duration of at least zero and less than this one.
    func draw(upTo longest: Duration) -> Duration {
        .nanoseconds(Int64(random.next() % UInt64(max(1, longest.nanoseconds))))
    }

    /// A number from 0 on; 0 if there is none.
    func draw(below count: Int) -> Int { Int(random.next() % UInt64(max(1, count))) }

    func draw(_ probability: Double) -> Bool { random.fraction() < probability }

    func pick<Element>(_ elements: [Element]) -> Element { elements[draw(below: elements.count)] }
}
