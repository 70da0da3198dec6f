import OperonModel
import Testing

@testable import OperonReport

/// Where the parts of a picture lie, and what it shows of graphs of any size.
@Suite struct PictureTests {
    private static func random(
        _ count: Int,
        edges: Int,
        seed: UInt64
    ) -> [[Int]] {
        var generator = Generator(state: seed)
        return (0..<count).map { number in
            guard number > 0 else { return [] }
            return (0..<edges).compactMap { _ in
                let other = Int.random(in: 0..<count, using: &generator)
                return other < number ? other : nil
            }
        }
    }

    private static func picture(_ dependencies: [[Int]]) -> Picture {
        let shape = GraphShape(dependencies: dependencies)
        return Picture(
            dependencies.indices.map { Picture.Operation(name: "o\($0)") },
            shape,
            groups: [],
            title: "g"
        )
    }

    @Test func `a layer is behind those of all dependencies`() {
        let shape = GraphShape(dependencies: [[], [0], [0, 0, 9, 1], [2], []])
        #expect(shape.layers == [0, 1, 2, 3, 0])
        #expect(shape.edgeCount == 4)
        #expect(Array(shape.dependencies(of: 2)) == [0, 1])
    }

    @Test func `an operation is ready when the last one that it depends on has ended`() {
        let shape = GraphShape(dependencies: [[], [0], [0, 1], [2], [5], []])
        // The second does nothing itself.
        #expect(shape.readyTimes(ends: [3, nil, 7, 9, 5, 4]) == [0, 3, 3, 7, 4, 0])
        // The first ended once more, after those behind the third had run.
        #expect(shape.readyTimes(ends: [20, 6, 7, 9, 5, 4]) == [0, 20, 20, 7, 4, 0])
        // Not yet, or nobody knows when.
        let ready = shape.readyTimes(ends: [.infinity, nil, 7, 9, 5, 4])
        #expect(ready == [0, .infinity, .infinity, 7, 4, 0])
    }

    @Test func `a cycle, which no valid graph has, ends nothing`() {
        let shape = GraphShape(dependencies: [[], [0, 2], [1], [2]])
        #expect(Set(shape.order) == [0, 1, 2, 3])
        #expect(Self.picture([[], [0, 2], [1], [2]]).boxes.count == 4)
    }

    @Test func `the critical path is the longest by time, not by number`() {
        let shape = GraphShape(dependencies: [[], [], [0], [2], [1, 3]])
        let durations: [Duration] = [1, 9, 1, 1, 2].map { .seconds($0) }
        #expect(shape.criticalPath(durations: durations) == [1, 4])
        #expect(shape.criticalPath(durations: durations.map { _ in .zero }) == [])
    }

    @Test(arguments: UInt64(1)...40)
    func `boxes do not overlap, and arrows point to the right`(seed: UInt64) {
        let count = Int(seed) * 3
        let picture = Self.picture(Self.random(count, edges: Int(seed % 4), seed: seed))
        let widths = picture.boxes.indices.map { 40 + Double($0 % 7) * 20 }
        let layout = PictureLayout(picture, widths: widths)
        let frames = layout.frames
        for (number, frame) in frames.enumerated() {
            #expect(frame.x >= 0 && frame.x + frame.width <= layout.width)
            let half = PictureLayout.boxHeight / 2
            #expect(frame.y - half >= 0 && frame.y + half <= layout.height)
            for other in frames[(number + 1)...] {
                let isBeside = frame.x + frame.width <= other.x || other.x + other.width <= frame.x
                let isAbove = abs(frame.y - other.y) >= PictureLayout.boxHeight
                #expect(isBeside || isAbove)
            }
        }
        for (number, arrow) in picture.arrows.enumerated() {
            var x = frames[arrow.from].x + frames[arrow.from].width
            for bend in layout.bends[number] {
                #expect(bend.x >= x)
                x = bend.x
            }
            #expect(frames[arrow.to].x > x)
        }
    }

