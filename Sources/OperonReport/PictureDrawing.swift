import OperonTerminal

/// Draws a picture of a graph as SVG.
package struct PictureDrawing: Sendable {
    /// The most columns of a title that are shown. A tooltip has the whole name.
    private static let titleMax = 30

    private let picture: Picture

    package init(_ picture: Picture) { self.picture = picture }

    /// A file of its own, with its colours in it.
    package func svgFile() -> [UInt8] {
        var markup = Markup()
        markup.raw("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
        markup.append(svg(isAlone: true))
        return markup.bytes
    }

    /// A page with the picture.
    package func page() -> [UInt8] {
        var markup = Markup()
        markup.beginPage(title: picture.title)
        markup.raw("<h1>")
        markup.text(picture.title)
        markup.raw("</h1>\n<p class=\"soft\">")
        markup.text(summary)
        markup.raw("</p>\n<div class=\"wide\">\n")
        markup.append(svg(isAlone: false))
        markup.raw("</div>\n")
        markup.endPage()
        return markup.bytes
    }

    /// - Parameter isAlone: Whether the picture is not in a page that has its colours.
    func svg(isAlone: Bool) -> Markup {
        let titles = picture.boxes.map(Self.shownTitle)
        let layout = PictureLayout(picture, titles: titles)
        var markup = Markup()
        markup.raw("<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" ")
        markup.raw("class=\"picture\" viewBox=\"0 0 ")
        markup.number(layout.width)
        markup.raw(" ")
        markup.number(layout.height)
        markup.raw("\" width=\"")
        markup.number(layout.width)
        markup.raw("\" height=\"")
        markup.number(layout.height)
        markup.raw("\">\n<title>")
        markup.text("\(picture.title): \(summary)")
        markup.raw("</title>\n")
        if isAlone {
            markup.raw("<style>")
            markup.raw(ReportStyle.picture)
            markup.raw("</style>\n")
        }
        for isCritical in [false, true] {
            for (number, arrow) in picture.arrows.enumerated() where arrow.isCritical == isCritical
            {
                draw(arrow, layout.bends[number], layout, into: &markup)
            }
        }
        for (number, box) in picture.boxes.enumerated() {
            draw(box, titles[number], layout.frames[number], into: &markup)
        }
        markup.raw("</svg>\n")
        return markup
    }

    /// What a screen reader says of the picture.
    private var summary: String {
        let operations = Self.plural(picture.operationCount, "operation")
        var text = "\(operations) in \(Self.plural(picture.boxes.count, "box", "boxes"))"
        if picture.arrowsLeftOut > 0 {
            text += "; \(Self.plural(picture.arrowsLeftOut, "more arrow")) left out"
        }
        return text
    }

    private func draw(
        _ arrow: Picture.Arrow,
        _ bends: [(x: Double, y: Double)],
        _ layout: PictureLayout,
        into markup: inout Markup
    ) {
        let (from, to) = (layout.frames[arrow.from], layout.frames[arrow.to])
        markup.raw(
            arrow.isCritical
                ? "<path class=\"arrow critical\" d=\"M" : "<path class=\"arrow\" d=\"M"
        )
        var (x, y) = (from.x + from.width, from.y)
        markup.number(x)
        markup.raw(" ")
        markup.number(y)
        // Through a layer in a straight line, between layers in a curve.
        for (number, point) in (bends + [(to.x, to.y)]).enumerated() {
            if number.isMultiple(of: 2) {
                let middle = (x + point.x) / 2
                markup.raw("C")
                for (place, part) in [middle, y, middle, point.y, point.x, point.y].enumerated() {
                    if place > 0 { markup.raw(" ") }
                    markup.number(part)
                }
            } else {
                markup.raw("H")
                markup.number(point.x)
            }
            (x, y) = point
        }
        markup.raw("\"/>\n")
    }

    private func draw(
        _ box: Picture.Box,
        _ title: String,
        _ frame: PictureLayout.Frame,
        into markup: inout Markup
    ) {
        markup.raw("<g class=\"box ")
        markup.text(box.state.rawValue)
        if box.isCritical { markup.raw(" critical") }
        markup.raw("\"><title>")
        markup.text(Self.description(of: box))
        markup.raw("</title><rect x=\"")
        markup.number(frame.x)
        markup.raw("\" y=\"")
        markup.number(frame.y - PictureLayout.boxHeight / 2)
        markup.raw("\" width=\"")
        markup.number(frame.width)
        markup.raw("\" height=\"")
        markup.number(PictureLayout.boxHeight)
        markup.raw("\" rx=\"6\"/><text x=\"")
        markup.number(frame.x + frame.width / 2)
        markup.raw("\" y=\"")
        markup.number(frame.y + 4)
        markup.raw("\">")
        markup.text(title)
        markup.raw("</text></g>\n")
    }

    // MARK: - Words

    /// The title in the picture. A sign shows the state to those who see no colours.
    static func shownTitle(of box: Picture.Box) -> String {
        var title = TerminalText.elided(box.title, to: titleMax)
        if box.count > 1 { title += " ×\(box.count)" }
        return box.state.sign + title
    }

    private static func description(of box: Picture.Box) -> String {
        var text = box.title
        if box.count > 1 { text += ": \(plural(box.count, "operation"))" }
        let states = Picture.State.allCases.filter { $0 != .plain }.compactMap { state in
            box.states[state].map { box.count > 1 ? "\($0) \(state.rawValue)" : state.rawValue }
        }
        if !states.isEmpty {
            text += (box.count > 1 ? ", " : ": ") + states.joined(separator: ", ")
        }
        if box.duration > .zero {
            text += (box.count > 1 ? ", the longest " : ", ") + TimeFormat.short(box.duration)
        }
        if box.isCritical { text += ", on the critical path" }
        return text
    }

    static func plural(_ count: Int, _ one: String, _ many: String? = nil) -> String {
        count == 1 ? "1 \(one)" : "\(count) \(many ?? one + "s")"
    }
}

extension Picture.State {
    var sign: String {
        switch self {
        case .succeeded: "✓ "
        case .failed: "✗ "
        case .cancelled: "⊘ "
        case .skipped: "⤼ "
        case .running: "▸ "
        case .waiting: "… "
        case .plain: ""
        }
    }
}
