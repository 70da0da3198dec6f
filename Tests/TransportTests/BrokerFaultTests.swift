import Foundation
import OperonAMQP
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts
import Testing

/// What a broker can do to a connection, done by a real one.
@Suite(.serialized, .timeLimit(.minutes(5)), .ownBroker)
struct BrokerFaultTests {
    private func ownBroker() throws -> BrokerFixture {
        guard let broker = BrokerFixture.current else { throw TestFailure("no broker") }
        return broker
    }

    private func exchangeMessages(
        _ coordinator: CoordinatorSide,
        _ worker: WorkerSide,
        at address: WorkerAddress
    ) async throws {
        await worker.transport.send([1], lane: .events)
        #expect(try await coordinator.message() == [1])
        await coordinator.transport.send([2], to: address, priority: 0)
        #expect(try await worker.message() == [2])
    }

    @Test func `connections that the broker closes come back with the next number`() async throws {
        let broker = try ownBroker()
        let sides = try TransportSides(.broker, url: broker.url)
        let (coordinator, workers) = try await sides.connected()

        try await broker.control("close_all_connections", "a test")

        #expect(try await workers[0].down().contains("a test"))
        try await coordinator.up()
        let address = try await workers[0].up()
        #expect(address.connection == 2)
        try await exchangeMessages(coordinator, workers[0], at: address)
        try await workers[0].close()
        try await coordinator.close()
    }

    @Test func `both sides come up again after the broker was killed and started`() async throws {
        let broker = try ownBroker()
        let sides = try TransportSides(.broker, url: broker.url)
        let (coordinator, workers) = try await sides.connected(workers: 2)

        try await broker.kill9()
        try await coordinator.down()
        for worker in workers { _ = try await worker.down() }
        // Nobody waits for a broker that is gone.
        await workers[0].transport.send([9], lane: .events)
        try await broker.restart()

        try await coordinator.up()
        for worker in workers {
            let address = try await worker.up()
            try await exchangeMessages(coordinator, worker, at: address)
            try await worker.close()
        }
        try await coordinator.close()
    }

