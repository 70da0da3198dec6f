import NIOConcurrencyHelpers
import OperonAMQP
package import OperonCore
import OperonGraphFile
package import OperonModel
import OperonPorts
package import OperonRuntime
import OperonTesting
package import OperonTrust

extension TestCluster {
    /// A worker of the cluster.
    package struct Worker: Sendable {
        package let service: WorkerService
        package let incarnation: Incarnation
        /// By which it can be revoked; `nil`: messages are sent in clear.
        package let publicKey: [UInt8]?
        private let transport: ScriptedTransport?
        fileprivate let task: Task<Void, any Error>

        fileprivate init(_ host: WorkerHost, _ transport: ScriptedTransport?) {
            service = host.service
            incarnation = host.incarnation
            publicKey = host.publicKey
            self.transport = transport
            task = Task {
                let result: Result<Void, any Error>
                do {
                    result = .success(try await host.service.run())
                } catch {
                    result = .failure(error)
                }
                await host.shutDown()
                try result.get()
            }
        }

        /// Returns when the worker has ended, with the error that ended it.
        package func end() async -> (any Error)? {
            switch await task.result {
            case .success: nil
            case .failure(let error): error
            }
        }

        /// From now on nothing reaches the worker, which must be one that runs the script.
        package func hold() {
            guard let transport else { preconditionFailure("Only a scripted worker is held.") }
            transport.hold()
        }
    }

    actor Workers {
        private var all: [Worker] = []

        func add(_ worker: Worker) { all.append(worker) }

        func end() async {
            for worker in all {
                worker.service.stop()
                _ = await worker.task.result
            }
        }
    }

    /// Starts a worker; returns when it is welcome.
    ///
    /// - Parameters:
    ///   - kinds: What it knows besides the built-in kinds.
    ///   - offer: What it offers, whatever its machine has.
    ///   - token: With what it joins, if the cluster seals its messages; `nil`: with a token that
    ///     allows everything.
    ///   - isAwaited: Whether the call returns only when it is welcome.
    ///   - change: Changes the configuration of its agent.
    @discardableResult
    package func join(
        _ name: String,
        slots: Int,
        host: String = "node",
        queues: [String] = [],
        kinds: [String] = ["Play"],
        offer: WorkerOffer = WorkerOffer(),
        token: JoinToken? = nil,
        stateDirectory: String? = nil,
        isAwaited: Bool = true,
        _ change: @escaping @Sendable (inout WorkerAgent.Configuration) -> Void = { _ in }
    ) async throws -> Worker {
        let environment = ["PATH": "/usr/local/bin:/usr/bin:/bin"]
        var configuration = WorkerHost.Configuration(slots: slots, environment: environment) { _ in
        }
        configuration.name = name
        configuration.token = try token ?? keys.map { JoinToken(try WorkerGrant(), by: $0) }
        configuration.stateDirectory = stateDirectory
        configuration.queues = queues
        configuration.watchesSources = offer.watches
        let (gates, script, clock) = (gates, options.script, options.clock)
        let starts = NIOLockedValueBox<[AttemptID: Duration]>([:])
        let run: Script = { invocation in
            let attempt = invocation.operation.held.attempt
            if let clock { starts.withLockedValue { $0[attempt] = clock.elapsed } }
            if let end = await gates.hold(invocation) { return end }
            return await script(invocation)
        }
        configuration.kinds = RegisteredKinds(threads: nil) { RegisteredKind(name: $0, run: run) }
        configuration.kinds.elements = ElementExpansion()
        let limits = options.scheduler.limits
        configuration.agent = { agent in
            agent.host = host
            agent.offer = offer
            let gpus = offer.resources[ResourceAmount.gpusName] ?? 0
            agent.gpus = (0..<gpus).map { "\($0)" }
            agent.limits = limits
            agent.kinds = (Work.builtInKinds + kinds).sorted()
            agent.runsAnyKind = false
            agent.startReportDelay = .milliseconds(1)
            change(&agent)
        }
        var scripted: ScriptedTransport?
        let worker = try WorkerHost(configuration, logger: Self.logger) { incarnation in
            let transport = transport(of: incarnation)
            guard options.isScripted else { return transport }
            let made = ScriptedTransport(transport) { attempt in
                clock.map { $0.elapsed - (starts.withLockedValue { $0[attempt] } ?? $0.elapsed) }
            }
            scripted = made
            return made
        }
        let joined = Worker(worker, scripted)
        await workers.add(joined)
        guard isAwaited else { return joined }
        try await wait { client in
            try await client.workers().contains { $0.name == name && $0.status == "alive" }
        }
        return joined
    }

