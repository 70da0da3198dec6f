"""Makes the tables and the plots from the lines that `measure.py` wrote.

    report.py FILE [--publish] [--images DIR]

It prints the tables. With --publish it also puts them, and the plots, between the markers in
docs/PERFORMANCE.md and README.md. --images only draws the plots.
"""
import argparse
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import textwrap

import plots
import workloads
from systems import REFERENCES, SYSTEMS

ROOT = workloads.ROOT
IMAGES = ROOT / "docs" / "images"
BEGIN, END = "<!-- scripts/benchmark-peers writes this -->", "<!-- until here -->"

COSTS = {"independent": "independent", "layered": "layered graph", "chain": "chain"}
FIELDS = {"metg": "grain", "recorded": "ratio"}
COLUMNS = 116
KINDS = {"function": "Functions", "process": "Processes"}


class Figures:
    """The values of all rounds."""

    def __init__(self, lines):
        self.lines = lines
        self.rounds = len({one["round"] for one in lines})
        self.values = {}
        for one in lines:
            field = FIELDS.get(one["workload"].partition(":")[0], "microseconds")
            if field in one:
                values = self.values.setdefault((one["system"], one["workload"]), {})
                values[one["round"]] = one[field]
        self.failed = {(one["system"], one["workload"]) for one in lines if "failed" in one}
        # The search for their METG ended at the smallest grain, at which more than half was work.
        self.limited = {one["system"] for one in lines if one.get("isUpperLimit")}
        names = [one["workload"] for one in lines]
        self.workflows = [name for name in dict.fromkeys(names) if name.startswith("recorded:")]
        known = {one["system"] for one in lines}
        self.systems = [name for name in SYSTEMS if name in known]

    def of_kind(self, kind):
        return [name for name in self.systems if SYSTEMS[name].kind == kind]

    def values_of(self, system, workload):
        """Median, lowest and highest, or nothing."""
        values = self.values.get((system, workload), {}).values()
        return spread(values) if values else None

    def elapsed_of(self, system):
        """The same of the whole command, for each of many independent operations."""
        values = [one["elapsed"] / one["operations"] * 1e6 for one in self.lines
                  if one["system"] == system and one["workload"] == "independent"
                  and "elapsed" in one]
        return spread(values) if values else None

    def cell(self, system, workload, write=None):
        """The text of the values, or that there are none because all runs failed."""
        values = self.values_of(system, workload)
        has_failed = values is None and (system, workload) in self.failed
        return "failed" if has_failed else cell(values, write or number)

    def ratios(self, system, workload):
        """The same of the ratios to the reference, each of one round."""
        reference = REFERENCES[SYSTEMS[system].kind]
        below = self.values.get((reference, workload), {})
        values = self.values.get((system, workload), {})
        ratios = [value / below[key] for key, value in values.items() if key in below]
        return spread(ratios) if ratios and system != reference else None

    def failures(self):
        """Reasons, each with where it happened and how often."""
        found = {}
        for one in self.lines:
            if "failed" in one:
                words = one["failed"].replace("`", "'").replace("\n", " ")
                key = (one["system"], words)
                found.setdefault(key, []).append(one["workload"].removeprefix("recorded:"))
        return [f"{title(system)}, {', '.join(dict.fromkeys(names))}, {len(names)} runs in all: "
                f"`{words}`" for (system, words), names in found.items()]


def spread(values):
    return statistics.median(values), min(values), max(values)


def title(system):
    entry = SYSTEMS[system]
    is_both = entry.module == "operon" and entry.kind == "process"
    return f"{entry.title}, processes" if is_both else entry.title


