package import Logging
import NIOCore
import NIOPosix
package import OperonModel
package import OperonPorts

/// The connection of one coordinator or one worker to a broker, with the thread that serves both.
package struct BrokerConnection: Sendable {
    package let configuration: AMQPConfiguration
    private let group: MultiThreadedEventLoopGroup

    /// - Throws: `PortError` (`invalidAddress`) for a URL or a prefix that cannot be used.
    package init(url: String, prefix: String) throws(PortError) {
        configuration = try AMQPConfiguration(url: url, prefix: prefix)
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    }

    /// Runs tasks on the thread of the connection.
    package var executor: LoopExecutor { LoopExecutor(group.next()) }

    package func coordinatorTransport(epoch: Epoch, logger: Logger) -> AMQPCoordinatorTransport {
        AMQPCoordinatorTransport(
            configuration: configuration,
            epoch: epoch,
            seed: Self.seed(),
            logger: logger,
            group: group
        )
    }

    package func workerTransport(
        of incarnation: Incarnation,
        logger: Logger
    ) -> AMQPWorkerTransport {
        AMQPWorkerTransport(
            configuration: configuration,
            incarnation: incarnation,
            seed: Self.seed(),
            logger: logger,
            group: group
        )
    }

    /// The messages of a queue, over a connection of its own.
    ///
    /// - Parameter isJSON: Whether these bytes are exactly one JSON value in UTF-8.
    /// - Throws: `TriggerSourceError` (`invalid`) for a name that no queue of others has.
    package func messageSource(
        queue: String,
        isJSON: @escaping @Sendable ([UInt8]) -> Bool,
        logger: Logger
    ) throws(TriggerSourceError) -> MessageSource {
        try MessageSource(
            queue: queue,
            configuration: configuration,
            isJSON: isJSON,
            seed: Self.seed(),
            logger: logger,
            group: group
        )
    }

    private static func seed() -> UInt64 {
        var random = SystemRandomNumberGenerator()
        return random.next()
    }

    /// Ends the thread. Called once the transport has ended.
    package func close() { group.shutdownGracefully { _ in } }
}
