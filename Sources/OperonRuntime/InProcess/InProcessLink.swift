package import Logging
import OperonCore
package import OperonModel

extension CoordinatorHost.Link {
    /// The link to a worker in the same process, without a broker.
    ///
    /// - Throws: The errors of `WorkerHost`.
    package static func inProcess(
        _ worker: WorkerHost.Configuration,
        limits: Limits = Limits(),
        logger: Logger
    ) throws -> CoordinatorHost.Link {
        let hub = InProcessHub(limits: limits)
        var configuration = worker
        configuration.name = worker.name ?? "local"
        configuration.agent = { agent in
            agent.limits = limits
            worker.agent(&agent)
        }
        let host = try WorkerHost(configuration, logger: logger) { incarnation in
            hub.makeWorker(incarnation: incarnation)
        }
        return CoordinatorHost.Link(hub.makeCoordinator(), worker: host)
    }
}
