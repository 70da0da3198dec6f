import DequeModule
import OperonModel
import OperonPorts
import OperonWire
import Synchronization

/// The latest events in memory, and the older pages that readers have just read from the store.
/// All readers share them, so an event is decoded, named and encoded at most once.
///
/// Its work is done by the tasks of the readers. The service only hands over what is on the disk.
final class EventFeed: Sendable {
    /// The most events in memory. A reader that is further behind reads from the store.
    static let eventsMax = 16_384
    /// The most memory that they take, as `ClusterEvent.byteCount` counts it.
    static let bytesMax = 8 << 20
    /// The most events in a page of the store.
    static let pageSize = 256
    /// The most pages of the store in memory.
    private static let pagesMax = 8

    private struct State {
        /// Each begins where the one before ends.
        var recent = Deque<EventSegment>()
        var count = 0
        var bytes = 0
        /// The page after each of these numbers, the latest first.
        var pages: [(after: UInt64, page: Task<EventSegment?, any Error>)] = []

        mutating func dropFirst() -> EventSegment? {
            guard let first = recent.popFirst() else { return nil }
            count -= first.events.count
            bytes -= first.byteCount
            return first
        }
    }

    private let state = Mutex(State())

    /// Adds events that are on the disk.
    func append(_ segment: EventSegment) {
        let dropped = state.withLock { state in
            var dropped: [EventSegment] = []
            // Events are missing in between: nobody read, or there were too many at once.
            if let last = state.recent.last, last.end != segment.first {
                while let first = state.dropFirst() { dropped.append(first) }
            }
            state.recent.append(segment)
            state.count += segment.events.count
            state.bytes += segment.byteCount
            while state.count > Self.eventsMax || state.bytes > Self.bytesMax,
                let first = state.dropFirst()
            {
                dropped.append(first)
            }
            return dropped
        }
        // Freed here, without the lock.
        _ = consume dropped
    }

    /// Forgets everything: nobody reads any more.
    func removeAll() {
        let old = state.withLock { state in
            let old = state
            state = State()
            return old
        }
        _ = consume old
    }

    /// The segment in memory with the event of this number; `nil`: it is not in memory.
    func recent(with sequence: UInt64) -> EventSegment? {
        state.withLock { state in
            // The first segment that begins after it is behind the one that is wanted.
            var (low, high) = (0, state.recent.count)
            while low < high {
                let middle = (low + high) / 2
                if state.recent[middle].first > sequence { high = middle } else { low = middle + 1 }
            }
            guard low > 0, sequence < state.recent[low - 1].end else { return nil }
            return state.recent[low - 1]
        }
    }

    /// The first events in the store after this number; `nil`: there are none up to `newest`.
    ///
    /// - Parameter newest: The last event that is on the disk.
    func page(
        after sequence: UInt64,
        upTo newest: UInt64,
        from store: any OperationStore
    ) async throws -> EventSegment? {
        let page = state.withLock { state in
            if let known = state.pages.first(where: { $0.after == sequence }) { return known.page }
            let page = Task { try await Self.load(after: sequence, upTo: newest, from: store) }
            state.pages.insert((sequence, page), at: 0)
            if state.pages.count > Self.pagesMax { state.pages.removeLast() }
            return page
        }
        switch await page.result {
        case .success(let segment?): return segment
        case let other:
            state.withLock { $0.pages.removeAll { $0.page == page } }
            return try other.get()
        }
    }

    private static func load(
        after sequence: UInt64,
        upTo newest: UInt64,
        from store: any OperationStore
    ) async throws -> EventSegment? {
        // Events that are not synced are held back: a power cut would undo them.
        let stored = try await store.events(after: sequence, limit: pageSize)
            .prefix { $0.sequence <= newest }
        guard let first = stored.first?.sequence else { return nil }
        var events: [ClusterEvent] = []
        // If a row is missing in between, the next page begins behind it, and readers get a gap.
        for event in stored where event.sequence == first + UInt64(events.count) {
            events.append(try StoreFormat.decodeEvent(event.body))
        }
        return EventSegment(first, events)
    }
}

/// Events with consecutive numbers. Their views are made when a reader first wants them, and only
/// once.
actor EventSegment {
    nonisolated let first: UInt64
    nonisolated let events: [ClusterEvent]
    nonisolated let byteCount: Int
    private var shared: [SharedEvent?] = []
    private var isMakingViews = false
    private var waiting: [Latch] = []
    /// The most views that are made in one call of the service, which decides nothing meanwhile.
    private static let viewsAtOnce = 128

    init(_ first: UInt64, _ events: [ClusterEvent]) {
        self.first = first
        self.events = events
        byteCount = events.reduce(0) { $0 + $1.byteCount }
    }

    /// The number after the last event.
    nonisolated var end: UInt64 { first + UInt64(events.count) }

    /// These events as readers get them. Empty if the task was cancelled.
    ///
    /// - Parameter numbers: Numbers of events of this segment, in order.
    func views(of numbers: [UInt64], by service: CoordinatorService) async -> [SharedEvent] {
        // One reader at a time asks the service; the others then find what it has made.
        while isMakingViews {
            let latch = Latch()
            waiting.append(latch)
            await latch.wait()
            if Task.isCancelled { return [] }
        }
        isMakingViews = true
        if shared.isEmpty { shared = Array(repeating: nil, count: events.count) }
        let missing = numbers.filter { shared[Int($0 - first)] == nil }
        var rest = missing[...]
        while !rest.isEmpty {
            let some = rest.prefix(Self.viewsAtOnce)
            rest = rest.dropFirst(Self.viewsAtOnce)
            for view in await service.views(of: some.map { ($0, events[Int($0 - first)]) }) {
                shared[Int(view.sequence - first)] = SharedEvent(view)
            }
        }
        isMakingViews = false
        for latch in waiting { latch.open() }
        waiting = []
        return numbers.compactMap { shared[Int($0 - first)] }
    }
}

