import OperonModel
import OperonPorts
import OperonReport

/// What the picture and the timeline of a graph are made of. Making it reads all operations of the
/// graph and their attempts.
struct GraphPlan: Sendable {
    /// The number of the graph.
    let graph: UInt32
    let operationCount: Int
    let isFinished: Bool
    let finishedAt: TimeText?
    let madeAt: ContinuousClock.Instant
    let took: Duration
    private let submittedAt: TimeText
    private let now: Double
    private let names: [String]
    private let workers: [String]
    /// Without the states of its boxes.
    private let picture: GraphPictureView
    /// For each operation, the number of its box.
    private let places: [UInt32]
    private let chart: AttemptChart
    /// The end of the last attempt.
    private let lastEnd: Double

    /// The number of operations that are read at a time.
    private static let pageOperations = 8_192
    /// What no worker runs has rows of its own.
    private static let nobody = -1

    /// - Parameter graph: As it is now.
    static func make(
        of graph: GraphView,
        by client: any CoordinatorClient
    ) async throws -> GraphPlan {
        let start = ContinuousClock.now
        var contents = Contents()
        var after: UInt32?
        repeat {
            let page = try await client.records(
                of: String(graph.id),
                after: after,
                limit: pageOperations
            )
            contents.add(page)
            after = page.next
        } while after != nil
        return GraphPlan(contents, of: graph, start: start)
    }

    /// All records of a graph, in columns.
    private struct Contents {
        var names: [String] = []
        var dependencies: [[Int]] = []
        var durations: [Duration] = []
        /// As `GraphShape.readyTimes` takes them.
        var ends: [Double?] = []
        var folding = ElementFolding()
        var workers: [String] = []
        var bars: [(worker: Int, bar: AttemptChart.Bar)] = []
        var submittedAt: TimeText?
        var now = 0.0
        private var places: [String: Int] = [:]

        mutating func add(_ page: RecordPage) {
            submittedAt = page.submittedAt
            now = (page.now.time - page.submittedAt.time).seconds
            let numbers = page.workers.map { name in
                if let place = places[name] { return place }
                places[name] = workers.count
                workers.append(name)
                return workers.count - 1
            }
            for record in page.records {
                let number = UInt32(names.count)
                _ = folding.add(record.name, kind: record.isNothing == true ? Work.nothingKind : "")
                names.append(record.name)
                dependencies.append(record.dependencies.map(Int.init))
                let attempts = record.attempts ?? []
                durations.append(attempts.last?.duration(now: now) ?? .zero)
                var freeAt = 0.0
                for attempt in attempts {
                    guard let bar = attempt.bar(of: number, after: freeAt) else { continue }
                    freeAt = max(freeAt, bar.end)
                    bars.append((attempt.worker.map { numbers[$0] } ?? GraphPlan.nobody, bar))
                }
                ends.append(record.end)
            }
        }
    }

    private init(_ contents: Contents, of graph: GraphView, start: ContinuousClock.Instant) {
        let shape = GraphShape(dependencies: contents.dependencies)
        let path = shape.criticalPath(durations: contents.durations)
        let drawn = Picture(
            zip(contents.names, contents.durations).map { name, duration in
                Picture.Operation(name: name, duration: duration)
            },
            shape,
            groups: contents.folding.groups,
            criticalPath: path,
            title: graph.name
        )
        let critical = Set(path)
        let ready = shape.readyTimes(ends: contents.ends)
        chart = AttemptChart(
            contents.bars.map { worker, bar in
                var bar = bar
                bar.isCritical = critical.contains(Int(bar.operation))
                bar.ready = max(bar.ready, ready[Int(bar.operation)])
                return (worker, bar)
            }
        )
        lastEnd = contents.bars.lazy.map(\.bar.end).filter(\.isFinite).max() ?? 0
        picture = GraphPictureView(drawn)
        places = drawn.places.map(UInt32.init)
        names = contents.names
        workers = contents.workers
        submittedAt = contents.submittedAt ?? graph.submittedAt
        now = contents.now
        self.graph = graph.id
        operationCount = contents.names.count
        isFinished = graph.counts.unfinished == 0
        finishedAt = graph.finishedAt
        madeAt = ContinuousClock.now
        took = madeAt - start
    }

    // MARK: - Answers

    /// The title of a box of the picture, and the operations that it stands for; `nil`: there is
    /// none of this number.
    func box(_ number: Int) -> (title: String, operations: [UInt32])? {
        guard picture.boxes.indices.contains(number) else { return nil }
        let operations = places.indices.lazy.filter { places[$0] == UInt32(number) }
        return (picture.boxes[number].title, operations.map { UInt32($0) })
    }

    func picture(_ states: StateRunsView) -> GraphPictureView {
        var picture = picture
        for (place, counts) in counts(states).enumerated() { picture.boxes[place].states = counts }
        return picture
    }

    /// The states of the boxes. Operations that were added since are left out.
    func states(_ states: StateRunsView) -> PictureStatesView {
        PictureStatesView(
            operations: states.runs.reduce(0) { $0 + $1.count },
            states: counts(states)
        )
    }

