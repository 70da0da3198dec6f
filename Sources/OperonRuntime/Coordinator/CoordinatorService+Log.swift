import Logging
import OperonCore
import OperonModel

// The log of a coordinator reports workers that join and leave, and the fates of graphs. Operations
// are reported as client events instead.
extension CoordinatorService {
    func report(_ notice: Scheduler.Notice) {
        switch notice {
        case .workerJoined(let worker, let host, let slots):
            log("worker joined", worker, ["host": "\(host)", "slots": "\(slots)"])
        case .workerDraining(let worker, _): log("worker drains", worker)
        case .workerLost(let worker): log("worker is gone", worker)
        case .workerBusy(let worker, let reign):
            log("worker serves another coordinator", worker, ["reign": "\(reign)"])
        case .graphFinished(let graph): reportEnd(of: graph)
        case .graphClosedIdle(let graph):
            logger.info("graph closed: nothing was added for long", metadata: about(graph))
        case .operationsAdded(let graph, _, let count):
            var metadata = about(graph)
            metadata["operations"] = "\(count)"
            logger.info("graph added to", metadata: metadata)
        case .ready, .granted, .started, .resumed, .yielded, .waitEnded, .attemptEnded, .retry,
            .result, .finished, .rangeFinished, .superseded, .eventRefused, .log, .progress,
            .watched:
            return
        }
    }

    func reportSubmission(of graph: GraphID, operations: Int, by client: String) {
        var metadata = about(graph)
        metadata["operations"] = "\(operations)"
        if !client.isEmpty { metadata["client"] = "\(client)" }
        logger.info("graph submitted", metadata: metadata)
    }

    private func reportEnd(of graph: GraphID) {
        let counts = scheduler.stateCounts(of: graph)
        var metadata = about(graph)
        metadata["succeeded"] = "\(counts.succeeded)"
        metadata["failed"] = "\(counts.failed)"
        metadata["cancelled"] = "\(counts.cancelled)"
        metadata["skipped"] = "\(counts.skipped)"
        logger.info("graph finished", metadata: metadata)
    }

    private func about(_ graph: GraphID) -> Logger.Metadata {
        ["graph": "\(graph)", "name": "\(catalog.name(of: graph))"]
    }

    private func log(
        _ message: Logger.Message,
        _ worker: WorkerIdentity,
        _ more: Logger.Metadata = [:]
    ) {
        var metadata = more
        metadata["worker"] = "\(worker.name)"
        metadata["incarnation"] = "\(worker.incarnation)"
        logger.info(message, metadata: metadata)
    }
}
