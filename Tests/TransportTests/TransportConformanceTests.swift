import OperonCore
import OperonModel
import OperonPorts
import Testing

/// What every transport promises, whatever carries it.
@Suite(.timeLimit(.minutes(5)))
struct TransportConformanceTests {
    @Test(arguments: TransportKind.allCases)
    func `up is the first event on both sides`(kind: TransportKind) async throws {
        let sides = try TransportSides(kind)
        let coordinator = try sides.coordinator()
        #expect(await coordinator.events.next() == .up)

        let worker = try sides.worker()
        #expect(await worker.events.next() == .up(connection: 1))

        try await worker.close()
        try await coordinator.close()
    }

    @Test(arguments: TransportKind.allCases)
    func `messages to a worker arrive in the order they were sent`(
        kind: TransportKind
    ) async throws {
        let (coordinator, workers) = try await TransportSides(kind).connected()
        let count = 5_000

        let sending = Task {
            for index in 0..<count {
                await coordinator.transport.send(
                    numbered(index),
                    to: workers[0].firstAddress,
                    priority: UInt8(index % 5)
                )
            }
        }

        for index in 0..<count {
            let received = number(try await workers[0].message())
            guard received == index else {
                Issue.record("message \(received) arrived as number \(index)")
                break
            }
        }
        await sending.value
        try await workers[0].close()
        try await coordinator.close()
    }

    @Test(arguments: TransportKind.allCases)
    func `events of each worker arrive in the order they were sent`(
        kind: TransportKind
    ) async throws {
        let (coordinator, workers) = try await TransportSides(kind).connected(workers: 3)
        let count = 2_000
        let senders = workers.enumerated().map { index, worker in
            Task {
                for number in 0..<count {
                    await worker.transport.send([UInt8(index)] + numbered(number), lane: .events)
                }
            }
        }

        var expected = [0, 0, 0]
        for _ in 0..<(count * 3) {
            let body = try await coordinator.message()
            let sender = Int(body[0])
            #expect(number(Array(body.dropFirst())) == expected[sender])
            expected[sender] += 1
        }

        #expect(expected == [count, count, count])
        for sender in senders { await sender.value }
        for worker in workers { try await worker.close() }
        try await coordinator.close()
    }

    /// Around the largest body that fits one frame of 131,072 bytes, with 8 bytes around it.
    @Test(
        arguments: TransportKind.allCases,
        [0, 1, 131_063, 131_064, 131_065, 262_128, 1 << 20]
    )
    func `a body of any size arrives unchanged both ways`(
        kind: TransportKind,
        size: Int
    ) async throws {
        let (coordinator, workers) = try await TransportSides(kind).connected()
        var generator = SeededGenerator(seed: UInt64(size))
        let body = (0..<size).map { _ in UInt8(truncatingIfNeeded: generator.next()) }

        await coordinator.transport.send(body, to: workers[0].firstAddress, priority: 2)
        #expect(try await workers[0].message() == body)
        for lane in [WorkerLane.events, .beats] {
            await workers[0].transport.send(body, lane: lane)
            #expect(try await coordinator.message() == body)
        }

        try await workers[0].close()
        try await coordinator.close()
    }

    @Test(arguments: TransportKind.allCases)
    func `every priority is taken`(kind: TransportKind) async throws {
        let (coordinator, workers) = try await TransportSides(kind).connected()

        for priority in [UInt8(0), 1, 2, 3, 4, 255] {
            await coordinator.transport.send(
                [priority],
                to: workers[0].firstAddress,
                priority: priority
            )
            #expect(try await workers[0].message() == [priority])
        }

        try await workers[0].close()
        try await coordinator.close()
    }

    @Test(arguments: TransportKind.allCases)
    func `a broadcast reaches every worker once`(kind: TransportKind) async throws {
        let (coordinator, workers) = try await TransportSides(kind).connected(workers: 3)

        await coordinator.transport.broadcast([1])
        await coordinator.transport.broadcast([2])

        for worker in workers {
            #expect(try await worker.message() == [1])
            #expect(try await worker.message() == [2])
            try await worker.close()
        }
        try await coordinator.close()
    }

    @Test(arguments: TransportKind.allCases)
    func `each worker gets what is addressed to it and nothing else`(
        kind: TransportKind
    ) async throws {
        let (coordinator, workers) = try await TransportSides(kind).connected(workers: 3)

        for round in UInt8(0)..<10 {
            for (index, worker) in workers.enumerated() {
                await coordinator.transport.send(
                    [UInt8(index), round],
                    to: worker.firstAddress,
                    priority: 0
                )
            }
        }

        for (index, worker) in workers.enumerated() {
            for round in UInt8(0)..<10 {
                #expect(try await worker.message() == [UInt8(index), round])
            }
            try await worker.close()
        }
        try await coordinator.close()
    }

