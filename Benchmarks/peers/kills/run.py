"""Runs one system under the kills of one seed, and appends a line of JSON.

    python -m kills.run SYSTEM --seed N --seconds N --work DIR --binaries DIR --output FILE

A system is a module with a class `System`:

    System(setup)   keeps what it needs; see `Setup`
    kinds           the kinds of kills of `schedule.KINDS` that it has something for
    start()         starts servers and workers, and returns when they are connected
    submit(graph)   returns when the system has taken the graph; `acknowledged` has its operations
    outcomes()      how the system says that operations ended
    help()          kills and starts again what a person would, if the run hung
    stop()          ends everything that it started
    broker, coordinator, workers    what is killed
"""
import argparse
import ctypes
import dataclasses
import importlib
import json
import os
import pathlib
import platform
import signal
import sys
import threading
import time

import psutil
from kills import checker, schedule

SYSTEMS = ("operon", "celery", "hyperqueue")
# After the last graph or kill, whichever is later: as long as all that is still open may take.
# Then the run is stuck, and after `help` it gets half as long once more.
PATIENCE_SECONDS = 120
# A kill waits so long for a worker that runs nothing.
IDLE_SECONDS = 3
PR_SET_CHILD_SUBREAPER = 36


@dataclasses.dataclass
class Setup:
    """What a system is started with."""

    folder: pathlib.Path
    binaries: pathlib.Path
    workers: int

    @property
    def ledger(self):
        return self.folder / "ledger"

    def until(self, is_true, seconds=90):
        """Waits for a program of others, which has no signal to wait for."""
        deadline = time.monotonic() + seconds
        while not is_true():
            if time.monotonic() > deadline:
                raise RuntimeError(f"not ready within {seconds} s; see {self.folder}")
            time.sleep(0.1)


class Run:
    def __init__(self, name, seed, seconds, setup):
        self.name, self.seed, self.seconds, self.setup = name, seed, seconds, setup
        self.system = importlib.import_module(f"kills.{name}").System(setup)
        self.graphs = schedule.graphs(seed, seconds)
        # What has nothing to die is left out; the others die at the same times in every system.
        self.kills = [one for one in schedule.kills(seed, seconds)
                      if one.kind in self.system.kinds]
        self.facts = checker.Facts(
            {name: before for graph in self.graphs for name, _, before in graph.operations},
            set(), {})

    def run(self):
        """The line of JSON."""
        self.setup.ledger.touch()
        self.system.start()
        began = time.monotonic()
        self.facts.began = began
        submitter = threading.Thread(target=self.submit, args=(began,), daemon=True)
        submitter.start()
        for kill in self.kills:
            pause_until(began + kill.at)
            self.facts.deaths.append(self.kill(kill))
        pause_until(began + self.seconds)
        is_done = self.wait(PATIENCE_SECONDS)
        is_mended = None
        if not is_done:
            self.system.help()
            is_mended = self.wait(PATIENCE_SECONDS / 2)
        self.facts.ended = began + self.seconds
        self.facts.acknowledged = set(self.system.acknowledged)
        if not self.unfinished():
            self.facts.outcomes = self.system.outcomes()
            # The ledger may be complete a little before the system knows.
            deadline = time.monotonic() + 30
            while len(self.facts.outcomes) < len(self.facts.before):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.5)
                self.facts.outcomes = self.system.outcomes()
        elif self.name != "hyperqueue":
            # HyperQueue's package can only wait until all jobs have ended.
            self.facts.outcomes = self.system.outcomes()
        return self.result(is_done, is_mended)

    def submit(self, began):
        for graph in self.graphs:
            pause_until(began + graph.at)
            self.system.submit(graph)

    def kill(self, kill):
        """Kills, waits, and starts again; what it held is in the ledger."""
        kind = kill.kind
        # Of a worker, what runs in it is held; of the others, all that runs.
        is_worker = kind not in ("coordinator", "broker")
        victim = self.system.workers[kill.worker] if is_worker else getattr(self.system, kind)
        broker = victim.family()[0] if kind == "broker" else None
        family = self.wait_for_work(victim.family if is_worker else living)
        processes = {one.pid for one in family}
        since = time.monotonic()
        if kind == "broker":
            broker.kill()
            broker.wait()
        elif kind in ("coordinator", "process"):
            victim.kill_process()
        else:
            processes = victim.kill_machine(family)
        until = time.monotonic()
        if not is_worker:
            processes |= {one.pid for one in living()}
        held = checker.running(self.lines(), processes, since, until)
        print(f"{self.name}, seed {self.seed}: {kill.at:.0f} s: {schedule.KINDS[kind]} is killed "
              f"with {len(held)} operations", file=sys.stderr, flush=True)
        time.sleep(schedule.DOWN[kind])
        victim.start()
        return checker.Death(since, until, kind, held, time.monotonic())

    def wait_for_work(self, find):
        """The processes that `find` gives, as soon as one of them runs something: then they are
        killed."""
        deadline = time.monotonic() + IDLE_SECONDS
        while True:
            family = find()
            now = time.monotonic()
            is_busy = checker.running(self.lines(), {one.pid for one in family}, now, now)
            if is_busy or now > deadline:
                return family

    def lines(self):
        return checker.parse(self.setup.ledger.read_text())

    def unfinished(self):
        return set(self.facts.before) - set(checker.times(self.lines(), "end"))

    def wait(self, seconds):
        """Whether every operation has ended, at the latest after so many seconds."""
        deadline = time.monotonic() + seconds
        while self.unfinished():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.5)
        return True

    def result(self, is_done, is_mended):
        lines = self.lines()
        found = checker.check(lines, self.facts)
        return {
            "system": self.name,
            "version": self.system.version(),
            "seed": self.seed,
            "seconds": self.seconds,
            "graphs": len(self.graphs),
            "operations": len(self.facts.before),
            "acknowledged": len(self.facts.acknowledged),
            "reported": len(self.facts.outcomes),
            "kills": [dataclasses.asdict(one) for one in self.kills],
            "stuck": not is_done,
            "mended": is_mended,
            **{name: len(operations) for name, operations in found.items()},
            "examples": {name: operations[:5] for name, operations in found.items() if operations},
            "recoveries": checker.recoveries(lines, self.facts),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "load": os.getloadavg()[0],
        }


def living():
    """All processes of this machine but the dead that nobody has waited for."""
    return [one for one in psutil.process_iter(["status"])
            if one.info["status"] != psutil.STATUS_ZOMBIE]


def pause_until(moment):
    """The schedule is one of times."""
    time.sleep(max(0.0, moment - time.monotonic()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--binaries", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    # Processes whose parent was killed become children of this one, so that it can end them.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # What it started is ended however it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.system == "hyperqueue":
        # It listens on all interfaces.
        from session import isolate
        isolate()
    folder = options.work / f"{options.system}-{options.seed}"
    folder.mkdir()
    run = Run(options.system, options.seed, options.seconds,
              Setup(folder, options.binaries, schedule.WORKERS))
    try:
        line = run.run()
        with options.output.open("a") as file:
            file.write(json.dumps(line) + "\n")
    finally:
        run.system.stop()
        end_orphans()


def end_orphans():
    left = psutil.Process().children(recursive=True)
    for one in left:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            pass
    psutil.wait_procs(left, timeout=5)


if __name__ == "__main__":
    main()
    # Some systems have threads that do not end.
    sys.stdout.flush()
    os._exit(0)