    private func counts(_ states: StateRunsView) -> [[String: Int]] {
        let all = CountedState.allCases
        var counts = [Int](repeating: 0, count: picture.boxes.count * all.count)
        var next = 0
        for run in states.runs {
            let column = all.firstIndex(of: run.state) ?? 0
            for place in places[min(next, places.count)..<min(next + run.count, places.count)] {
                counts[Int(place) * all.count + column] += 1
            }
            next += run.count
        }
        return picture.boxes.indices.map { box in
            var named: [String: Int] = [:]
            for (column, state) in all.enumerated() {
                let count = counts[box * all.count + column]
                if count > 0 { named[state.rawValue] = count }
            }
            return named
        }
    }

    /// A part of the timeline.
    ///
    /// - Parameters:
    ///   - from: `nil`: from the start.
    ///   - to: `nil`: to the end, or to now.
    ///   - barsMax: The most bars.
    func timeline(from: Double?, to: Double?, barsMax: Int) -> TimelineView {
        let length = isFinished ? lastEnd : max(now, lastEnd)
        let from = min(max(0, from ?? 0), length)
        let to = max(from, min(to ?? length, length))
        let each = max(1, barsMax / max(1, chart.rows.count))
        return TimelineView(
            startedAt: submittedAt,
            length: length,
            isLive: !isFinished,
            from: from,
            to: to,
            left: chart.rowsLeftOut,
            rows: chart.rows.map { row in
                TimelineView.Row(
                    worker: row.worker == Self.nobody ? "" : workers[row.worker],
                    slot: row.slot,
                    bars: chart.bars(of: row, from: from, to: to, barsMax: each).map { cut in
                        let isOne = cut.count == 1
                        return TimelineView.Bar(
                            name: isOne ? names[Int(cut.first.operation)] : nil,
                            index: isOne ? cut.first.operation : nil,
                            attempt: isOne ? cut.first.attempt : nil,
                            waitedFrom: cut.waitedFrom,
                            from: cut.first.start,
                            to: min(cut.end, length),
                            state: "\(cut.state)",
                            isCritical: cut.isCritical,
                            count: cut.count
                        )
                    }
                )
            }
        )
    }
}

extension OperationRecord {
    /// When it ended, as `GraphShape.readyTimes` takes it. Its outcome has no time of its own here.
    fileprivate var end: Double? {
        guard let attempts else {
            return isNothing == true && state == .succeeded ? nil : .infinity
        }
        return attempts.reduce(0) { max($0, $1.endedAt ?? .infinity) }
    }
}

extension AttemptRecord {
    /// How long it has run, or until now.
    fileprivate func duration(now: Double) -> Duration {
        guard let startedAt else { return .zero }
        return .seconds(max(0, (endedAt ?? now) - startedAt))
    }

    /// `nil`: it has not started.
    ///
    /// - Parameter end: The last one of the attempts before it.
    fileprivate func bar(of operation: UInt32, after end: Double) -> AttemptChart.Bar? {
        guard let startedAt else { return nil }
        let state: AttemptChart.State =
            switch ending {
            case nil: .executing
            case "succeeded": .succeeded
            case "failed", "crashed": .failed
            case "cancelled": .cancelled
            case "returned": .returned
            case _?: .lost
            }
        return AttemptChart.Bar(
            operation: operation,
            attempt: number,
            ready: end,
            start: startedAt,
            end: endedAt ?? .infinity,
            state: state,
            isCritical: false
        )
    }
}

extension GraphPictureView {
    /// Lays out a picture. Its boxes have no states.
    init(_ picture: Picture) {
        let layout = PictureLayout(picture)
        var firsts = [Int?](repeating: nil, count: picture.boxes.count)
        for (number, place) in picture.places.enumerated() where firsts[place] == nil {
            firsts[place] = number
        }
        self.init(
            operations: picture.operationCount,
            width: layout.width,
            height: layout.height,
            left: picture.arrowsLeftOut,
            boxes: picture.boxes.enumerated().map { place, box in
                let frame = layout.frames[place]
                return Box(
                    title: box.title,
                    count: box.count,
                    index: box.count == 1 ? firsts[place] : nil,
                    first: firsts[place] ?? 0,
                    x: frame.x.tenths,
                    y: (frame.y - PictureLayout.boxHeight / 2).tenths,
                    width: frame.width.tenths,
                    height: PictureLayout.boxHeight,
                    layer: box.layer,
                    isCritical: box.isCritical,
                    states: [:]
                )
            },
            arrows: picture.arrows.enumerated().map { number, arrow in
                Arrow(
                    from: arrow.from,
                    to: arrow.to,
                    isCritical: arrow.isCritical,
                    points: layout.points(of: number, in: picture)
                        .flatMap { [$0.x.tenths, $0.y.tenths] }
                )
            }
        )
    }
}

extension Double {
    /// Nobody sees more, and it takes less room.
    fileprivate var tenths: Double { (self * 10).rounded() / 10 }
}
