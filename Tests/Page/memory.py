"""The memory of processes, as /proc of Linux tells it."""

import pathlib


def resident(process):
    """The resident memory of a process in MB: its private pages, and all that it shares."""
    for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0  # It has ended, and nobody has waited for it yet.


def descendants(ancestor):
    """The processes that a process has started, and those that they have started."""
    parents = {}
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                # The name of the program, in parentheses, may contain anything.
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # It has ended meanwhile.
            parents[int(folder.name)] = int(fields[1])
    found = [ancestor]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


def renderers(browser):
    """The memory of each process that renders pages, for the process that started a browser."""
    sizes = []
    for process in descendants(browser):
        try:
            if b"--type=renderer" in pathlib.Path(f"/proc/{process}/cmdline").read_bytes():
                sizes.append(resident(process))
        except OSError:
            continue  # It has ended meanwhile.
    return sizes
