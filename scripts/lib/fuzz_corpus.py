"""Inputs of fuzzing: files in a folder for libFuzzer, lines of base 64 in the repository."""

import base64
import pathlib
import sys

# Of one target, in base 64.
BYTES_MAX = 32_000


def unpack(text, folder):
    """Writes each line of a file as a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, line in enumerate(text.read_text().split()):
        (folder / f"{index:04}").write_bytes(base64.b64decode(line))


def read_control(control):
    """The inputs that a merge of libFuzzer looked at, as lines, and how much each of them added."""
    lines = control.read_text().split("\n")
    paths = lines[2 : 2 + int(lines[0])]
    added = {}
    for line in lines[2 + len(paths) :]:
        kind, _, rest = line.partition(" ")
        if kind == "FT":
            number, *features = rest.split()
            text = base64.b64encode(pathlib.Path(paths[int(number)]).read_bytes()).decode()
            if text and features:
                added[text + "\n"] = len(features)
    return added


def pack(control, text):
    """Writes the inputs that add most for their size, one on each line, as far as there is room."""
    added = read_control(control)
    chosen, left = [], BYTES_MAX
    for line in sorted(added, key=lambda line: (-added[line] / len(line), line)):
        if len(line) <= left:
            chosen.append(line)
            left -= len(line)
    text.write_text("".join(sorted(chosen, key=lambda line: (len(line), line))))
    print(f"{len(chosen)} of {len(added)} inputs, {BYTES_MAX - left} bytes")


if __name__ == "__main__":
    command, first, second = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    {"unpack": unpack, "pack": pack}[command](first, second)