    @Test func `a chain is a line, and the middle of a diamond is even`() {
        let chain = PictureLayout(Self.picture([[], [0], [1]]), widths: [50, 50, 50])
        #expect(Set(chain.frames.map(\.y)).count == 1)
        let diamond = PictureLayout(Self.picture([[], [0], [0], [1, 2]]), widths: [9, 9, 9, 9])
        let ys = diamond.frames.map(\.y)
        #expect(abs(ys[0] - (ys[1] + ys[2]) / 2) < 1e-6)
        #expect(abs(ys[3] - (ys[1] + ys[2]) / 2) < 1e-6)
    }

    // MARK: - Large graphs

    /// `count` elements of `render`, with a group, and one operation behind it.
    private static func repeated(_ count: Int) -> GraphDescription {
        let elements = (0..<count).map {
            OperationDescription(name: "render[\($0)]", work: .wait(.zero))
        }
        var group = OperationDescription(name: "render", work: .nothing)
        group.dependencies = elements.map { DependencyDescription($0.name) }
        var last = OperationDescription(name: "last", work: .wait(.zero))
        last.dependencies = [DependencyDescription("render")]
        return GraphDescription(name: "g", operations: elements + [group, last])
    }

    private static func picture(of graph: GraphDescription, failed: Set<Int> = []) -> Picture {
        Picture(
            graph.operations.enumerated().map { number, operation in
                Picture.Operation(
                    name: operation.name,
                    state: failed.contains(number) ? .failed : .succeeded,
                    duration: .seconds(number)
                )
            },
            GraphShape(graph),
            groups: ElementFolding(graph.operations).groups,
            criticalPath: [graph.operations.count - 3, graph.operations.count - 2],
            title: graph.name
        )
    }

    @Test func `a small graph is shown as it is, a larger one has a box for what is repeated`() {
        #expect(Self.picture(of: Self.repeated(10)).boxes.count == 12)
        let folded = Self.picture(of: Self.repeated(5_000), failed: [7])
        #expect(folded.boxes.map(\.title) == ["render[*]", "last"])
        #expect(folded.boxes[0].count == 5_001)
        #expect(folded.boxes[0].states == [.succeeded: 5_000, .failed: 1])
        #expect(folded.boxes[0].state == .failed)
        #expect(folded.boxes[0].isCritical && !folded.boxes[1].isCritical)
        #expect(folded.boxes[0].duration == .seconds(5_000))
        #expect(folded.arrows == [Picture.Arrow(from: 0, to: 1)])
    }

    @Test func `a graph that nothing folds is shown as layers`() {
        // Forty layers of five hundred, each operation behind two of the layer before.
        let dependencies = (0..<20_000).map { number in
            number < 500 ? [] : [number - 500, number - number % 500 - 500 + (number + 1) % 500]
        }
        let picture = Self.picture(dependencies)
        #expect(picture.boxes.count == 40)
        #expect(picture.boxes[1].title == "layer 2")
        #expect(picture.boxes.allSatisfy { $0.count == 500 })
        #expect(picture.arrows.count == 39)
    }

    @Test func `a long chain is shown as layers of layers`() {
        let picture = Self.picture((0..<100_000).map { $0 == 0 ? [] : [$0 - 1] })
        #expect(picture.boxes.count == Picture.boxesMax)
        #expect(picture.boxes[0].title == "layers 1 to 200")
        #expect(picture.boxes.map(\.count).reduce(0, +) == 100_000)
    }

    @Test func `arrows that are too many are left out and counted`() {
        let dependencies = (0..<200).map { $0 < 100 ? [] : Array(0..<100) }
        let picture = Self.picture(dependencies)
        #expect(picture.arrows.count == Picture.arrowsMax)
        #expect(picture.arrowsLeftOut == 6_000)
    }

    /// SplitMix64.
    struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var word = state
            word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
            word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
            return word ^ (word >> 31)
        }
    }
}