    private func transport(of incarnation: Incarnation) -> any WorkerTransport {
        broker?.worker.workerTransport(of: incarnation, logger: Self.logger)
            ?? hub.makeWorker(incarnation: incarnation)
    }
}

/// A worker's end of the transport that makes commands and waits operations of the script, and can
/// stop handing on what the worker is sent.
final class ScriptedTransport: WorkerTransport {
    let events: AsyncStream<[WorkerTransportEvent]>
    private let continuation: AsyncStream<[WorkerTransportEvent]>.Continuation
    private let inner: any WorkerTransport
    /// How long an attempt has run by the clock of the test; `nil`: the machine's clock counts.
    private let age: @Sendable (AttemptID) -> Duration?
    private let isHolding = NIOLockedValueBox(false)

    init(_ inner: any WorkerTransport, age: @escaping @Sendable (AttemptID) -> Duration?) {
        self.inner = inner
        self.age = age
        (events, continuation) = AsyncStream.makeStream()
    }

    func hold() { isHolding.withLockedValue { $0 = true } }

    func run() async throws {
        let forwarding = Task { [self] in
            for await batch in inner.events where !isHolding.withLockedValue({ $0 }) {
                continuation.yield(batch.map(Self.scripted))
            }
            continuation.finish()
        }
        defer { forwarding.cancel() }
        try await inner.run()
        await forwarding.value
    }

    private static func scripted(_ event: WorkerTransportEvent) -> WorkerTransportEvent {
        guard case .envelope(var envelope) = event, case .dispatch(var dispatch) = envelope.body
        else { return event }
        for index in dispatch.operations.indices {
            if case .registered = dispatch.operations[index].work { continue }
            let kind = dispatch.operations[index].work.kind
            dispatch.operations[index].work = .registered(kind: kind, input: .empty)
        }
        envelope.body = .dispatch(dispatch)
        return .envelope(envelope)
    }

    func send(_ envelope: WorkerEnvelope, cost: Int, lane: WorkerLane) async -> Bool {
        var envelope = envelope
        if case .events(var batch) = envelope.body {
            batch.events = batch.events.map { timed($0, sentAt: batch.sentAt) }
            envelope.body = .events(batch)
        }
        return await inner.send(envelope, cost: cost, lane: lane)
    }

    /// The event with the times of the test's clock, if there is one. The coordinator counts them
    /// back from the time of the message.
    private func timed(_ event: WorkerEvent, sentAt: Timestamp) -> WorkerEvent {
        guard let age = age(event.held.attempt) else { return event }
        switch event {
        case .started(let held, _): return .started(held, at: sentAt - age)
        case .finished(let held, var result):
            result.startedAt = sentAt - age
            result.endedAt = sentAt
            return .finished(held, result)
        case .returned, .added, .yielded, .read: return event
        }
    }

    func send(_ body: [UInt8], lane: WorkerLane) async { await inner.send(body, lane: lane) }

    func reconnect() async { await inner.reconnect() }

    func close() async { await inner.close() }
}

/// What is between a coordinator and its workers, and can be cut on the coordinator's side.
final class CuttableTransport: CoordinatorTransport {
    let events: AsyncStream<[CoordinatorTransportEvent]>
    private let continuation: AsyncStream<[CoordinatorTransportEvent]>.Continuation
    private let inner: InProcessCoordinatorTransport

    init(_ inner: InProcessCoordinatorTransport) {
        self.inner = inner
        (events, continuation) = AsyncStream.makeStream()
    }

    func cut() { continuation.yield([.down(reason: "the test cut it")]) }

    func run() async throws {
        let forwarding = Task { [inner, continuation] in
            for await batch in inner.events { continuation.yield(batch) }
            continuation.finish()
        }
        defer { forwarding.cancel() }
        try await inner.run()
        await forwarding.value
    }

    func send(_ body: [UInt8], to address: WorkerAddress, priority: UInt8) async {
        await inner.send(body, to: address, priority: priority)
    }

    func send(
        _ envelope: CoordinatorEnvelope,
        cost: Int,
        to address: WorkerAddress,
        priority: UInt8
    ) async -> Bool {
        await inner.send(envelope, cost: cost, to: address, priority: priority)
    }

    func broadcast(_ body: [UInt8]) async { await inner.broadcast(body) }

    func sendToSelf(_ body: [UInt8], lane: WorkerLane) async {
        await inner.sendToSelf(body, lane: lane)
    }

    func close() async { await inner.close() }
}
