"""Makes the tables from the lines that `run.py` wrote.

    python -m kills.report FILE [--publish]

It prints the tables. With --publish it also puts them between the markers in docs/RELIABILITY.md.
"""
import argparse
import collections
import json
import pathlib
import statistics
import sys

import report
from kills import schedule
from kills.checker import summary

DOCUMENT = report.ROOT / "docs" / "RELIABILITY.md"
BEGIN = "<!-- scripts/kill-peers writes this -->"
# A published table has at least so many seconds of each system.
PUBLISHED_SECONDS = 240
SYSTEMS = {"operon": "**Operon over RabbitMQ**", "celery": "Celery", "hyperqueue": "HyperQueue"}
COUNTS = {
    "lost": "lost",
    "early": "out of order",
    "changed": "changed",
    "again": "started again",
    "doubled": "ended twice",
    "unprovoked": "again without a kill",
}


def runs(lines):
    """The runs of each system, in the order of the tables."""
    found = {name: [one for one in lines if one["system"] == name] for name in SYSTEMS}
    return {name: ours for name, ours in found.items() if ours}


def count_table(lines):
    """What went wrong, added up over all runs."""
    head = ["system", "operations", "kills", *COUNTS.values(), "stuck runs"]
    rows = []
    for name, ours in runs(lines).items():
        row = [SYSTEMS[name], f"{sum(one['operations'] for one in ours):,}",
               str(sum(len(one["kills"]) for one in ours))]
        row += [str(sum(one[field] for one in ours)) for field in COUNTS]
        rows.append([*row, stuck_cell(ours)])
    return "\n".join(report.table(head, rows))


def stuck_cell(ours):
    stuck = [one for one in ours if one["stuck"]]
    if not stuck:
        return f"0 of {len(ours)}"
    mended = sum(bool(one["mended"]) for one in stuck)
    return f"{len(stuck)} of {len(ours)}, {mended} mended by a restart"


def recovery_table(lines):
    """For each kind of kill: until what it held started again, and until throughput was back.

    Both are medians; what went on ended without having started again.
    """
    found = runs(lines)
    head = ["killed", *(SYSTEMS[name].replace("over RabbitMQ", "").replace(" **", "**")
                        for name in found)]
    rows = []
    for kind, title in schedule.KINDS.items():
        row = [f"{title} (from its first login on)" if kind == "broker" else title]
        for ours in found.values():
            deaths = [one for each in ours for one in each["recoveries"] if one["kind"] == kind]
            row.append(recovery_cell(deaths))
        rows.append(row)
    return "\n".join(report.table(head, rows))


def recovery_cell(deaths):
    if not deaths:
        return "–"
    # How long the broker takes to start is the machine's affair, and no system's.
    starts = [one["ready"] if one["kind"] == "broker" else 0 for one in deaths]
    times = [None if time is None else max(0, time - start)
             for one, start in zip(deaths, starts) for time in one["restarts"]]
    backs = [None if one["throughput"] is None else max(0, one["throughput"] - start)
             for one, start in zip(deaths, starts)]
    kept, never = sum(one["survivors"] for one in deaths), times.count(None)
    parts = [f"{seconds(summary(times))}"] if len(times) > never else []
    parts += [f"{kept} went on"] if kept else []
    parts += [f"{never} never"] if never else []
    return "; ".join([*parts, f"throughput {seconds(summary(backs))}"])


def seconds(pair):
    """Median and highest."""
    if pair is None:
        return "never"
    median, highest = (f"{one:.1f}" for one in pair)
    return f"{median} s" if median == highest else f"{median} s (at most {highest})"


def describe(lines):
    """What was run, on what."""
    kinds = collections.Counter(
        kill["kind"] for one in lines if one["system"] == "operon" for kill in one["kills"])
    seeds = sorted({one["seed"] for one in lines})
    length = max(one["seconds"] for one in lines)
    loads = [one["load"] for one in lines]
    versions = dict.fromkeys(
        f"Operon {one['version']}" if one["system"] == "operon" else one["version"]
        for one in lines)
    yield (f"Seeds {', '.join(map(str, seeds))}, {length:.0f} s each, "
           f"{max(one['graphs'] for one in lines)} graphs and up to "
           f"{max(len(one['kills']) for one in lines)} kills in a run. Operon's kills: "
           + ", ".join(f"{kinds[kind]} × {title}" for kind, title in schedule.KINDS.items()
                       if kinds[kind]) + ".")
    ready = [death["ready"] for one in lines for death in one["recoveries"]
             if death["kind"] == "broker"]
    if ready:
        yield (f"The broker took logins again after {statistics.median(ready):.1f} s "
               f"({min(ready):.1f}–{max(ready):.1f}), the second that it was left dead included.")
    yield (f"The machine has {lines[0]['cpus']} processors, {report.system_name()}, "
           f"{report.broker_version()} and Python {lines[0]['python']}; the load average was "
           f"{min(loads):.0f} to {max(loads):.0f}. Versions: {', '.join(versions)}.")


def tables(lines):
    return "\n\n".join(
        [count_table(lines), recovery_table(lines), report.wrapped(describe(lines))])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.file.read_text().splitlines()]
    if not lines:
        sys.exit(f"error: {options.file} has no lines")
    print(tables(lines))
    if not options.publish:
        return
    if any(one["seconds"] < PUBLISHED_SECONDS for one in lines):
        sys.exit(f"error: a run of less than {PUBLISHED_SECONDS} s is not published")
    report.replace(DOCUMENT, tables(lines), BEGIN)


if __name__ == "__main__":
    main()
