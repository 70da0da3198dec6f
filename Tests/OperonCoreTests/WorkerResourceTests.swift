import OperonCore
import OperonModel
import OperonTestKit
import Testing

/// What a worker gives its operations of its resources.
struct WorkerResourceTests {
    private static func bench(
        slots: Int = 8,
        _ resources: ResourceAmounts,
        processors: [Int] = [],
        gpus: [String] = []
    ) -> WorkerBench {
        var bench = WorkerBench(slots: slots) {
            $0.offer.resources = resources
            $0.processors = processors
            $0.gpus = gpus
        }
        bench.join()
        return bench
    }

    /// What each started operation was given, by its number.
    private func allocations(_ bench: WorkerBench) -> [UInt64: Allocation] {
        Dictionary(
            bench.effects.starts.map { ($0.held.attempt.number, $0.allocation) },
            uniquingKeysWith: { first, _ in first }
        )
    }

    @Test func `a hello tells what the worker offers`() {
        var bench = WorkerBench { $0.offer.resources = [.cpus(2), .gpus(1)] }

        bench.drive(.linkUp(connection: 1))

        #expect(bench.effects.hellos.map(\.offer.resources) == [[.cpus(2), .gpus(1)]])
    }

    @Test func `graphics processors are given to one operation at a time`() {
        var bench = Self.bench([.gpus(3)], gpus: ["0", "1", "GPU-7"])

        bench.dispatch([1]) { $0.resources = [.gpus(1)] }
        bench.dispatch([2, 3]) { $0.resources = [.gpus(2)] }

        #expect(bench.effects.started == [1, 2])
        #expect(allocations(bench)[1]?.gpus == ["0"])
        #expect(allocations(bench)[2]?.gpus == ["1", "GPU-7"])
        bench.end(1)
        #expect(bench.effects.started == [1, 2])
        bench.end(2)
        #expect(bench.effects.started == [1, 2, 3])
        #expect(allocations(bench)[3]?.gpus == ["0", "1"])
        #expect(
            allocations(bench)[2]?.variables == [
                "CUDA_VISIBLE_DEVICES": "1,GPU-7", "ROCR_VISIBLE_DEVICES": "1,GPU-7",
            ]
        )
    }

    @Test func `whole processors are not shared, and fractions share one`() {
        var bench = Self.bench([.cpus(4)], processors: [0, 2, 4, 6])

        bench.dispatch([1]) { $0.resources = [.cpus(2)] }
        bench.dispatch([2, 3]) { $0.resources = [.cpus(0.5)] }
        bench.dispatch([4]) { $0.resources = [.cpus(1)] }

        #expect(bench.effects.started == [1, 2, 3, 4])
        let given = allocations(bench)
        #expect(given[1]?.processors == [0, 2])
        #expect(given[2]?.processors == [4])
        #expect(given[3]?.processors == [4])
        #expect(given[4]?.processors == [6])
        #expect(given[1]?.variables == ["OPERON_CPUS": "2"])
        #expect(given[2]?.variables == ["OPERON_CPUS": "0.5"])
    }

    @Test func `what is left of a processor goes to others, and whole processors are left whole`() {
        var bench = Self.bench([.cpus(3)], processors: [0, 1, 2])

        bench.dispatch([1]) { $0.resources = [.cpus(1.5)] }
        bench.dispatch([2]) { $0.resources = [.cpus(0.5)] }
        bench.dispatch([3]) { $0.resources = [.cpus(1)] }

        let given = allocations(bench)
        #expect(given[1]?.processors == [0, 1])
        #expect(given[2]?.processors == [1])
        #expect(given[3]?.processors == [2])
        // Everything is given back: the next one finds the first processors empty.
        for number: UInt64 in 1...3 { bench.end(number) }
        bench.dispatch([4]) { $0.resources = [.cpus(2)] }
        #expect(allocations(bench)[4]?.processors == [0, 1])
    }

    @Test func `an operation with all processors is bound to none`() {
        var bench = Self.bench([.cpus(2)], processors: [0, 1])

        bench.dispatch([1]) { $0.resources = [.cpus(2)] }

        #expect(allocations(bench)[1]?.processors == [])
    }

    @Test func `what the worker never has fails, and what it has not now waits its turn`() {
        var bench = Self.bench([.memory(bytes: 100)])

        bench.dispatch([1]) { $0.resources = [.memory(bytes: 70)] }
        bench.dispatch([2]) { $0.resources = [.memory(bytes: 101)] }
        bench.dispatch([3]) { $0.resources = [.memory(bytes: 40)] }
        bench.dispatch([4])

        // The third is first in line now, and nothing passes it.
        #expect(bench.effects.started == [1])
        let ends = bench.effects.events.compactMap { event -> (UInt64, AttemptEnd)? in
            guard case .finished(let held, let result) = event else { return nil }
            return (held.attempt.number, result.end)
        }
        #expect(ends.map(\.0) == [2])
        guard case .failed(let error)? = ends.first?.1 else {
            Issue.record("it did not fail: \(ends)")
            return
        }
        #expect("\(error)".contains("which its worker never has"), "\(error)")
        bench.end(1)
        #expect(bench.effects.started == [1, 3, 4])
    }

    @Test func `what an operation had is free again however it left`() {
        var bench = Self.bench([.gpus(1)], gpus: ["0"])
        bench.dispatch([1, 2, 3]) { $0.resources = [.gpus(1)] }
        #expect(bench.effects.started == [1])

        // The second never had any.
        bench.order(.cancel(WorkerBench.held(2)))
        bench.end(1, .failed(.exit(code: 1)))

        #expect(bench.effects.started == [1, 3])
    }

    @Test func `who waits for its graphics processors holds up nobody who needs none`() throws {
        var bench = Self.bench([.gpus(2)], gpus: ["0", "1"])
        bench.dispatch([1]) { $0.resources = [.gpus(1)] }
        bench.dispatch([2])
        bench.drive(.asked(1, WorkerBench.held(1).attempt, .wait(["a"])))
        bench.drive(.asked(2, WorkerBench.held(2).attempt, .wait(["a"])))
        bench.dispatch([3]) { $0.resources = [.gpus(1)] }
        #expect(allocations(bench)[3]?.gpus == ["0"])
        bench.drain()
        bench.advance(by: .seconds(2))
        let open = bench.drain().messages.lazy.compactMap { message -> [OpenRequest]? in
            guard case .beat(let beat) = message.envelope.body else { return nil }
            return beat.open
        }.first

        for request in try #require(open) {
            let ended = Verdict(
                number: request.number,
                event: request.event,
                content: .ended([.succeeded])
            )
            bench.say(.control(Control(acknowledged: 0, verdicts: [ended])))
        }
        #expect(bench.effects.answers.map(\.number) == [2])
        bench.end(3)
        #expect(bench.effects.answers.map(\.number) == [2, 1])
    }
}
