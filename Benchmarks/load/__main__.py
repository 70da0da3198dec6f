"""Gives a coordinator more clients, workers, graphs and streams than it has in daily use; see
scripts/load, which starts this.
"""
import argparse
import pathlib
import signal
import sys
import tempfile

from load import clients, graphs, refuse, soak, streams, workers
from load.cluster import Broker, Cluster, raise_descriptors
from load.report import Report
from load.samples import Sampler

PHASES = {"clients": clients.run, "workers": workers.run, "graphs": graphs.run,
          "streams": streams.run, "refuse": refuse.run, "soak": soak.run}
USAGE = ("scripts/load [PHASE…] [--short] [--graphs N] [--output DIR] [--binaries DIR]\n"
         "       scripts/load soak MINUTES")
TENTHS = 10
# How many graphs a coordinator keeps, so that the run also measures how it drops them.
KEEP = {"graphs": ("10000", "1000"), "soak": ("1000", "100")}


def main():
    options = read_options()
    if options.check:
        return 0
    options.output.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = Report()
    report.say(f"at most {raise_descriptors():,} descriptors for each program")
    sampler = Sampler(options.output / "samples.jsonl")
    with tempfile.TemporaryDirectory(prefix="operon-load.") as name:
        folder = pathlib.Path(name)
        broker = Broker(folder / "broker")
        try:
            for phase in options.phases:
                report.say(f"== {phase}")
                run(phase, folder, broker, sampler, report, options)
        finally:
            broker.stop()
            sampler.stop()
    table = report.table()
    (options.output / "table.md").write_text(table + "\n")
    print(table)
    for sentence in dict.fromkeys(report.missed):
        print(f"NOT MET: {sentence}")
    return 1 if report.missed else 0


def run(phase, folder, broker, sampler, report, options):
    """A phase that ends with an error is reported, and the others still run."""
    try:
        with Cluster(phase, folder, options.binaries, broker, sampler, options.output,
                     options.choose(*KEEP.get(phase, ("100000", "100000")))) as cluster:
            PHASES[phase](cluster, report, options)
    except Exception as error:  # pylint: disable=broad-exception-caught
        report.expect(False, f"{phase}: it ended early: {type(error).__name__}: {error}")


def read_options():
    parser = argparse.ArgumentParser(prog="scripts/load", usage=USAGE)
    parser.add_argument("phases", nargs="*", metavar="PHASE")
    parser.add_argument("--binaries", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--graphs", type=int)
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    chosen, minutes = [], None
    for word in options.phases:
        if chosen[-1:] == ["soak"] and word.replace(".", "", 1).isdigit():
            minutes = float(word)
        elif word in PHASES:
            chosen.append(word)
        else:
            parser.error(f"{word} is no phase: there are {', '.join(PHASES)}")
    options.phases = chosen or list(PHASES)
    if minutes == 0:
        parser.error("a soak of no minutes is none")
    if options.graphs is not None and options.graphs < TENTHS:
        parser.error(f"--graphs needs a number from {TENTHS} on, as each tenth is looked at")
    if options.binaries is None and not options.check:
        parser.error("--binaries says where the programs are")
    options.minutes = minutes or (0.5 if options.short else 10)
    options.choose = lambda full, short: short if options.short else full
    return options


if __name__ == "__main__":
    sys.exit(main())
