import Hummingbird
import Operon

/// How many primes there are from one number up to another, that one not included.
struct CountPrimes: Operation {
    var from: Int
    var to: Int

    func main(_ context: OperationContext) async throws -> Int {
        var count = 0
        for number in max(2, from)..<max(2, to) {
            try context.checkCancellation()
            var divisor = 2
            while divisor * divisor <= number, number % divisor != 0 { divisor += 1 }
            if divisor * divisor > number { count += 1 }
        }
        return count
    }
}

/// What was asked for, each in a queue of its own. Lives as long as this process.
actor Counts {
    private struct Count {
        let queue: OperationQueue
        let parts: [OperationHandle<CountPrimes>]
    }

    private let cluster: Cluster
    private var counts: [String: Count] = [:]

    init(cluster: Cluster) { self.cluster = cluster }

    private static let numbersPerPart = 10_000

    /// Splits it, submits the parts, and returns the name of the whole.
    func submit(below limit: Int) async throws -> String {
        let queue = OperationQueue(cluster: cluster)
        let starts = stride(from: 0, to: limit, by: Self.numbersPerPart)
        let parts = try await queue.addOperations(
            starts.map { CountPrimes(from: $0, to: min($0 + Self.numbersPerPart, limit)) }
        )
        counts[queue.name] = Count(queue: queue, parts: parts)
        return queue.name
    }

    /// How far it is, up to its end; `nil`: there is no such count.
    func progress(of name: String) -> AsyncStream<OperationQueueProgress>? {
        counts[name]?.queue.progress
    }

    /// What came of it.
    func result(of name: String) async throws -> Int {
        var sum = 0
        for part in counts[name]?.parts ?? [] { sum += try await part.value }
        return sum
    }

    /// Returns whether there is such a count.
    func cancel(_ name: String) async throws -> Bool {
        guard let count = counts[name] else { return false }
        try await count.queue.cancelAllOperations(reason: "asked to, over HTTP")
        return true
    }
}

extension Counts {
    nonisolated var router: Router<BasicRequestContext> {
        let router = Router()
        router.post("counts") { request, _ in
            let limit = request.uri.queryParameters.get("below", as: Int.self) ?? 100_000
            guard (1...10_000_000).contains(limit) else {
                throw HTTPError(.badRequest, message: "below: 1 to 10,000,000")
            }
            let name = try await self.submit(below: limit)
            return Response(
                status: .accepted,
                headers: [.location: "/counts/\(name)"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: "/counts/\(name)\n"))
            )
        }
        router.get("counts/:name") { _, context in
            let name = try context.parameters.require("name")
            guard let progress = await self.progress(of: name) else { throw HTTPError(.notFound) }
            return Response(
                status: .ok,
                headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
                body: ResponseBody { writer in
                    try await self.tell(progress, of: name, &writer)
                    try await writer.finish(nil)
                }
            )
        }
        router.delete("counts/:name") { _, context -> HTTPResponse.Status in
            let name = try context.parameters.require("name")
            return try await self.cancel(name) ? .accepted : .notFound
        }
        return router
    }

    /// Server-sent events: `progress`, as often as there is some, then `result` or `failure`.
    private nonisolated func tell(
        _ progress: AsyncStream<OperationQueueProgress>,
        of name: String,
        _ writer: inout any ResponseBodyWriter
    ) async throws {
        for await now in progress {
            let text = "event: progress\ndata: \(now.finishedCount)/\(now.totalCount)\n\n"
            try await writer.write(ByteBuffer(string: text))
            if now.finishedCount == now.totalCount { break }
        }
        let end: String
        do {
            end = "event: result\ndata: \(try await result(of: name))\n\n"
        } catch {
            end = "event: failure\ndata: \(error)\n\n"
        }
        try await writer.write(ByteBuffer(string: end))
    }
}
