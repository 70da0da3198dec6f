import Foundation
import Logging
import NIOPosix
import OperonAMQP
import OperonCore
import OperonFaultKit
import OperonModel
import OperonPorts

/// The transports of a coordinator and of a worker, under a prefix of their own.
struct TransportPair: Sendable {
    let coordinator: AMQPCoordinatorTransport
    let worker: AMQPWorkerTransport

    private init(
        coordinatorURL: String?,
        workerURL: String?,
        link: LinkStateMachine.Configuration
    ) throws {
        let prefix = "test.\(UUID().uuidString.prefix(13))."
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        coordinator = AMQPCoordinatorTransport(
            configuration: try AMQPConfiguration(
                url: BrokerUsers(coordinatorURL).coordinator,
                prefix: prefix
            ),
            epoch: Epoch(rawValue: 1),
            seed: 1,
            logger: logger,
            group: MultiThreadedEventLoopGroup.singleton,
            link: link
        )
        worker = AMQPWorkerTransport(
            configuration: try AMQPConfiguration(
                url: BrokerUsers(workerURL).worker,
                prefix: prefix
            ),
            incarnation: Incarnation(rawValue: 1),
            seed: 2,
            logger: logger,
            group: MultiThreadedEventLoopGroup.singleton,
            link: link
        )
    }

    /// Runs `body` when both are up, and closes them afterwards.
    static func run(
        coordinatorURL: String? = nil,
        workerURL: String? = nil,
        link: LinkStateMachine.Configuration = .init(),
        _ body: @Sendable (TransportPair) async throws -> Void
    ) async throws {
        let pair = try TransportPair(
            coordinatorURL: coordinatorURL,
            workerURL: workerURL,
            link: link
        )
        let serving = Task { try await pair.coordinator.run() }
        let running = Task { try await pair.worker.run() }
        do {
            try await pair.isUp(.coordinator)
            try await pair.isUp(.worker)
            try await body(pair)
        } catch {
            running.cancel()
            serving.cancel()
            throw error
        }
        running.cancel()
        try await running.value
        serving.cancel()
        try await serving.value
    }

    enum Side: String, CaseIterable, Sendable {
        case worker
        case coordinator
    }

    /// Returns at the next connection of this side.
    func isUp(_ side: Side) async throws {
        switch side {
        case .coordinator:
            for await batch in coordinator.events where batch.contains(.up) { return }
        case .worker:
            for await batch in worker.events {
                if batch.contains(where: { if case .up = $0 { true } else { false } }) { return }
            }
        }
        throw CommandFailure("the \(side) does not come up any more")
    }

    /// Returns when the coordinator has received this.
    func coordinatorReceives(_ body: [UInt8]) async throws {
        for await batch in coordinator.events where batch.contains(.message(body)) { return }
        throw CommandFailure("the message did not come")
    }
}
