"""Records a session in a terminal and writes it as an animated SVG.

Usage: record_session.py OUTPUT.svg DIRECTORY COMMAND…

A shell with the prompt “$ ” starts in DIRECTORY, and each COMMAND is typed into it. What the
terminal shows becomes the frames of the picture. Viewers without animation show one frame.
"""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from xml.sax.saxutils import escape

import pyte

COLUMNS, ROWS = 88, 27
CHARACTER, LINE, MARGIN, BAR = 8.4, 18, 14, 30
FRAME_SECONDS = 0.12
LAST_SECONDS = 5.0
PROMPT = "$ "

BACKGROUND, TITLE, TEXT, DIM = "#16181d", "#23262d", "#d7dae0", "#7d8590"
COLOURS = {
    "red": "#ff7b72", "green": "#5fd38d", "brown": "#e3b341", "blue": "#79b8ff",
    "magenta": "#d2a8ff", "cyan": "#76d9e6", "white": TEXT, "default": TEXT,
}


class Screen(pyte.Screen):
    """pyte knows no faint text: it is kept as italics, which nothing here uses."""

    def select_graphic_rendition(self, *attributes, **more):
        super().select_graphic_rendition(*[3 if one == 2 else one for one in attributes], **more)


def record(directory, commands):
    """The frames: when each one began, in seconds, and its rows as tuples of cells."""
    screen = Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(directory)
        environment = {
            "PATH": os.environ["PATH"], "HOME": directory, "TMPDIR": "/tmp",
            "TERM": "xterm-256color", "LANG": "C.UTF-8", "PS1": PROMPT,
        }
        os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "--noediting"], environment)
    size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)

    frames = []
    began = time.monotonic()

    def look():
        rows = tuple(tuple(screen.buffer[row][column] for column in range(COLUMNS))
                     for row in range(ROWS))
        now = time.monotonic() - began
        if frames and now - frames[-1][0] < FRAME_SECONDS:
            frames[-1] = (frames[-1][0], rows)
        elif not frames or frames[-1][1] != rows:
            frames.append((now, rows))

    def read(seconds):
        """Shows what comes within this time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([terminal], [], [], left)[0]:
                try:
                    stream.feed(os.read(terminal, 65536))
                except OSError:
                    return
                look()

    def is_ready():
        line = screen.display[screen.cursor.y]
        return line.rstrip() == PROMPT.rstrip() and screen.cursor.x == len(PROMPT)

    def wait():
        end = time.monotonic() + 60
        while not is_ready():
            if time.monotonic() > end:
                sys.exit("the session did not come back to its prompt")
            read(0.05)

    wait()
    read(0.4)
    for command in commands:
        for letter in command:
            os.write(terminal, letter.encode())
            read(0.035)
        read(0.4)
        os.write(terminal, b"\n")
        read(0.2)
        wait()
        read(0.8)
    length = time.monotonic() - began + LAST_SECONDS
    os.write(terminal, b"exit\n")
    os.close(terminal)
    os.waitpid(process, 0)
    return frames, length


def style(cell):
    """The fill of a cell, and whether it is bold."""
    name = cell.fg
    fill = COLOURS.get(name, f"#{name}" if len(name) == 6 else TEXT)
    return (DIM if cell.italics else fill), cell.bold


def drawn(row):
    """A row of cells as SVG. Blocks are rectangles, so that no font can misplace them."""
    parts, column = [], 0
    while column < COLUMNS:
        first, cell = column, row[column]
        block = cell.data if cell.data in "█░" else ""
        while column < COLUMNS and style(row[column]) == style(cell) and (
            row[column].data == block if block else row[column].data not in "█░"
        ):
            column += 1
        fill, bold = style(cell)
        x, width = round(first * CHARACTER, 1), round((column - first) * CHARACTER, 1)
        if block:
            opacity = ' opacity=".35"' if block == "░" else ""
            parts.append(
                f'<rect x="{x}" y="3" width="{width}" height="12" fill="{fill}"{opacity}/>'
            )
            continue
        text = "".join(one.data for one in row[first:column])
        if not text.strip():
            continue
        lead = len(text) - len(text.lstrip())
        text = text.strip()
        x, width = round((first + lead) * CHARACTER, 1), round(len(text) * CHARACTER, 1)
        attributes = "" if fill == TEXT else f' fill="{fill}"'
        attributes += ' font-weight="bold"' if bold else ""
        parts.append(
            f'<text x="{x}" y="13" textLength="{width}"{attributes}>{escape(text)}</text>'
        )
    return "".join(parts)


def picture(frames, length, title):
    """The SVG: each different row once, and the frames below each other, like a strip of film."""
    used = 1 + max(number for _, rows in frames for number, row in enumerate(rows) if drawn(row))
    height = used * LINE + 2 * MARGIN
    width = round(COLUMNS * CHARACTER + 2 * MARGIN)
    known, strip = {}, []
    for number, (_, rows) in enumerate(frames):
        lines = []
        for index, row in enumerate(rows):
            line = drawn(row)
            if not line:
                continue
            name = known.setdefault(line, f"l{len(known)}")
            lines.append(f'<use href="#{name}" y="{index * LINE}"/>')
        strip.append(f'<g transform="translate(0 {number * height})">{"".join(lines)}</g>')
    steps = "".join(
        f"{100 * began / length:.2f}%{{transform:translateY({-number * height}px)}}"
        for number, (began, _) in enumerate(frames)
    )
    # Of those with the most on them, the one in the middle: operations run there.
    most = max(sum(map(bool, map(drawn, rows))) for _, rows in frames)
    full = [number for number, (_, rows) in enumerate(frames)
            if sum(map(bool, map(drawn, rows))) == most]
    still = -height * full[len(full) // 2]
    definitions = "".join(f'<g id="{name}">{line}</g>' for line, name in known.items())
    dots = "".join(
        f'<circle cx="{20 + 18 * index}" cy="{BAR // 2}" r="5.5" fill="{colour}"/>'
        for index, colour in enumerate(["#ff5f57", "#febc2e", "#28c840"])
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + BAR}" \
width="{width}" height="{height + BAR}" xml:space="preserve" role="img" aria-label="{escape(title)}">
<title>{escape(title)}</title>
<style>
text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;\
white-space:pre}}
#film{{transform:translateY({still}px);animation:film {length:.2f}s step-end infinite}}
@keyframes film{{{steps}}}
@media (prefers-reduced-motion:reduce){{#film{{animation:none}}}}
</style>
<defs>{definitions}</defs>
<rect width="{width}" height="{height + BAR}" rx="8" fill="{BACKGROUND}"/>
<path d="M0 {BAR}V8a8 8 0 0 1 8-8H{width - 8}a8 8 0 0 1 8 8V{BAR}z" fill="{TITLE}"/>{dots}
<svg x="{MARGIN}" y="{BAR + MARGIN // 2}" width="{width - 2 * MARGIN}" height="{height - MARGIN}" \
viewBox="0 0 {width - 2 * MARGIN} {height - MARGIN}" fill="{TEXT}"><g id="film">
{chr(10).join(strip)}
</g></svg>
</svg>
"""


def main():
    output, directory, *commands = sys.argv[1:]
    frames, length = record(directory, commands)
    text = picture(frames, length, f"A terminal in which {commands[-1]} runs a graph")
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{output}: {len(frames)} frames, {length:.1f} s, {len(text) // 1000} kB")


if __name__ == "__main__":
    main()