    @Test func `who is told that the broker is away is told that it has come, once`() async throws {
        let broker = try ownBroker()
        let sides = try TransportSides(.broker, url: broker.url)
        let (logger, messages, ending) = HeardLog.warnings()
        try await broker.kill9()
        let worker = try sides.worker(logger: logger)
        var said = messages.makeAsyncIterator()
        #expect(await said.next() == "not connected")

        try await broker.restart()
        let coordinator = try sides.coordinator()
        try await coordinator.up()
        _ = try await worker.up()
        var last = await said.next()
        while last == "not connected" { last = await said.next() }
        #expect(last == "connected")

        // Of a connection that was lost, the owner of the link tells.
        try await broker.control("close_all_connections", "a test")
        _ = try await worker.down()
        _ = try await worker.up()
        try await worker.close()
        try await coordinator.close()
        ending.finish()
        while let more = await said.next() { #expect(more == "not connected") }
    }

    @Test func `a frozen broker is noticed by its silence`() async throws {
        let broker = try ownBroker()
        let sides = try TransportSides(.broker, url: broker.url + "/%2F?heartbeat=1")
        let (coordinator, workers) = try await sides.connected()

        try await broker.freeze()
        let reason = try await workers[0].down()
        // Each at its own time: one that has not noticed yet would never have to come up again.
        try await coordinator.down()
        try await broker.thaw()

        #expect(reason == "the broker is silent")
        try await coordinator.up()
        let address = try await workers[0].up()
        try await exchangeMessages(coordinator, workers[0], at: address)
        try await workers[0].close()
        try await coordinator.close()
    }

    @Test func `an alarm stops senders and loses nothing`() async throws {
        let broker = try ownBroker()
        var limits = Limits()
        limits.outgoingBytes = 1 << 20
        let sides = try TransportSides(.broker, url: broker.url, limits: limits)
        let (coordinator, workers) = try await sides.connected()
        let count = 64
        try await broker.control("set_vm_memory_high_watermark", "0.0000001")

        let accepted = Counter()
        let sending = Task {
            for index in 0..<count {
                await workers[0].transport.send(numbered(index, bytes: 1 << 20), lane: .events)
                await accepted.add()
            }
        }
        let reason = try await workers[0].events.first {
            if case .blocked(true, let reason) = $0 { reason } else { nil }
        }
        // Half a second in which an unbounded sender would have sent all of it.
        try await broker.control("status")
        let acceptedWhileBlocked = await accepted.value
        try await broker.control("set_vm_memory_high_watermark", "0.6")

        #expect(reason.contains("memory"))
        #expect(acceptedWhileBlocked < count / 2)
        for index in 0..<count { #expect(number(try await coordinator.message()) == index) }
        await sending.value
        _ = try await workers[0].events.first {
            if case .blocked(false, _) = $0 { true } else { nil }
        }
        try await workers[0].close()
        try await coordinator.close()
    }

    @Test func `what a slow coordinator does not read stays in the broker, and arrives in order`()
        async throws
    {
        let broker = try ownBroker()
        var limits = Limits()
        limits.outgoingBytes = 1 << 20
        let sides = try TransportSides(.broker, url: broker.url, limits: limits)
        let (coordinator, workers) = try await sides.connected()
        let (count, bytes) = (2_048, 64 << 10)
        // The coordinator's inbox, the buffers of two sockets, and the 200 messages that RabbitMQ
        // hands to a connection before it has written them.
        let outsideMax = 700

        for index in 0..<count {
            await workers[0].transport.send(numbered(index, bytes: bytes), lane: .events)
        }
        // Nothing moves any more once several looks see the same.
        var (kept, looks) = (-1, 0)
        while looks < 5 {
            let now = try await broker.messageCount()
            looks = now == kept ? looks + 1 : 0
            kept = now
        }
        #expect(kept >= count - outsideMax)

        for index in 0..<count { #expect(number(try await coordinator.message()) == index) }
        #expect(try await broker.messageCount() == 0)
        try await workers[0].close()
        try await coordinator.close()
    }

    @Test func `a worker whose queue is taken away comes back with another`() async throws {
        let broker = try ownBroker()
        let sides = try TransportSides(.broker, url: broker.url)
        let (coordinator, workers) = try await sides.connected()
        let queue = "\(sides.prefix)worker.\(workers[0].incarnation).1"

        try await broker.evaluate(
            "{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<\"/\">>, queue, <<\"\(queue)\">>)), "
                + "rabbit_amqqueue:delete(Q, false, false, <<\"test\">>)."
        )

        #expect(try await workers[0].down().contains("its queue is gone"))
        let address = try await workers[0].up()
        #expect(address.connection == 2)
        try await exchangeMessages(coordinator, workers[0], at: address)
        try await workers[0].close()
        try await coordinator.close()
    }

    @Test func `a coordinator that finds an exchange gone declares it again`() async throws {
        let broker = try ownBroker()
        let sides = try TransportSides(.broker, url: broker.url)
        let (coordinator, workers) = try await sides.connected()
        let exchange = "\(sides.prefix)dispatch"

        try await broker.evaluate(
            "rabbit_exchange:delete(rabbit_misc:r(<<\"/\">>, exchange, <<\"\(exchange)\">>), "
                + "false, <<\"test\">>)."
        )
        await coordinator.transport.send([1], to: workers[0].firstAddress, priority: 0)

        try await coordinator.down()
        try await coordinator.up()
        await workers[0].transport.reconnect()
        let address = try await workers[0].up()
        try await exchangeMessages(coordinator, workers[0], at: address)
        try await workers[0].close()
        try await coordinator.close()
    }

    @Test func `an exchange of another kind in the way is an error that names it`() async throws {
        let broker = try ownBroker()
        let sides = try TransportSides(.broker, url: broker.url)
        let exchange = "\(sides.prefix)beats"
        try await broker.evaluate(
            "rabbit_exchange:declare(rabbit_misc:r(<<\"/\">>, exchange, <<\"\(exchange)\">>), "
                + "topic, true, false, false, [], <<\"test\">>)."
        )

        let coordinator = try sides.coordinator()
        let error = await #expect(throws: PortError.self) { try await coordinator.running.value }

        #expect(error?.code == .protocolViolation)
        #expect(error?.message.contains(exchange) == true)
    }

    @Test func `a worker without the right to its queue is told so`() async throws {
        let broker = try ownBroker()
        try await broker.control("add_user", "limited", "pw")
        try await broker.control("set_permissions", "limited", "^other$", ".*", ".*")
        let sides = try TransportSides(
            .broker,
            url: broker.url.replacingOccurrences(of: "guest:guest", with: "limited:pw")
        )

        let worker = try sides.worker()
        let error = await #expect(throws: PortError.self) { try await worker.running.value }

        #expect(error?.code == .accessRefused)
        #expect(error?.message.contains("worker") == true)
    }
}

/// One broker for all tests of a suite, ended with it.
struct OwnBroker: SuiteTrait, TestScoping {
    var extraConfiguration = ""

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        try await BrokerFixture.withCurrent(extraConfiguration: extraConfiguration, function)
    }
}

extension Trait where Self == OwnBroker {
    static var ownBroker: OwnBroker { OwnBroker() }
}

private actor Counter {
    private(set) var value = 0

    func add() { value += 1 }
}

/// What a broker says to those who should not be there, or not yet.
@Suite(.timeLimit(.minutes(5)))
struct BrokerRefusalTests {
    @Test func `a wrong password ends with a sentence that does not show it`() async throws {
        let url = try BrokerUsers().worker.replacing(/[^:@\/]+:[^:@\/]+@/, with: "worker:s3cret@")
        let worker = try TransportSides(.broker, url: url).worker()

        let error = await #expect(throws: PortError.self) { try await worker.running.value }

        #expect(error?.code == .accessRefused)
        #expect(error?.message.contains("refuses the login of “worker”") == true)
        #expect(error?.message.contains("s3cret") == false)
        #expect(await worker.events.next() == nil)
    }

    @Test func `a virtual host that does not exist is named`() async throws {
        let url = try BrokerUsers().worker + "/nowhere"
        let worker = try TransportSides(.broker, url: url).worker()

        let error = await #expect(throws: PortError.self) { try await worker.running.value }

        #expect(error?.code == .accessRefused)
        #expect(error?.message.contains("nowhere") == true)
    }

    @Test func `a second coordinator is told who holds the prefix`() async throws {
        let sides = try TransportSides(.broker)
        let first = try sides.coordinator()
        try await first.up()

        let second = try sides.coordinator(epoch: 2)
        let error = await #expect(throws: PortError.self) { try await second.running.value }

        let holder = PrefixHolder.thisProcess()
        #expect(error?.code == .prefixHeld)
        #expect(error?.message.contains("\(holder.host), process \(holder.processID)") == true)
        #expect(error?.message.contains(sides.prefix) == true)
        // The first is not disturbed.
        let worker = try sides.worker()
        _ = try await worker.up()
        await worker.transport.send([1], lane: .events)
        #expect(try await first.message() == [1])
        try await worker.close()
        try await first.close()
    }

    @Test func `a worker that came first is up soon after its coordinator`() async throws {
        let sides = try TransportSides(.broker)
        let worker = try sides.worker()
        let other = try TransportSides(.broker)
        #expect(await worker.events.next() == .noCoordinator)
        // A round of another pair, so that the worker has had the time to look again.
        let (pair, workers) = try await other.connected()
        try await workers[0].close()
        try await pair.close()

        let coordinator = try sides.coordinator()
        try await coordinator.up()

        // It was told once.
        #expect(await worker.events.next() == .up(connection: 1))
        try await worker.close()
        try await coordinator.close()
    }

    @Test func `closing ends a link that could not connect`() async throws {
        let sides = try TransportSides(.broker, url: "amqp://127.0.0.1:1")
        let worker = try sides.worker()

        await worker.transport.close()

        try await worker.running.value
        #expect(await worker.events.next() == nil)
    }
}
