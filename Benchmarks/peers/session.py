"""Starts one system, runs workloads on it, and prints a line of JSON for each.

    session.py SYSTEM --slots N --broker URL --binaries DIR --work DIR --size full|short WORKLOAD…

`measure.py` calls it; a process of its own for each system keeps their libraries apart.
"""
import argparse
import ctypes
import fcntl
import json
import math
import os
import pathlib
import socket
import struct
import sys
import traceback

import workloads
from systems import SYSTEMS, Setup

# METG: a run of the stencil without any overhead takes this long, unless it would have fewer than
# 5 rows or more than 400.
GRAIN_RUN_SECONDS = 0.4
GRAIN_MIN, GRAIN_MAX = 0.0000625, 1.0
STENCIL_WIDTH = 8


class Session:
    def __init__(self, entry, system, options):
        self.entry = entry
        self.system = system
        self.slots = options.slots
        self.is_short = options.size == "short"
        # What a layered operation cost, in seconds: where the search for the grain starts.
        self.cost = 0.001

    def prepare(self):
        """Starts the system, and runs something on every slot and some no-ops, unmeasured."""
        self.system.prepare()
        if not self.entry.is_floor:
            self.system.run([(0.05, [])] * (4 * self.slots))
            self.system.run(workloads.layered(200 if self.entry.kind == "function" else 50))

    def measure(self, name):
        """What the line of a workload says."""
        kind, _, detail = name.partition(":")
        result = {}

        def run():
            result.update(getattr(self, f"measure_{kind}")(*([detail] if detail else [])))

        reason = attempt(run)
        return {"failed": reason} if reason else result

    def measure_independent(self):
        return self.each(workloads.independent(self.count(self.entry.many)))

    def measure_chain(self):
        return self.each(workloads.chain(self.count(self.entry.links)))

    def measure_layered(self):
        result = self.each(workloads.layered(self.count(self.entry.many)))
        self.cost = result["seconds"] / result["operations"]
        return result

    def count(self, full):
        return max(full // 5, min(full, 20)) if self.is_short else full

    def each(self, graph):
        seconds = self.system.run(graph)
        result = {"operations": len(graph), "seconds": seconds,
                  "microseconds": seconds / len(graph) * 1e6}
        if hasattr(self.system, "elapsed"):
            result["elapsed"] = self.system.elapsed
        return result

    def measure_recorded(self, workflow):
        bound = 1.0 if self.is_short else 5.0
        graph = workloads.scaled(workloads.recorded(workflow), self.slots, bound)
        seconds = self.system.run(graph)
        return {"operations": len(graph), "seconds": seconds, "bound": bound,
                "ratio": seconds / bound}

    def measure_metg(self):
        """The grain at which half of the time is work, between two neighbouring powers of two.

        The search starts near the grain that is expected. A run with less than half is repeated, as
        one pause of the machine would send the search far away; the better one counts.
        """
        last = int(math.log2(GRAIN_MAX / GRAIN_MIN))
        step = round(math.log2(max(self.slots * self.cost, GRAIN_MIN) / GRAIN_MIN))
        step = min(step, last)
        tried = {}

        def efficiency(step):
            grain = GRAIN_MIN * 2**step
            if step not in tried:
                tried[step] = self.efficiency(grain)
                if tried[step] < 0.5:
                    tried[step] = max(tried[step], self.efficiency(grain))
            return tried[step]

        while efficiency(step) < 0.5:
            if step == last:
                raise RuntimeError(f"less than half is work at {GRAIN_MIN * 2**step:g} s")
            step += 1
        while step > 0 and efficiency(step - 1) >= 0.5:
            step -= 1
        grain = GRAIN_MIN * 2**step
        if step > 0:
            below, above = efficiency(step - 1), efficiency(step)
            grain /= 2 ** ((above - 0.5) / (above - below))
        return {"grain": grain, "isUpperLimit": step == 0,
                "tried": {f"{GRAIN_MIN * 2**one:g}": share for one, share in tried.items()}}

    def efficiency(self, grain):
        """Which share of the time of a run is work."""
        per_row = STENCIL_WIDTH * grain / self.slots
        rows = max(5, min(400, round(GRAIN_RUN_SECONDS / per_row)))
        if self.is_short:
            rows = max(5, rows // 4)
        return rows * per_row / self.system.run(workloads.stencil(STENCIL_WIDTH, rows, grain))


def isolate():
    """Moves this process into a network namespace with nothing but a loopback interface."""
    user, group = os.getuid(), os.getgid()
    new_user, new_network = (0 if user == 0 else 0x10000000), 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(new_user | new_network) != 0:
        raise OSError(ctypes.get_errno(), "the kernel allows no network namespace")
    if new_user:
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket() as any_socket:
        set_flags, is_up = 0x8914, 1
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", is_up))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("workloads", nargs="+")
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--size", choices=("full", "short"), required=True)
    parser.add_argument("--broker", required=True)
    parser.add_argument("--binaries", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    options = parser.parse_args()
    # The lines go to what was standard output; whatever a system prints goes to standard error.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ["PEERS_BROKER"] = options.broker
    entry = SYSTEMS[options.system]
    if entry.is_isolated:
        isolate()
    system = entry.system(Setup(options.slots, options.work, options.broker, options.binaries))
    session = Session(entry, system, options)
    reason = attempt(session.prepare)
    for name in options.workloads:
        result = {"failed": reason} if reason else session.measure(name)
        print(json.dumps({"workload": name, **result}), file=lines, flush=True)
    attempt(system.stop)


def attempt(action):
    """Why it failed, or nothing."""
    try:
        action()
    except Exception as error:
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"[:300]


if __name__ == "__main__":
    main()
    # Some systems have threads that do not end.
    sys.stdout.flush()
    os._exit(0)