extension ClusterEvent {
    /// The memory that it takes, about.
    var byteCount: Int {
        256 + workerName.utf8.count + queue.utf8.count + by.utf8.count + reason.utf8.count
            + key.utf8.count + trigger.utf8.count + (error?.byteCount ?? 0)
    }
}

/// Which events a reader gets.
struct EventFilter: Sendable {
    let graph: GraphID?
    /// A bit for each kind; 0: every kind.
    private let kinds: UInt64
    /// A bit for each outcome; 0: every one.
    private let outcomes: UInt8

    init(
        graph: GraphID?,
        kinds: Set<ClusterEvent.Kind>,
        outcomes: Set<OutcomeKind> = []
    ) {
        self.graph = graph
        self.kinds = kinds.reduce(0) { $0 | 1 << $1.rawValue }
        self.outcomes = outcomes.reduce(0) { $0 | 1 << $1.rawValue }
    }

    func matches(_ event: borrowing ClusterEvent) -> Bool {
        if let graph, event.graph != graph { return false }
        if outcomes != 0, let outcome = event.outcome, outcomes & 1 << outcome.rawValue == 0 {
            return false
        }
        return kinds == 0 || kinds & 1 << event.kind.rawValue != 0
    }
}

/// Reads events as its reader asks for them, so that nothing piles up for a slow one. Some time
/// after the last reference to it is released, the service forgets the reader.
actor EventReader {
    private let service: CoordinatorService
    private let store: any OperationStore
    private let filter: EventFilter
    private var last: UInt64
    private var isChecked = false
    /// The number of events since the last batch that the filter left out.
    private var skipped = 0
    /// When the last page was read from the store, and the last event on the disk at that time.
    private var pageRead: (at: Timestamp, newest: UInt64)?
    /// The most events in one batch.
    private static let batchMax = 512
    /// A reader that gets nothing of this many events is told how far they go.
    private static let skippedMax = 4_096
    /// The least time between two pages while the coordinator is busy.
    private static let busyPause = Duration.milliseconds(50)
    /// A coordinator is busy if it writes more events than this in that time.
    private static let busyEvents: UInt64 = 64

    /// - Parameter after: The number of the event before the first one.
    init(
        service: CoordinatorService,
        store: any OperationStore,
        filter: EventFilter,
        after: UInt64
    ) {
        self.service = service
        self.store = store
        self.filter = filter
        last = after
    }

    deinit {
        let service = service
        Task { await service.stopReading() }
    }

    /// The next events, at least one. `nil`: the coordinator has ended, or the task was cancelled.
    func next() async throws -> [EventItem]? {
        while !Task.isCancelled {
            if !isChecked {
                isChecked = true
                let known = await service.lastEvent
                if last > known {
                    // The store is older than the reader's position: it is a copy, or a power
                    // failure cut it. Nothing the reader saw counts then, and other events get the
                    // same numbers.
                    last = known
                    return [.gap(min(1, known), known)]
                }
            }
            let newest = await service.waitForEvents(after: last)
            guard newest > last else { return nil }
            var items: [EventItem] = []
            var bytes = 0
            while let segment = service.feed.recent(with: last + 1) {
                items += await take(from: segment, &bytes)
                guard Self.hasRoom(items.count, bytes) else { break }
            }
            if items.isEmpty, last < newest {
                await pauseIfBusy(newest)
                if Task.isCancelled { return nil }
                let page = try await service.feed.page(after: last, upTo: newest, from: store)
                guard let page else {
                    defer { last = newest }
                    return [.gap(last + 1, newest)]
                }
                if page.first > last + 1 {
                    defer { last = page.first - 1 }
                    return [.gap(last + 1, page.first - 1)]
                }
                items = await take(from: page, &bytes)
            }
            if items.isEmpty, skipped >= Self.skippedMax { items = [.position(last)] }
            if !items.isEmpty {
                skipped = 0
                return items
            }
        }
        return nil
    }

    private static func hasRoom(_ count: Int, _ bytes: Int) -> Bool {
        count < batchMax && bytes < StoredEvent.pageBytes
    }

    /// The next matching events of a segment, as many as a batch may have.
    private func take(from segment: EventSegment, _ bytes: inout Int) async -> [EventItem] {
        var numbers: [UInt64] = []
        while last + 1 < segment.end, Self.hasRoom(numbers.count, bytes) {
            last += 1
            let index = Int(last - segment.first)
            guard filter.matches(segment.events[index]) else {
                skipped += 1
                continue
            }
            numbers.append(last)
            bytes += segment.events[index].byteCount
        }
        guard !numbers.isEmpty else { return [] }
        return await segment.views(of: numbers, by: service).map { .event($0) }
    }

    /// Bounds the pages per second of a reader that is behind. While the coordinator is busy, the
    /// thread of the store has more important things to do than to read what somebody has missed.
    /// Returns early if the task is cancelled.
    private func pauseIfBusy(_ newest: UInt64) async {
        let time = service.machineTime
        if let pageRead, newest - min(newest, pageRead.newest) > Self.busyEvents {
            let pause = pageRead.at + Self.busyPause - time.now()
            if pause > .zero { try? await time.sleep(for: pause) }
        }
        pageRead = (time.now(), newest)
    }
}
