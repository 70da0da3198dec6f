import Logging
import OperonCore
import OperonModel
import OperonPorts
import OperonSystem
import OperonWire

// What the transport delivers.
extension CoordinatorService {
    nonisolated func receiveAll() async {
        for await batch in transport.events {
            var events: [Scheduler.Event] = []
            var reports = 0
            for event in batch {
                guard let event = await translate(event) else { continue }
                events.append(event)
                reports += event.reportCount
                guard reports >= Self.reportsAtOnce else { continue }
                for group in await vetted(events) { await receive(group) }
                events = []
                reports = 0
                // The commit of these begins while the next are handled.
                await Task.yield()
            }
            for group in await vetted(events) { await receive(group) }
        }
    }

    /// About so many reports of workers are handled before a commit may begin: a third of a
    /// millisecond's work.
    private static let reportsAtOnce = 32

    private nonisolated func receive(_ events: [Scheduler.Event]) async {
        // The events before a request decide who owns the attempt that makes the request.
        var rest = events[...]
        while let place = rest.firstIndex(where: \.hasRequests) {
            if rest.startIndex < place { await handle(Array(rest[..<place])) }
            let request = [rest[place]]
            await serve(request)
            rest = rest[(place + 1)...]
        }
        if !rest.isEmpty { await handle(Array(rest)) }
    }

    private nonisolated func translate(
        _ event: CoordinatorTransportEvent
    ) async -> Scheduler.Event? {
        switch event {
        case .up:
            connectionLog.restored(logger)
            return .transportUp
        case .down(let reason):
            connectionLog.lost(logger, reason)
            return .transportDown
        case .message(let bytes): return await translate(bytes)
        case .envelope(let envelope): return .workerMessage(envelope)
        case .returned(let address): return .addressReturned(address)
        case .blocked(let isBlocked, let reason):
            logger.warning(
                isBlocked ? "the broker takes nothing more" : "the broker goes on",
                metadata: ["reason": "\(reason)"]
            )
            return nil
        }
    }

    func countUndecodable(_ error: WireError) {
        meters?.countUndecodable()
        guard let count = undecodable.count(error.code, at: machineTime.now()) else { return }
        logger.error(
            "message dropped",
            metadata: ["reason": "\(error)", "messages": "\(count)"]
        )
    }
}

extension Scheduler.Event {
    /// How many reports of a worker it brings; at least 1.
    fileprivate var reportCount: Int {
        guard case .workerMessage(let envelope) = self, case .events(let batch) = envelope.body
        else { return 1 }
        return max(1, batch.events.count)
    }
}
