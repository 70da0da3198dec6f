#!/usr/bin/env python3
"""Prints the reports of sanitizers: each once, with the lines of ours in its stacks.

    sanitizer_reports.py FOLDER REPOSITORY      exits with 1 if there is a report
"""
import collections
import pathlib
import re
import subprocess
import sys

# Of each stack, so many lines.
LINES_MAX = 4

TITLE = re.compile(
    r"WARNING: (ThreadSanitizer: .*?) \(pid=\d+\)"
    r"|ERROR: ((?:Address|Thread)Sanitizer: .*?)(?: on (?:unknown )?address.*)?$"
    r"|((?:Direct|Indirect) leak) of "
)
FRAME = re.compile(r"^\s*#\d+ (?:0x[0-9a-f]+ in )?(.*)$")


def reports(path):
    """The reports of a process: for each its title, and its stacks as (heading, frames)."""
    title, stacks = None, []
    for line in path.read_text(errors="replace").splitlines():
        if found := TITLE.search(line):
            if title:
                yield title, stacks
            title = next(filter(None, found.groups()))
            stacks = [("", [])]
        elif title and (found := FRAME.match(line)):
            stacks[-1][1].append(found[1])
        elif title and line.rstrip().endswith(":"):
            stacks.append((line.strip(), []))
    # A process that could only begin to report counts, too.
    yield title or "unreadable report", stacks


def excerpt(frames, repository):
    """The first lines of ours; those of others if we have none in it."""

    def is_ours(frame):
        return f"{repository}/" in frame and "/checkouts/" not in frame

    chosen = [frame for frame in frames if is_ours(frame)] or frames
    # Without where the code lies in memory, which differs from run to run.
    return [re.sub(r" \(.*| 0x[0-9a-f]+", "", frame) for frame in chosen[:LINES_MAX]]


def main():
    folder, repository = pathlib.Path(sys.argv[1]), sys.argv[2]
    found = collections.defaultdict(list)
    for path in sorted(folder.glob("report.*")):
        for title, stacks in reports(path):
            lines = [title]
            for heading, frames in stacks:
                # Where a thread was started says nothing about what it did.
                if not frames or heading.startswith("Thread T"):
                    continue
                # Nor do addresses and thread numbers tell one report from another.
                heading = re.sub(r" at 0x\w+| by (main )?thread.*(?=:)", "", heading)
                lines += [f"  {heading}".rstrip()] * bool(heading)
                lines += [f"    {line}" for line in excerpt(frames, repository)]
            found["\n".join(lines)].append(path.name)
    count = sum(map(len, found.values()))
    text = "".join(
        f"\n{len(paths)} of these, first in {paths[0]}: {report}\n" for report, paths in found.items()
    )
    demangled = subprocess.run(
        ["swift", "demangle", "--simplified"], input=text, capture_output=True, text=True, check=True
    )
    print(demangled.stdout.replace(f"{repository}/", ""))
    print(f"{count} sanitizer reports, of which {len(found)} differ, in {folder}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
