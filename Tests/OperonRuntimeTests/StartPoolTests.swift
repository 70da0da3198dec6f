import Glibc
import NIOConcurrencyHelpers
import OperonModel
import Testing

@testable import OperonRuntime

/// Starts that take long: here they wait for the test, and time passes when it says so.
@Suite(.timeLimit(.minutes(5))) struct StartPoolTests {
    /// What became of a start, in short.
    private enum Word: Equatable {
        case failed(String)
        case stopped
        case timedOut(String)
        case short
    }

    /// A pool whose starts with a directory hang until they are let go of.
    private final class Hanging: Sendable {
        let pool: StartPool
        private let time: NIOLockedValueBox<Timestamp>
        private let gate: Gate
        private let begun: AsyncStream<UInt64>
        private let ends: AsyncStream<(UInt64, Word)>
        private let ended: AsyncStream<(UInt64, Word)>.Continuation

        private final class Gate: Sendable {
            let descriptor: Descriptor

            init() throws { descriptor = try Descriptor.semaphore() }
        }

        init(threadsMax: Int = 8, hasThreads: Bool = true) throws {
            let time = NIOLockedValueBox(Timestamp(nanoseconds: 1_000))
            let gate = try Gate()
            self.time = time
            self.gate = gate
            let (begun, beginning) = AsyncStream<UInt64>.makeStream()
            self.begun = begun
            (ends, ended) = AsyncStream.makeStream()
            var configuration = StartPool.Configuration()
            configuration.threadsMax = threadsMax
            configuration.now = { time.withLockedValue { $0 } }
            configuration.isWatched = false
            if !hasThreads {
                configuration.startThread = { _, _ throws(SystemError) in
                    throw SystemError(doing: "starting a thread", code: EAGAIN)
                }
            }
            pool = try StartPool(configuration) { request, _ in
                if request.directory != nil {
                    beginning.yield(request.id)
                    gate.descriptor.await()
                }
                return .failed(SpawnFailure(message: "\(request.id)"))
            } deliver: { _ in
                Issue.record("nothing was started")
            }
        }

        func submit(
            _ id: UInt64,
            hangs: Bool,
            timeout: Duration? = nil,
            stop: StopSignal = StopSignal()
        ) {
            pool.submit(
                SpawnRequest(
                    id: id,
                    arguments: ["program"],
                    environment: [],
                    path: "",
                    directory: hangs ? "/hung" : nil,
                    niceness: 0,
                    timeout: timeout,
                    grace: .zero,
                    limits: ProcessLimits(CommandDescription(arguments: ["program"])),
                    group: nil,
                    logBytes: 0,
                    outputPath: "",
                    stopSignal: stop,
                    onLog: nil,
                    state: nil,
                    completion: { [ended] in ended.yield((id, Self.word($0))) }
                )
            )
        }

        private static func word(_ outcome: SpawnRequest.Outcome) -> Word {
            switch outcome {
            case .ended: .failed("it ran")
            case .failed(let failure): .failed(failure.message)
            case .stopped: .stopped
            case .timedOut(let why): .timedOut(why)
            case .short: .short
            }
        }

        /// The next one that hangs.
        func nextHanging() async -> UInt64? {
            for await id in begun { return id }
            return nil
        }

        func nextEnd() async -> (id: UInt64, word: Word)? {
            for await end in ends { return end }
            return nil
        }

        /// Lets this much time pass, and looks.
        func pass(_ duration: Duration) {
            time.withLockedValue { $0 = $0 + duration }
            pool.look()
        }

        func release(_ count: Int) { for _ in 0..<count { gate.descriptor.signal() } }
    }

    @Test func `a start that hangs keeps no other from starting`() async throws {
        let hanging = try Hanging()
        hanging.submit(1, hangs: true)
        #expect(await hanging.nextHanging() == 1)

        hanging.submit(2, hangs: false)
        hanging.pass(.milliseconds(50))
        let second = await hanging.nextEnd()
        hanging.release(1)
        let first = await hanging.nextEnd()

        #expect(second?.id == 2)
        #expect(second?.word == .failed("2"))
        #expect(first?.id == 1)
        hanging.pool.stop()
    }

    @Test func `starts that are quick share one thread`() async throws {
        let hanging = try Hanging()

        for id in 1...100 as ClosedRange<UInt64> { hanging.submit(id, hangs: false) }
        for id in 1...100 as ClosedRange<UInt64> { #expect(await hanging.nextEnd()?.id == id) }

        #expect(hanging.pool.threadCount == 1)
        hanging.pool.stop()
    }

    @Test func `a start that hangs is reported once, when the time of its operation is over`()
        async throws
    {
        let hanging = try Hanging()
        hanging.submit(1, hangs: true, timeout: .seconds(5))
        #expect(await hanging.nextHanging() == 1)

        hanging.pass(.seconds(5))  // Its child is killed, which does not help.
        hanging.pass(.seconds(1))
        let end = await hanging.nextEnd()
        // It comes back when nobody waits for it; the next end is that of another one.
        hanging.release(1)
        hanging.submit(2, hangs: false)
        hanging.pass(.milliseconds(50))
        let next = await hanging.nextEnd()

        #expect(end?.id == 1)
        #expect(
            end?.word
                == .timedOut(
                    "the process had not started when its time was over: "
                        + "the system does not answer"
                )
        )
        #expect(next?.id == 2)
        hanging.pool.stop()
    }

    @Test func `a start that comes back after the kill is reported as what it was killed for`()
        async throws
    {
        let hanging = try Hanging()
        hanging.submit(1, hangs: true, timeout: .seconds(5))
        #expect(await hanging.nextHanging() == 1)

        hanging.pass(.seconds(5))
        hanging.release(1)

        guard case .timedOut? = await hanging.nextEnd()?.word else {
            Issue.record("it is told as something else")
            return
        }
        hanging.pool.stop()
    }

    @Test func `no start lasts longer than a minute`() async throws {
        let hanging = try Hanging()
        hanging.submit(1, hangs: true)
        #expect(await hanging.nextHanging() == 1)

        hanging.pass(.seconds(60))
        hanging.pass(.seconds(1))

        let message = "The process did not start within 60 s: the system does not answer."
        #expect(await hanging.nextEnd()?.word == .failed(message))
        hanging.release(1)
        hanging.pool.stop()
    }

    @Test func `a start that hangs can be cancelled`() async throws {
        let hanging = try Hanging()
        let stop = StopSignal()
        hanging.submit(1, hangs: true, stop: stop)
        #expect(await hanging.nextHanging() == 1)

        stop.cancel()
        hanging.pass(.milliseconds(50))
        hanging.pass(.seconds(1))

        #expect(await hanging.nextEnd()?.word == .stopped)
        hanging.release(1)
        hanging.pool.stop()
    }

    @Test func `what waits is given back when as many starts hang as there may be threads`()
        async throws
    {
        let hanging = try Hanging(threadsMax: 2)
        for id in [1, 2] as [UInt64] {
            hanging.submit(id, hangs: true)
            hanging.pass(.milliseconds(50))
            #expect(await hanging.nextHanging() == id)
        }

        hanging.submit(3, hangs: false)
        hanging.pass(.milliseconds(50))
        let end = await hanging.nextEnd()

        #expect(end?.id == 3)
        #expect(end?.word == .short)
        #expect(hanging.pool.threadCount == 2)
        hanging.release(2)
        hanging.pool.stop()
    }

    @Test func `what waits is given back when the system has no other thread`() async throws {
        let hanging = try Hanging(hasThreads: false)
        hanging.submit(1, hangs: true)
        #expect(await hanging.nextHanging() == 1)

        hanging.submit(2, hangs: false)
        hanging.pass(.milliseconds(50))
        let end = await hanging.nextEnd()

        #expect(end?.id == 2)
        #expect(end?.word == .short)
        hanging.release(1)
        hanging.pool.stop()
    }

    @Test func `closing waits for no start that hangs`() async throws {
        let hanging = try Hanging()
        hanging.submit(1, hangs: true)
        #expect(await hanging.nextHanging() == 1)
        hanging.submit(2, hangs: false)

        let (closed, closing) = AsyncStream<Void>.makeStream()
        hanging.pool.close { closing.finish() }
        hanging.pass(.milliseconds(50))
        hanging.pass(.seconds(1))
        for await _ in closed {}

        #expect(await hanging.nextEnd()?.id == 2)
        #expect(await hanging.nextEnd()?.word == .stopped)
        hanging.release(1)
        hanging.pool.stop()
    }
}
