"""Draws figures as SVG: a row for each system, a mark for each median, a line from the lowest to
the highest round. Colours follow the reader's theme; the background is drawn, so text is readable
on any page.
"""
import html
import math

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 860, 196, 84, 92, 34
LINE, GAP, HEADING = 15, 11, 26

STYLE = """
  .back { fill: #ffffff; stroke: #d0d7de; }
  text { fill: #1f2328; font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; }
  .title { font-size: 16px; font-weight: 600; }
  .head { font-weight: 600; }
  .small { font-size: 11px; }
  .faint { fill: #59636e; }
  .grid { stroke: #d8dee4; }
  .band { fill: #0969da; opacity: 0.07; }
  .s0 { fill: #0550ae; stroke: #0550ae; }
  .s1 { fill: #bc4c00; stroke: #bc4c00; }
  .s2 { fill: #1a7f37; stroke: #1a7f37; }
  .s3 { fill: #8250df; stroke: #8250df; }
  .s4 { fill: #bf3989; stroke: #bf3989; }
  @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117; stroke: #3d444d; }
    text { fill: #f0f6fc; }
    .faint { fill: #9198a1; }
    .grid { stroke: #2a313c; }
    .band { fill: #58a6ff; opacity: 0.12; }
    .s0 { fill: #79c0ff; stroke: #79c0ff; }
    .s1 { fill: #ffa657; stroke: #ffa657; }
    .s2 { fill: #56d364; stroke: #56d364; }
    .s3 { fill: #d2a8ff; stroke: #d2a8ff; }
    .s4 { fill: #ff9bce; stroke: #ff9bce; }
  }
"""


class Axis:
    """A logarithmic axis over all values, with the ticks that it is given."""

    def __init__(self, values, ticks):
        low = max([one for one in ticks if one <= min(values)], default=min(values))
        high = min([one for one in ticks if one >= max(values)], default=max(values) * 1.05)
        self.ticks = [one for one in ticks if low <= one <= high]
        self.low, self.span = math.log(low), math.log(high) - math.log(low) or 1.0

    def x(self, value):
        share = (math.log(value) - self.low) / self.span
        return LEFT + share * (WIDTH - LEFT - RIGHT)


def plot(title, subtitle, series, groups, ticks, label):
    """The text of an SVG file.

    `groups` are pairs of a heading and rows; a row is a title, whether it stands out, and a value
    for each series: (median, lowest, highest), or nothing. `label` writes a value.
    """
    every = [one for _, rows in groups for _, _, values in rows for value in values if value
             for one in value]
    axis = Axis(every, ticks)
    body, y = [], TOP
    for heading, rows in groups:
        body.append(text(16, y + 13, heading, "head"))
        y += HEADING
        for name, is_ours, values in rows:
            shown = [(index, value) for index, value in enumerate(values) if value]
            height = LINE * max(1, len(shown))
            if is_ours:
                body.append(f'<rect class="band" x="8" y="{y - 4}" width="{WIDTH - 16}" '
                            f'height="{height + 8}" rx="4"/>')
            body.append(text(LEFT - 14, y + height / 2 + 4, name, "head" if is_ours else "", "end"))
            for place, (index, value) in enumerate(shown):
                body.append(mark(axis, index, value, y + LINE * (place + 0.5), label))
            if not shown:
                body.append(text(LEFT + 6, y + LINE / 2 + 4, "failed", "small faint"))
            y += height + GAP
        y += 4
    return "\n".join([*frame(title, subtitle, series, y + BOTTOM), *grid(axis, y, label), *body,
                      "</svg>", ""])


def frame(title, subtitle, series, height):
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           f'width="{WIDTH}" height="{height}" role="img">')
    yield f"<title>{html.escape(title)}</title>"
    yield f"<style>{STYLE}</style>"
    yield (f'<rect class="back" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" '
           'rx="6"/>')
    yield text(16, 28, title, "title")
    yield text(16, 47, subtitle, "faint")
    x = 16
    for index, name in enumerate(series):
        yield shape(index, x + 5, 66)
        yield text(x + 16, 70, name, "small")
        x += 36 + 6.2 * len(name)


def grid(axis, bottom, label):
    last = -math.inf
    for tick in axis.ticks:
        x = axis.x(tick)
        yield f'<path class="grid" d="M{x:.1f} {TOP - 6}V{bottom}"/>'
        # No text over another one.
        if x > last + 36:
            yield text(x, bottom + 18, label(tick), "small faint", "middle")
            last = x


def mark(axis, index, value, y, label):
    median, low, high = (axis.x(one) for one in value)
    # A line that is shorter than the mark shows nothing.
    ends = f"M{low:.1f} {y - 3}v6M{high:.1f} {y - 3}v6" if high - low > 8 else ""
    return (f'<path class="s{index}" stroke-width="1.5" d="M{low:.1f} {y}H{high:.1f}{ends}"/>'
            + shape(index, median, y)
            + text(max(high, median + 4) + 7, y + 4, label(value[0]), "small"))


def shape(index, x, y):
    """A form of its own for each series, so that it needs no colour to be told apart."""
    if index == 0:
        return f'<circle class="s0" cx="{x:.1f}" cy="{y}" r="4"/>'
    outline = {1: "m-3.6 -3.6h7.2v7.2h-7.2z", 2: "m0 -5l4.6 8.4h-9.2z", 3: "m0 -5l5 5l-5 5l-5 -5z",
               4: "m0 5l4.6 -8.4h-9.2z"}[index]
    return f'<path class="s{index}" stroke="none" d="M{x:.1f} {y}{outline}"/>'


def text(x, y, words, style="", anchor="start"):
    return (f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
            f"{html.escape(words)}</text>")