    @Test(arguments: TransportKind.allCases)
    func `a message to nobody comes back with its address`(kind: TransportKind) async throws {
        let (coordinator, workers) = try await TransportSides(kind).connected()
        let nobody = WorkerAddress(incarnation: Incarnation(rawValue: 0xBAD), connection: 3)

        await coordinator.transport.send([1, 2, 3], to: nobody, priority: 1)

        #expect(try await coordinator.returned() == nobody)
        // The connection goes on.
        await coordinator.transport.send([4], to: workers[0].firstAddress, priority: 1)
        #expect(try await workers[0].message() == [4])
        try await workers[0].close()
        try await coordinator.close()
    }

    @Test(arguments: TransportKind.allCases)
    func `a worker hears that no coordinator is there`(kind: TransportKind) async throws {
        let (coordinator, workers) = try await TransportSides(kind).connected()
        try await coordinator.close()

        await workers[0].transport.send([1], lane: .events)
        #expect(try await workers[0].returned() == .events)
        await workers[0].transport.send([1], lane: .beats)
        #expect(try await workers[0].returned() == .beats)

        try await workers[0].close()
    }

    @Test(arguments: TransportKind.allCases)
    func `the next coordinator is reached by workers that stayed`(
        kind: TransportKind
    ) async throws {
        let sides = try TransportSides(kind)
        let (first, workers) = try await sides.connected()
        try await first.close()

        let second = try sides.coordinator(epoch: 2)
        try await second.up()
        await second.transport.broadcast([9])
        #expect(try await workers[0].message() == [9])
        await workers[0].transport.send([8], lane: .events)
        #expect(try await second.message() == [8])

        try await workers[0].close()
        try await second.close()
    }

    @Test(arguments: TransportKind.allCases)
    func `closing sends everything that was accepted`(kind: TransportKind) async throws {
        let (coordinator, workers) = try await TransportSides(kind).connected()
        let count = 3_000

        for index in 0..<count {
            await workers[0].transport.send(numbered(index, bytes: 1_024), lane: .events)
        }
        try await workers[0].close()

        for index in 0..<count {
            #expect(number(try await coordinator.message()) == index)
        }
        try await coordinator.close()
    }

    @Test(arguments: TransportKind.allCases)
    func `closing ends the events`(kind: TransportKind) async throws {
        let (coordinator, workers) = try await TransportSides(kind).connected()

        try await workers[0].close()
        try await coordinator.close()

        #expect(await workers[0].events.next() == nil)
        #expect(await coordinator.events.next() == nil)
    }

    @Test(arguments: TransportKind.allCases)
    func `cancelling ends run and the events`(kind: TransportKind) async throws {
        let (coordinator, workers) = try await TransportSides(kind).connected()

        workers[0].running.cancel()
        coordinator.running.cancel()

        try await workers[0].running.value
        try await coordinator.running.value
        while await workers[0].events.next() != nil {}
        while await coordinator.events.next() != nil {}
    }

    @Test(arguments: TransportKind.allCases)
    func `a new connection has the next number and its messages arrive`(
        kind: TransportKind
    ) async throws {
        let (coordinator, workers) = try await TransportSides(kind).connected()

        await workers[0].transport.reconnect()
        _ = try await workers[0].down()
        let address = try await workers[0].up()

        #expect(address.connection == 2)
        await coordinator.transport.send([5], to: address, priority: 0)
        #expect(try await workers[0].message() == [5])
        await workers[0].transport.send([6], lane: .events)
        #expect(try await coordinator.message() == [6])
        await coordinator.transport.send([7], to: workers[0].firstAddress, priority: 0)
        #expect(try await coordinator.returned() == workers[0].firstAddress)
        try await workers[0].close()
        try await coordinator.close()
    }

    @Test(arguments: TransportKind.allCases)
    func `a second coordinator is refused`(kind: TransportKind) async throws {
        let sides = try TransportSides(kind)
        let first = try sides.coordinator()
        try await first.up()

        let second = try sides.coordinator(epoch: 2)
        let error = await #expect(throws: PortError.self) { try await second.running.value }

        #expect(error?.code == .prefixHeld)
        #expect(await second.events.next() == nil)
        try await first.close()
    }

    @Test(arguments: TransportKind.allCases)
    func `messages larger than the buffers together pass through small ones`(
        kind: TransportKind
    ) async throws {
        var limits = Limits()
        limits.outgoingBytes = 16 << 10
        let (coordinator, workers) = try await TransportSides(kind, limits: limits).connected()
        let count = 2_000

        let sending = Task {
            for index in 0..<count {
                await workers[0].transport.send(numbered(index, bytes: 4_096), lane: .events)
            }
        }

        for index in 0..<count { #expect(number(try await coordinator.message()) == index) }
        await sending.value
        try await workers[0].close()
        try await coordinator.close()
    }

    @Test(arguments: TransportKind.allCases)
    func `nothing is sent while there is no connection`(kind: TransportKind) async throws {
        let sides = try TransportSides(kind)
        let (coordinator, workers) = try await sides.connected()
        try await workers[0].close()

        await workers[0].transport.send([1], lane: .events)
        let other = try sides.worker()
        _ = try await other.up()
        await other.transport.send([2], lane: .events)

        #expect(try await coordinator.message() == [2])
        try await other.close()
        try await coordinator.close()
    }
}
