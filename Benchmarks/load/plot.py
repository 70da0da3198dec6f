"""Draws memory, descriptors, threads and processor time over time as SVG, a panel for each."""
import html

WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 860, 120, 84, 110, 64, 34
STYLE = """
  .back { fill: #ffffff; stroke: #d0d7de; }
  text { fill: #1f2328; font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; }
  .title { font-size: 16px; font-weight: 600; }
  .faint { fill: #59636e; font-size: 11px; }
  .grid { stroke: #d8dee4; }
  path { fill: none; stroke-width: 1.5; }
  .s0 { stroke: #0550ae; } .s1 { stroke: #bc4c00; }
  text.s0 { fill: #0550ae; stroke: none; } text.s1 { fill: #bc4c00; stroke: none; }
  @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117; stroke: #3d444d; }
    text { fill: #f0f6fc; }
    .faint { fill: #9198a1; }
    .grid { stroke: #2a313c; }
    .s0 { stroke: #79c0ff; } .s1 { stroke: #ffa657; }
    text.s0 { fill: #79c0ff; } text.s1 { fill: #ffa657; }
  }
"""


def plot(title, subtitle, panels):
    """The text of an SVG file. A panel is a heading and pairs of a name and of points (x, y)."""
    height = TOP + len(panels) * (PANEL + GAP) + 16
    last = max(x for _, series in panels for _, points in series for x, _ in points) or 1
    body = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img">',
            f"<title>{html.escape(title)}</title>", f"<style>{STYLE}</style>",
            f'<rect class="back" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" '
            'rx="6"/>', text(16, 28, title, "title"), text(16, 47, subtitle, "faint")]
    for index, (heading, series) in enumerate(panels):
        body += panel(heading, series, TOP + index * (PANEL + GAP), last)
    return "\n".join([*body, "</svg>", ""])


def panel(heading, series, top, last):
    most = round_up(max(y for _, points in series for _, y in points))

    def place(x, y):
        across = LEFT + x / last * (WIDTH - LEFT - RIGHT)
        return f"{across:.1f} {top + PANEL - y / most * (PANEL - 22):.1f}"

    yield text(16, top + 12, heading, "")
    for share in (0, 0.5, 1):
        y = place(0, most * share).split()[1]
        yield f'<path class="grid" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>'
        yield text(LEFT - 8, float(y) + 4, f"{most * share:,g}", "faint", "end")
    for share in (0, 0.25, 0.5, 0.75, 1):
        across = float(place(last * share, 0).split()[0])
        yield text(across, top + PANEL + 15, f"{last * share / 60:,.1f} min", "faint", "middle")
    for index, (name, points) in enumerate(series):
        line = "L".join(place(x, y) for x, y in points)
        yield f'<path class="s{index}" d="M{line}"/>'
        yield text(WIDTH - RIGHT + 8, top + 30 + 16 * index, name, f"s{index}")


def round_up(value):
    """The next number of which half is as plain."""
    unit = 1.0
    while unit * 10 < value:
        unit *= 10
    return next(unit * step for step in (1, 2, 4, 6, 8, 10) if unit * step >= value)


def text(x, y, words, style, anchor="start"):
    return (f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
            f"{html.escape(words)}</text>")
