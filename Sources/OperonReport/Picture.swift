package import OperonModel
import OperonTerminal

/// What a picture shows of a graph: boxes, and arrows between them.
///
/// A small graph is shown as it is. In a larger one, the elements of a repeated operation are one
/// box; in one that is larger still, all operations of a layer are one, or of several layers.
package struct Picture: Sendable {
    /// How an operation is, as far as a picture shows it.
    package enum State: String, Hashable, Sendable, CaseIterable {
        case succeeded
        case failed
        case cancelled
        case skipped
        case running
        case waiting
        /// The picture is of a graph that nobody runs.
        case plain

        package init(_ outcome: OutcomeKind) {
            self =
                switch outcome {
                case .succeeded: .succeeded
                case .failed: .failed
                case .cancelled: .cancelled
                case .skipped: .skipped
                }
        }
    }

    /// What is known of an operation.
    package struct Operation: Hashable, Sendable {
        package var name: String
        package var state: State
        package var duration: Duration

        package init(name: String, state: State = .plain, duration: Duration = .zero) {
            self.name = name
            self.state = state
            self.duration = duration
        }
    }

    package struct Box: Hashable, Sendable {
        package var title: String
        /// How many operations it stands for.
        package var count: Int
        /// How many of them are in each state.
        package var states: [State: Int] = [:]
        package var isCritical = false
        /// The layer that it is in, from 0.
        package var layer: Int
        /// Of one operation its own, of several the longest.
        package var duration: Duration = .zero

        /// What needs attention most.
        package var state: State {
            let order: [State] = [
                .failed, .cancelled, .skipped, .running, .waiting, .succeeded, .plain,
            ]
            return order.first { states[$0] ?? 0 > 0 } ?? .plain
        }
    }

    package struct Arrow: Hashable, Sendable {
        package var from: Int
        package var to: Int
        package var isCritical = false
    }

    /// The most boxes: more cannot be told apart.
    package static let boxesMax = 500
    /// The most arrows: with more, a picture is black.
    package static let arrowsMax = 4_000

    package private(set) var boxes: [Box] = []
    package private(set) var arrows: [Arrow] = []
    /// For each operation, the number of its box.
    package private(set) var places: [Int] = []
    /// How many arrows there are besides those in the picture.
    package private(set) var arrowsLeftOut = 0
    package let operationCount: Int
    /// The name of the graph.
    package let title: String

    /// - Parameters:
    ///   - operations: As many as the shape has, in its order.
    ///   - groups: The repeated operations among them.
    package init(
        _ operations: [Operation],
        _ shape: GraphShape,
        groups: [ElementFolding.Group],
        criticalPath: [Int] = [],
        title: String
    ) {
        self.title = title
        operationCount = operations.count
        var places = Array(operations.indices)
        var titles = operations.map(\.name)
        if operations.count > Self.boxesMax {
            (places, titles) = Self.folded(operations, groups)
        }
        var folded = Self.shape(shape, places, count: titles.count)
        var layers = folded.layers
        if titles.count > Self.boxesMax {
            let each = (folded.layerCount + Self.boxesMax - 1) / Self.boxesMax
            places = places.map { folded.layers[$0] / each }
            titles = (0..<(folded.layerCount + each - 1) / each).map { number in
                let first = number * each + 1
                let last = min(first + each - 1, folded.layerCount)
                return first == last ? "layer \(first)" : "layers \(first) to \(last)"
            }
            folded = Self.shape(shape, places, count: titles.count)
            layers = Array(titles.indices)
        }
        self.places = places
        boxes = titles.indices.map { Box(title: titles[$0], count: 0, layer: layers[$0]) }
        for (number, operation) in operations.enumerated() {
            let place = places[number]
            boxes[place].count += 1
            boxes[place].states[operation.state, default: 0] += 1
            boxes[place].duration = max(boxes[place].duration, operation.duration)
        }
        connect(folded, critical: criticalPath.map { places[$0] })
    }

    /// One box for each repeated operation: the box of each operation, and the titles of the boxes.
    private static func folded(
        _ operations: [Operation],
        _ groups: [ElementFolding.Group]
    ) -> (places: [Int], titles: [String]) {
        var group = [Int?](repeating: nil, count: operations.count)
        for (number, one) in groups.enumerated() {
            if operations.indices.contains(one.index) { group[one.index] = number }
            for member in one.members where operations.indices.contains(member) {
                group[member] = number
            }
        }
        var places: [Int] = []
        var titles: [String] = []
        var known: [Int: Int] = [:]
        for (number, operation) in operations.enumerated() {
            if let own = group[number], let place = known[own] {
                places.append(place)
                continue
            }
            if let own = group[number] { known[own] = titles.count }
            places.append(titles.count)
            titles.append(group[number].map { groups[$0].title } ?? operation.name)
        }
        return (places, titles)
    }

    /// The shape of a graph whose operations are put together to boxes.
    private static func shape(_ shape: GraphShape, _ places: [Int], count: Int) -> GraphShape {
        var dependencies = [[Int]](repeating: [], count: count)
        for number in 0..<shape.count {
            for other in shape.dependencies(of: number) where places[other] != places[number] {
                dependencies[places[number]].append(places[other])
            }
        }
        return GraphShape(dependencies: dependencies)
    }

    private mutating func connect(_ shape: GraphShape, critical: [Int]) {
        for place in critical { boxes[place].isCritical = true }
        var isCritical: Set<Arrow> = []
        for (from, to) in zip(critical, critical.dropFirst()) where from != to {
            isCritical.insert(Arrow(from: from, to: to))
        }
        for to in 0..<shape.count {
            for from in shape.dependencies(of: to) {
                var arrow = Arrow(from: from, to: to)
                arrow.isCritical = isCritical.contains(arrow)
                guard arrows.count < Self.arrowsMax || arrow.isCritical else {
                    arrowsLeftOut += 1
                    continue
                }
                arrows.append(arrow)
            }
        }
    }
}

extension GraphShape {
    var layerCount: Int { (layers.max() ?? -1) + 1 }
}
