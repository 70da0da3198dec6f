import OperonModel
import OperonPorts

/// Counts the operations of one graph at a pace, once for all who watch the graph.
///
/// Its task runs while somebody watches. Of the service's time it takes two short calls per count,
/// and one more for each `sliceOperations` elements of repeated operations.
final class ProgressFeed: Sendable {
    /// The least time between two counts: people cannot follow more.
    static let defaultPace = Duration.milliseconds(250)
    /// Counting elements takes at most this part of the service's time, one in so many: of a graph
    /// with millions of them, counts come less often.
    private static let timePart = 100
    /// The most elements that are counted in one call of the service, which decides nothing
    /// meanwhile.
    static let sliceOperations = 16_384

    let graph: GraphID
    private let service: CoordinatorService
    private let pace: Duration
    private let readers = FeedReaders<GraphProgressView>()

    init(of graph: GraphID, by service: CoordinatorService, pace: Duration) {
        self.graph = graph
        self.service = service
        self.pace = pace
    }

    /// Adds a reader, who gets the latest progress first. `nil`: the feed is over, because nobody
    /// watched any more.
    func join() -> ProgressUpdates? { readers.join { await self.run() } }

    private func run() async {
        var elements = RepeatedElements()
        while !Task.isCancelled {
            // Taken first: what is decided while it counts is counted the next time.
            let newest = await service.lastEvent
            guard let (progress, took) = await count(&elements),
                await service.untilDurable()
            else { break }
            readers.publish(progress)
            let pause = max(pace, took * Self.timePart)
            if progress.graph.counts.unfinished > 0 {
                // The end of a graph is shown at once.
                await service.waitUntilDecided(graph, within: pause)
            } else {
                // If nobody watches any more, the wait that follows ends at once.
                try? await service.machineTime.sleep(for: pause)
            }
            guard await service.waitForEvents(after: newest) > newest else { break }
        }
        await service.forget(self)
        readers.end()
    }

    /// The progress, and the time that counting elements took of the service. `nil`: the graph was
    /// dropped, or the service has ended.
    private func count(
        _ elements: inout RepeatedElements
    ) async -> (progress: GraphProgressView, took: Duration)? {
        // The whole graph first, so that of a finished graph all elements are counted as finished.
        guard let found = await service.counted(graph) else { return nil }
        var progress = found.progress
        if found.operationCount > elements.operationCount {
            // Held for a short time only: meanwhile, an addition would copy it.
            guard let operations = await service.keptOperations(of: graph) else { return nil }
            elements.add(operations)
        }
        var took = Duration.zero
        var counts = Array(repeating: StateCounts(), count: elements.names.count)
        for slice in elements.slices {
            guard let found = await service.counted(graph, slice.map(\.indices)) else { return nil }
            took += found.took
            for (piece, more) in zip(slice, found.counts) { counts[piece.number].add(more) }
        }
        for (name, counts) in zip(elements.names, counts)
        where RepeatedProgressView.isShown(counts) {
            progress.repeated.append(RepeatedProgressView(name: name, counts: counts))
            if progress.repeated.count == GraphProgressView.repeatedMax { break }
        }
        return (progress, took)
    }
}

/// Where the elements of a graph's repeated operations are.
struct RepeatedElements: Sendable {
    /// Some elements of one repeated operation.
    struct Piece: Hashable, Sendable {
        /// The number of the repeated operation.
        let number: Int
        let indices: Range<UInt32>
    }

    private var folding = ElementFolding()
    /// The names of the repeated operations.
    private(set) var names: [String] = []
    /// All elements. Each slice has at most `ProgressFeed.sliceOperations` of them.
    private(set) var slices: [[Piece]] = []

    /// How many operations of the graph were looked at.
    var operationCount: Int { folding.count }

    /// Looks at the operations that were added since the last call.
    mutating func add(_ operations: KeptOperations) {
        for index in folding.count..<max(folding.count, operations.count) {
            // Nobody watches any more, and reading a stored description takes some microseconds.
            if index % ProgressFeed.sliceOperations == 0, Task.isCancelled { return }
            folding.add(operations.name(of: index), kind: operations[index].work.kind)
        }
        names = folding.groups.map(\.title)
        slices = []
        var room = 0
        for (number, group) in folding.groups.enumerated() {
            for var indices in group.indices {
                while !indices.isEmpty {
                    if room == 0 {
                        slices.append([])
                        room = ProgressFeed.sliceOperations
                    }
                    let some = indices.prefix(room)
                    let piece = UInt32(some.lowerBound)..<UInt32(some.upperBound)
                    slices[slices.count - 1].append(Piece(number: number, indices: piece))
                    room -= some.count
                    indices = some.upperBound..<indices.upperBound
                }
            }
        }
    }
}
