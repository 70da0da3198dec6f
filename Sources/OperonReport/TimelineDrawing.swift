import OperonModel
import OperonTerminal

/// Draws a timeline as SVG.
struct TimelineDrawing: Sendable {
    private static let left = 150.0
    private static let width = 1_050.0
    private static let rowHeight = 18.0
    private static let barHeight = 14.0
    private static let axisHeight = 26.0
    private static let workerMax = 18
    /// Bars that would be narrower than this, and those that are closer together, are one.
    private static let finest = 0.5
    /// The most bars in the page; with many rows, those that are farther apart are one, too.
    private static let spansMax = 40_000.0
    /// With more bars, none has a tooltip: they would make the page too large to be sent.
    private static let namedBarsMax = 2_000

    private let timeline: Timeline

    init(_ timeline: Timeline) { self.timeline = timeline }

    func svg() -> Markup {
        var markup = Markup()
        let height = Double(timeline.rows.count) * Self.rowHeight + Self.axisHeight
        markup.raw("<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" ")
        markup.raw("class=\"timeline\" viewBox=\"0 0 ")
        markup.number(Self.left + Self.width)
        markup.raw(" ")
        markup.number(height)
        markup.raw("\"><title>")
        markup.text(
            "What ran when: \(PictureDrawing.plural(timeline.rows.count, "slot")) over "
                + TimeFormat.short(timeline.length)
        )
        markup.raw("</title>\n")
        drawAxis(height, into: &markup)
        let isNamed = timeline.rows.reduce(0) { $0 + $1.bars.count } <= Self.namedBarsMax
        var last: String?
        for (number, row) in timeline.rows.enumerated() {
            let top = Self.axisHeight + Double(number) * Self.rowHeight
            if row.worker != last {
                label(row.worker, top, into: &markup)
                last = row.worker
            }
            drawWaits(row, top, into: &markup)
            if isNamed {
                drawNamed(row, top, into: &markup)
            } else {
                drawMerged(row, top, into: &markup)
            }
        }
        markup.raw("</svg>\n")
        return markup
    }

    private func x(_ time: Duration) -> Double {
        guard timeline.length > .zero else { return Self.left }
        return Self.left + Self.width * time.seconds / timeline.length.seconds
    }

    private func label(_ worker: String, _ top: Double, into markup: inout Markup) {
        let name = worker.isEmpty ? "outside" : worker
        markup.raw("<text class=\"worker\" x=\"")
        markup.number(Self.left - 8)
        markup.raw("\" y=\"")
        markup.number(top + 12)
        markup.raw("\">")
        markup.text(TerminalText.elided(name, to: Self.workerMax))
        markup.raw("</text>\n")
    }

    /// The least width of the gap between two bars of a row.
    private var apart: Double {
        max(Self.finest, Self.width * Double(timeline.rows.count) / Self.spansMax)
    }

    /// A line in the gap before each attempt that was waiting in it.
    private func drawWaits(_ row: Timeline.Row, _ top: Double, into markup: inout Markup) {
        var freeAt = Duration.zero
        var hasWaits = false
        for bar in row.bars {
            let from = x(max(bar.ready ?? bar.start, freeAt))
            let length = x(bar.start) - from
            freeAt = bar.end
            guard length >= max(1, apart) else { continue }
            markup.raw(hasWaits ? "M" : "<path class=\"wait\" d=\"M")
            markup.number(from)
            markup.raw(" ")
            markup.number(top + Self.barHeight / 2)
            markup.raw("h")
            markup.number(length)
            hasWaits = true
        }
        if hasWaits { markup.raw("\"/>\n") }
    }

    /// Each bar has a tooltip.
    private func drawNamed(_ row: Timeline.Row, _ top: Double, into markup: inout Markup) {
        for bar in row.bars {
            markup.raw("<rect class=\"bar ")
            markup.text(bar.state.rawValue)
            if bar.isCritical { markup.raw(" critical") }
            markup.raw("\" x=\"")
            markup.number(x(bar.start))
            markup.raw("\" y=\"")
            markup.number(top)
            markup.raw("\" width=\"")
            markup.number(max(x(bar.end) - x(bar.start), Self.finest))
            markup.raw("\" height=\"")
            markup.number(Self.barHeight)
            markup.raw("\"><title>")
            markup.text(
                "\(bar.name): \(bar.state.rawValue), \(TimeFormat.short(bar.end - bar.start)) "
                    + "from \(TimeFormat.short(bar.start)) on"
            )
            markup.raw("</title></rect>\n")
        }
    }

    /// One path for all bars of a state, which takes some twenty bytes for each of them.
    private func drawMerged(_ row: Timeline.Row, _ top: Double, into markup: inout Markup) {
        var spans: [Key: [(from: Double, to: Double)]] = [:]
        let apart = apart
        for bar in row.bars {
            let key = Key(state: bar.state, isCritical: bar.isCritical)
            let from = x(bar.start)
            let to = max(x(bar.end), from + Self.finest)
            if let last = spans[key]?.last, from - last.to < apart {
                spans[key]?.removeLast()
                spans[key]?.append((last.from, max(last.to, to)))
            } else {
                spans[key, default: []].append((from, to))
            }
        }
        for key in Key.all {
            guard let own = spans[key] else { continue }
            markup.raw("<path class=\"bar ")
            markup.text(key.state.rawValue)
            if key.isCritical { markup.raw(" critical") }
            markup.raw("\" d=\"")
            for span in own {
                markup.raw("M")
                markup.number(span.from)
                markup.raw(" ")
                markup.number(top)
                markup.raw("h")
                markup.number(span.to - span.from)
                markup.raw("v")
                markup.number(Self.barHeight)
                markup.raw("h")
                markup.number(span.from - span.to)
                markup.raw("z")
            }
            markup.raw("\"/>\n")
        }
    }

    private struct Key: Hashable {
        let state: Picture.State
        let isCritical: Bool

        static let all = [false, true].flatMap { isCritical in
            Picture.State.allCases.map { Key(state: $0, isCritical: isCritical) }
        }
    }

    // MARK: - The axis

    /// Seven marks or fewer, at times that are easy to read.
    private func drawAxis(_ height: Double, into markup: inout Markup) {
        let step = Self.step(for: timeline.length.seconds / 6)
        guard step > 0 else { return }
        for number in 0...Int(timeline.length.seconds / step) {
            let time = Duration.nanoseconds(Int64(Double(number) * step * 1e9))
            markup.raw("<path class=\"mark\" d=\"M")
            markup.number(x(time))
            markup.raw(" 18V")
            markup.number(height)
            markup.raw("\"/><text class=\"time\" x=\"")
            markup.number(x(time))
            markup.raw("\" y=\"13\">")
            markup.text(number == 0 ? "0" : Self.text(time, step))
            markup.raw("</text>\n")
        }
    }

    private static func step(for atLeast: Double) -> Double {
        guard atLeast > 0, atLeast.isFinite else { return 0 }
        let long: [Double] = [
            1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600,
            43_200,
        ]
        if atLeast > 43_200 { return (atLeast / 86_400).rounded(.up) * 86_400 }
        if atLeast > 0.5 { return long.first { $0 >= atLeast } ?? 86_400 }
        var unit = 1e-9
        while true {
            for factor in [1.0, 2, 5] where unit * factor >= atLeast { return unit * factor }
            unit *= 10
        }
    }

    private static func text(_ time: Duration, _ step: Double) -> String {
        if step >= 60 { return TimeFormat.clock(time) }
        if step >= 1, time < .seconds(60) { return "\(time.components.seconds)s" }
        return step >= 1 ? TimeFormat.clock(time) : TimeFormat.short(time)
    }
}
