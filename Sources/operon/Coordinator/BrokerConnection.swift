import Logging
import NIOCore
import NIOPosix
import OperonAMQP
import OperonModel
import OperonPorts
import OperonRuntime

/// The connection of a coordinator to a broker, with the thread that serves both.
struct BrokerConnection {
    let configuration: AMQPConfiguration
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    init(url: String, prefix: String) throws(PortError) {
        configuration = try AMQPConfiguration(url: url, prefix: prefix)
    }

    func link(epoch: Epoch, logger: Logger) -> CoordinatorHost.Link {
        var random = SystemRandomNumberGenerator()
        let transport = AMQPCoordinatorTransport(
            configuration: configuration,
            epoch: epoch,
            seed: random.next(),
            logger: logger,
            group: group
        )
        return CoordinatorHost.Link(transport, on: LoopExecutor(group.next()))
    }

    func close() { group.shutdownGracefully { _ in } }
}
