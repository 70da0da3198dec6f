import OperonReport
import Testing

/// Rows of a timeline, and parts of them in a bounded number of bars.
@Suite struct AttemptChartTests {
    private static func bar(
        _ operation: UInt32,
        _ start: Double,
        _ end: Double,
        _ state: AttemptChart.State = .succeeded,
        ready: Double? = nil
    ) -> AttemptChart.Bar {
        AttemptChart.Bar(
            operation: operation,
            attempt: 1,
            ready: ready ?? start,
            start: start,
            end: end,
            state: state,
            isCritical: operation == 7
        )
    }

    @Test func `attempts at the same time have rows of their own`() {
        let chart = AttemptChart([
            (1, Self.bar(0, 0, 10)), (1, Self.bar(1, 2, 4)), (1, Self.bar(2, 4, 6)),
            (0, Self.bar(3, 1, .infinity)), (1, Self.bar(4, 5, 7)),
        ])
        #expect(chart.rows.map(\.worker) == [1, 1, 1, 0])
        #expect(chart.rows.map(\.slot) == [1, 2, 3, 1])
        let rows = chart.rows.map { row in
            chart.bars(of: row, from: 0, to: 10, barsMax: 100).map(\.first.operation)
        }
        #expect(rows == [[0], [1, 2], [4], [3]])
        #expect(chart.rowsLeftOut == 0)
    }

    @Test func `only a bounded number of rows is kept`() {
        let bars = (0..<300).map { (0, Self.bar(UInt32($0), 0, 1)) }
        let chart = AttemptChart(bars)
        #expect(chart.rows.count == AttemptChart.rowsMax)
        #expect(chart.rowsLeftOut == 300 - AttemptChart.rowsMax)
    }

    @Test func `short attempts are put together, and what needs attention is told`() throws {
        let bars = (0..<100_000).map { number in
            let start = Double(number) / 1_024
            let state = number == 50_000 ? AttemptChart.State.failed : .succeeded
            return (0, Self.bar(UInt32(number), start, start + 1.0 / 1_024, state))
        }
        let chart = AttemptChart(bars)
        let row = try #require(chart.rows.first)
        let cuts = chart.bars(of: row, from: 0, to: 100, barsMax: 200)
        #expect((50...200).contains(cuts.count))
        #expect(cuts.reduce(0) { $0 + $1.count } == 100_000)
        #expect(cuts.count { $0.state == .failed } == 1)
        #expect(cuts.count { $0.isCritical } == 1)
        for (left, right) in zip(cuts, cuts.dropFirst()) { #expect(left.end <= right.first.start) }
    }

    @Test func `a part has what is in it, and a long attempt stays alone`() throws {
        let bars = (0..<1_000).map { (0, Self.bar(UInt32($0), Double($0), Double($0) + 0.5)) }
        let chart = AttemptChart(bars + [(0, Self.bar(1_000, 1_000, 2_000))])
        let row = try #require(chart.rows.first)
        let part = chart.bars(of: row, from: 10.2, to: 12.9, barsMax: 100)
        #expect(part.map(\.first.operation) == [10, 11, 12])
        let last = chart.bars(of: row, from: 0, to: 2_000, barsMax: 20).last
        #expect(last?.first.operation == 1_000 && last?.count == 1)
        // Without any length, for a graph that took no time.
        let instants = AttemptChart((0..<10_000).map { (0, Self.bar(UInt32($0), 0, 0)) })
        let first = try #require(instants.rows.first)
        #expect(instants.bars(of: first, from: 0, to: 0, barsMax: 10).map(\.count) == [10_000])
        #expect(chart.bars(of: row, from: 0, to: 0, barsMax: 10).map(\.count) == [1])
    }

    @Test func `a gap has the time from which its attempt was waiting`() throws {
        let chart = AttemptChart([
            (0, Self.bar(0, 2, 4, ready: 0)), (0, Self.bar(1, 6, 8, ready: 3)),
            (0, Self.bar(2, 9, 10, ready: 8.5)), (0, Self.bar(3, 10, 11, ready: 0)),
            (0, Self.bar(4, 20, 21, ready: .infinity)),
        ])
        let row = try #require(chart.rows.first)
        func waits(_ from: Double, _ to: Double, barsMax: Int = 300) -> [Double?] {
            chart.bars(of: row, from: from, to: to, barsMax: barsMax).map(\.waitedFrom)
        }
        // Not before the slot was free, and not before the operation was ready.
        #expect(waits(0, 30) == [0, 4, 8.5, nil, nil])
        #expect(waits(4.5, 9.5) == [4, 8.5])
        // A part in which nothing ran, and something was waiting.
        #expect(waits(4.5, 5.5) == [4])
        #expect(waits(12, 19) == [])
        // Nobody sees half a second of two hours.
        #expect(waits(0, 7_200, barsMax: 60).count == 1)
        #expect(chart.bars(of: row, from: 0, to: 9_000, barsMax: 40_000)[2].waitedFrom == nil)
    }

    @Test(arguments: 0..<20) func `no part has more bars than it may, and none is lost`(
        seed: UInt64
    ) {
        var random = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        func next(_ bound: Double) -> Double {
            random ^= random << 13
            random ^= random >> 7
            random ^= random << 17
            return Double(random >> 11) / Double(1 << 53) * bound
        }
        let bars = (0..<2_000).map { number in
            let start = next(100)
            let length = number.isMultiple(of: 10) ? next(20) : next(0.1)
            let ready = number.isMultiple(of: 3) ? start - next(10) : start
            let bar = Self.bar(UInt32(number), start, start + length, ready: ready)
            return (Int(next(3)), bar)
        }
        let chart = AttemptChart(bars)
        for barsMax in [4, 16, 64] {
            var count = 0
            for row in chart.rows {
                let cuts = chart.bars(of: row, from: 0, to: 200, barsMax: barsMax)
                #expect(cuts.count <= barsMax)
                count += cuts.reduce(0) { $0 + $1.count }
            }
            #expect(count == 2_000)
        }
    }
}
