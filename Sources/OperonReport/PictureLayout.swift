import OperonTerminal

/// Where the boxes of a picture lie: layers from left to right, so that arrows point to the right,
/// in an order with few crossings (Sugiyama, Tagawa and Toda, 1981).
package struct PictureLayout: Sendable {
    package struct Frame: Hashable, Sendable {
        package var x: Double
        /// Of its middle.
        package var y: Double
        package var width: Double
    }

    package static let boxHeight = 30.0
    /// The width of a usual character of a title, in the unit of the picture.
    private static let characterWidth = 7.2
    private static let padding = 20.0
    static let margin = 16.0
    private static let boxGap = 12.0
    private static let bendGap = 8.0
    private static let layerGap = 56.0
    private static let sweeps = 8
    /// The most bends. A picture with more has arrows that go through boxes.
    private static let bendsMax = 20_000

    package private(set) var frames: [Frame] = []
    /// For each arrow, the heights at which it passes the layers between its ends, left to right.
    private(set) var bends: [[(x: Double, y: Double)]] = []
    package private(set) var width = 0.0
    package private(set) var height = 0.0

    /// What has a place in a layer: a box, or the bend of an arrow that passes.
    private struct Item {
        var layer: Int
        var height: Double
        var left: [Int] = []
        var right: [Int] = []
        var y = 0.0
        var rank = 0
    }

    /// Boxes in which their titles have room, and before each a sign.
    package init(_ picture: Picture) {
        self.init(
            picture,
            titles: picture.boxes.map { Self.sign + PictureDrawing.shownTitle(of: $0) }
        )
    }

    /// As wide as a sign.
    private static let sign = "   "

    /// - Parameter titles: What the boxes have room for.
    init(_ picture: Picture, titles: [String]) {
        self.init(
            picture,
            widths: titles.map { title in
                Double(TerminalText.width(title)) * Self.characterWidth + Self.padding
            }
        )
    }

    init(_ picture: Picture, widths: [Double]) {
        var items = picture.boxes.map { Item(layer: $0.layer, height: Self.boxHeight) }
        let passing = picture.arrows.map { arrow in
            max(0, picture.boxes[arrow.to].layer - picture.boxes[arrow.from].layer - 1)
        }
        let bendsAreMade = passing.reduce(0, +) <= Self.bendsMax
        var chains: [[Int]] = []
        for (number, arrow) in picture.arrows.enumerated() {
            var chain: [Int] = []
            var last = arrow.from
            if bendsAreMade {
                for step in 0..<passing[number] {
                    items.append(Item(layer: items[arrow.from].layer + step + 1, height: 0))
                    Self.connect(last, items.count - 1, &items)
                    last = items.count - 1
                    chain.append(last)
                }
            }
            if bendsAreMade || passing[number] == 0 { Self.connect(last, arrow.to, &items) }
            chains.append(chain)
        }
        var layers = [[Int]](repeating: [], count: (items.map(\.layer).max() ?? -1) + 1)
        for (number, item) in items.enumerated() { layers[item.layer].append(number) }
        Self.order(&layers, &items)
        Self.place(layers, &items)

        var left = Self.margin
        var lefts: [Double] = []
        var layerWidths: [Double] = []
        for layer in layers {
            lefts.append(left)
            let widest = layer.lazy.filter { $0 < widths.count }.map { widths[$0] }.max() ?? 0
            layerWidths.append(widest)
            left += widest + Self.layerGap
        }
        let top = items.map { $0.y - $0.height / 2 }.min() ?? 0
        let bottom = items.map { $0.y + $0.height / 2 }.max() ?? 0
        let shift = Self.margin - top
        frames = widths.indices.map { number in
            let item = items[number]
            return Frame(x: lefts[item.layer], y: item.y + shift, width: widths[number])
        }
        bends = chains.map { chain in
            chain.flatMap { number -> [(x: Double, y: Double)] in
                let (x, y) = (lefts[items[number].layer], items[number].y + shift)
                return [(x, y), (x + layerWidths[items[number].layer], y)]
            }
        }
        width = max(left - Self.layerGap, 0) + Self.margin
        height = bottom - top + 2 * Self.margin
    }

    /// The points of an arrow from left to right: its start, where it enters and leaves each layer
    /// that it passes, its end.
    package func points(of number: Int, in picture: Picture) -> [(x: Double, y: Double)] {
        let (from, to) = (frames[picture.arrows[number].from], frames[picture.arrows[number].to])
        return [(from.x + from.width, from.y)] + bends[number] + [(to.x, to.y)]
    }

    private static func connect(_ from: Int, _ to: Int, _ items: inout [Item]) {
        items[from].right.append(to)
        items[to].left.append(from)
    }

    /// Puts each item near the middle of those that it is connected to, in the layer before and in
    /// the layer behind in turn.
    private static func order(_ layers: inout [[Int]], _ items: inout [Item]) {
        for layer in layers { for (rank, item) in layer.enumerated() { items[item].rank = rank } }
        for sweep in 0..<sweeps {
            let isForward = sweep.isMultiple(of: 2)
            for number in isForward ? Array(layers.indices) : layers.indices.reversed() {
                let keys = layers[number].map { item in
                    let others = isForward ? items[item].left : items[item].right
                    return mean(others.map { Double(items[$0].rank) })
                        ?? Double(items[item].rank)
                }
                let sorted = layers[number].indices.sorted { (keys[$0], $0) < (keys[$1], $1) }
                layers[number] = sorted.map { layers[number][$0] }
                for (rank, item) in layers[number].enumerated() { items[item].rank = rank }
            }
        }
    }

    /// Gives each item a height near that of those it is connected to, in its order and without
    /// overlaps.
    private static func place(_ layers: [[Int]], _ items: inout [Item]) {
        for layer in layers { settle(layer, layer.map { _ in 0 }, &items) }
        for sweep in 0..<sweeps {
            let isForward = sweep.isMultiple(of: 2)
            for number in isForward ? Array(layers.indices) : layers.indices.reversed() {
                let wished = layers[number].map { item in
                    let others = isForward ? items[item].left : items[item].right
                    return mean(others.map { items[$0].y }) ?? items[item].y
                }
                settle(layers[number], wished, &items)
            }
        }
    }

    /// The heights that are nearest to the wished ones, by squares, among those in this order that
    /// keep the distances: pools neighbours that would be in each other's way (pool adjacent
    /// violators; Ayer and others, 1955).
    private static func settle(_ layer: [Int], _ wished: [Double], _ items: inout [Item]) {
        var offset = 0.0
        var pools: [(sum: Double, count: Int)] = []
        var offsets: [Double] = []
        for (place, item) in layer.enumerated() {
            if place > 0 {
                let before = items[layer[place - 1]]
                let gap = before.height > 0 || items[item].height > 0 ? boxGap : bendGap
                offset += (before.height + items[item].height) / 2 + gap
            }
            offsets.append(offset)
            pools.append((wished[place] - offset, 1))
            while pools.count > 1, let last = pools.last,
                case let before = pools[pools.count - 2],
                before.sum / Double(before.count) > last.sum / Double(last.count)
            {
                pools.removeLast(2)
                pools.append((before.sum + last.sum, before.count + last.count))
            }
        }
        var place = 0
        for pool in pools {
            for _ in 0..<pool.count {
                items[layer[place]].y = pool.sum / Double(pool.count) + offsets[place]
                place += 1
            }
        }
    }

    private static func mean(_ numbers: [Double]) -> Double? {
        numbers.isEmpty ? nil : numbers.reduce(0, +) / Double(numbers.count)
    }
}