def number(value):
    """Three digits, and no exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    decimals = 2 - math.floor(math.log10(value)) if value > 0 else 2
    return f"{value:.{decimals}f}"


def cell(value, write=number):
    if value is None:
        return "–"
    median, low, high = map(write, value)
    return median if value[1] == value[2] else f"{median} ({low}–{high})"


# Tables


def table(head, rows):
    yield f"| {' | '.join(head)} |"
    yield f"| --- |{' ---: |' * (len(head) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def name_cell(system):
    return f"**{SYSTEMS[system].title}**" if SYSTEMS[system].module == "operon" \
        else SYSTEMS[system].title


def cost_table(figures, kind):
    head = [KINDS[kind].lower()]
    for name in COSTS.values():
        head += [f"{name}, µs", "× Operon"]
    rows = []
    for system in figures.of_kind(kind):
        row = [name_cell(system)]
        for workload in COSTS:
            row += [figures.cell(system, workload),
                    "1" if system == REFERENCES[kind] else cell(figures.ratios(system, workload))]
        rows.append(row)
    return table(head, rows)


def grain_table(figures):
    head = ["system", "METG(50 %), ms", "× Operon"]
    head += [f"{one.removeprefix('recorded:')}, ÷ bound" for one in figures.workflows]
    rows = []
    for kind in KINDS:
        for system in figures.of_kind(kind):
            if SYSTEMS[system].is_floor:
                continue
            ours = system == REFERENCES[kind]
            name = name_cell(system)
            rows.append([
                f"{name}, processes" if kind == "process" else name,
                ("at most " if system in figures.limited else "")
                + figures.cell(system, "metg", lambda value: number(value * 1e3)),
                "1" if ours else cell(figures.ratios(system, "metg")),
                *(figures.cell(system, one, lambda value: f"{value:.3f}")
                  for one in figures.workflows),
            ])
    perfect = [f"{ideal_ratio(one):.3f}" for one in figures.workflows]
    rows.append(["ideal schedule, run times known", "–", "–", *perfect])
    return table(head, rows)


def ideal_ratio(workload):
    graph = workloads.recorded(workload.removeprefix("recorded:"))
    return workloads.ideal(graph, 8) / workloads.bound(graph, 8)


def describe(figures):
    """What was measured, on what, and what failed."""
    loads = [one["load"] for one in figures.lines]
    versions = {one["system"]: one["version"] for one in figures.lines if one.get("version")}
    named = ", ".join(f"{title(one)} {versions[one]}" for one in SYSTEMS if one in versions)
    many = figures.rounds > 1
    yield (f"Medians of {figures.rounds} rounds, with the lowest and the highest in brackets. A "
           "ratio is the median of the ratios of the rounds." if many else "One round.")
    yield (f"The machine has {os.cpu_count()} processors, {system_name()}, {broker_version()} and "
           f"Python {platform.python_version()}. The load average was {min(loads):.1f} to "
           f"{max(loads):.1f}, including the measured processes.")
    if named:
        yield f"Versions: {named}."
    elapsed = [figures.elapsed_of(one) for one in REFERENCES.values()]
    if all(elapsed):
        functions, processes = map(cell, elapsed)
        yield ("The whole command `operon run` over RabbitMQ, from its start to its end, takes "
               f"{functions} µs for each of the independent functions, and {processes} µs for each "
               "of the independent processes.")
    failures = figures.failures()
    yield "These failed:" if failures else "No run failed."
    yield from (f"- {one}" for one in failures)


def system_name():
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()


def broker_version():
    done = subprocess.run(["dpkg-query", "-W", "-f=${Version}", "rabbitmq-server"],
                          capture_output=True, text=True)
    return f"RabbitMQ {done.stdout.split('-')[0]}" if done.returncode == 0 else "RabbitMQ"


def tables(figures):
    parts = []
    for kind in KINDS:
        if figures.of_kind(kind):
            parts.append("\n".join(cost_table(figures, kind)))
    parts.append("\n".join(grain_table(figures)))
    parts.append(wrapped(describe(figures)))
    return "\n\n".join(parts)


def wrapped(sentences):
    """One paragraph, and a list of what is a list."""
    sentences = list(sentences)
    items = [one for one in sentences if one.startswith("- ")]
    words = " ".join(one for one in sentences if not one.startswith("- "))
    parts = [textwrap.fill(words, COLUMNS, break_on_hyphens=False)]
    if items:
        parts.append("\n".join(
            textwrap.fill(one, COLUMNS, subsequent_indent="  ", break_on_hyphens=False)
            for one in items))
    return "\n\n".join(parts)


# Plots


def microseconds(value):
    return f"{value:.3g} µs" if value < 1_000 else f"{value / 1_000:.3g} ms"


def cost_plot(figures):
    groups = []
    for kind, heading in KINDS.items():
        rows = [(SYSTEMS[system].title, SYSTEMS[system].module == "operon",
                 [figures.values_of(system, workload) for workload in COSTS])
                for system in figures.of_kind(kind)]
        if rows:
            groups.append((heading, rows))
    ticks = [sign * 10**power for power in range(6) for sign in (1, 3)]
    return plots.plot(
        "Cost of an operation",
        "Time for each operation that does nothing, on two slots. Left is better. Operon's clock "
        "begins with its first dispatch.",
        ["one of many independent operations", "one of a layered graph", "one link of a chain"],
        groups, ticks, microseconds)


def makespan_plot(figures):
    groups = []
    for kind, heading in KINDS.items():
        rows = [(SYSTEMS[system].title, SYSTEMS[system].module == "operon",
                 [figures.values_of(system, workload) for workload in figures.workflows])
                for system in figures.of_kind(kind) if not SYSTEMS[system].is_floor]
        if rows:
            groups.append((heading, rows))
    ticks = [1, 1.1, 1.2, 1.3, 1.5, 1.75, 2, 2.5, 3, 4, 5, 7, 10, 20, 50]
    return plots.plot(
        "Recorded workflows: makespan ÷ bound",
        "On eight slots, with run times scaled to a bound of 5 s, which no schedule can beat. Left "
        "is better.",
        [name.removeprefix("recorded:") for name in figures.workflows],
        groups, ticks, lambda value: f"{value:.2f}" if value < 10 else f"{value:.3g}")


def draw(figures, folder):
    """Writes the plots that there are figures for, and gives their names and what they show."""
    drawn = {"cost-of-an-operation.svg": (cost_plot, "What an operation costs")}
    if figures.workflows:
        drawn["makespan.svg"] = (makespan_plot, "Makespan of recorded workflows over their bound")
    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, _) in drawn.items():
        (folder / name).write_text(make(figures))
    return {name: alternative for name, (_, alternative) in drawn.items()}


def replace(path, text, marker=BEGIN):
    """Puts text between the markers of a document."""
    before, begin, rest = path.read_text().partition(marker)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"error: {path} has no lines “{marker}” and “{END}”")
    path.write_text(f"{before}{marker}\n\n{text}\n\n{END}{after}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--publish", action="store_true")
    parser.add_argument("--images", type=pathlib.Path)
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.file.read_text().splitlines()]
    if not lines:
        sys.exit(f"error: {options.file} has no lines")
    figures = Figures(lines)
    print(tables(figures))
    if options.images:
        draw(figures, options.images)
    if not options.publish:
        return
    if any(one["size"] == "short" for one in lines):
        sys.exit("error: a short run is not published")
    shown = [f"![{alternative}](docs/images/{name})"
             for name, alternative in draw(figures, IMAGES).items()]
    replace(ROOT / "README.md", "\n\n".join(shown))
    replace(ROOT / "docs" / "PERFORMANCE.md", tables(figures))


if __name__ == "__main__":
    main()
