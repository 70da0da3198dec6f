"""What scripts/benchmark-peers runs: all systems, round by round, so that a machine that becomes
slower or faster does so for all of them.

    measure.py --binaries DIR --broker URL --work DIR --output FILE [--size short] [--rounds N]
        [--workflows NAME,…] [SYSTEM…]

It appends a line of JSON for each system and workload. A run that failed has the field `failed`.
"""
import argparse
import ctypes
import importlib.metadata
import json
import os
import pathlib
import queue
import random
import signal
import subprocess
import sys
import threading
import time

import psutil
from systems import SYSTEMS
from workloads import WORKFLOWS

HERE = pathlib.Path(__file__).resolve().parent
# The longest that a system may be silent: its start, or one workload.
SILENCE_SECONDS = 120
PR_SET_CHILD_SUBREAPER = 36


def plans(entry, workflows):
    """The sessions of a system: their slots and their workloads."""
    if entry.is_floor:
        return [(2, ["independent", "chain"] if entry.links else ["independent"])]
    costs = (2, ["independent", "chain", "layered", "metg"])
    return [costs, (8, [f"recorded:{name}" for name in workflows])] if workflows else [costs]


def run_session(name, slots, names, options, round_number):
    """Runs a session, and gives a result for each of its workloads."""
    work = options.work / f"{name}-{slots}-{round_number}"
    work.mkdir()
    command = [sys.executable, HERE / "session.py", name, *names, "--slots", str(slots),
               "--size", options.size, "--broker", options.broker,
               "--binaries", options.binaries, "--work", work]
    # Parsl looks for its programs in PATH.
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = dict(os.environ, PATH=path, PYTHONPATH=str(HERE), TMPDIR=str(work),
                       PEERS_SESSION=f"{random.getrandbits(48):x}")
    with (work / "errors").open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                                   env=environment, cwd=work, stdin=subprocess.DEVNULL)
        try:
            results, reason = read_results(process, slots)
        finally:
            end(process)
    if reason is None and len(results) < len(names):
        words = (work / "errors").read_text().strip().splitlines()
        reason = words[-1][:300] if words else f"it ended with {process.returncode}"
    known = {result["workload"] for result in results}
    missing = [one for one in names if one not in known]
    return results + [{"workload": one, "failed": reason} for one in missing]


def read_results(process, slots):
    """The results that a session prints until it ends, or is silent for too long."""
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    results = []
    while True:
        try:
            line = lines.get(timeout=SILENCE_SECONDS)
        except queue.Empty:
            return results, f"nothing came for {SILENCE_SECONDS} s"
        if line is None:
            return results, None
        results.append({**json.loads(line), "slots": slots})


def end(process):
    """Ends a session with all processes that it left: they are children of this one now."""
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = psutil.Process().children(recursive=True)
        for child in left:
            try:
                child.send_signal(number)
            except psutil.NoSuchProcess:
                pass
        psutil.wait_procs(left, timeout=5)
    process.wait()
    # Those that were adopted have to be waited for, too.
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break


def versions(names):
    found = {}
    for name in names:
        package = SYSTEMS[name].package
        try:
            found[name] = importlib.metadata.version(package) if package else None
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def show(result):
    if "failed" in result:
        value = f"failed: {result['failed']}"
    elif "ratio" in result:
        value = f"{result['ratio']:.3f} x bound"
    elif "grain" in result:
        value = f"{result['grain'] * 1e3:.3g} ms"
    else:
        value = f"{result['microseconds']:,.1f} us"
    print(f"{result['round']:>2}  {result['system']:<24}{result['workload']:<22}{value}",
          file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("systems", nargs="*")
    parser.add_argument("--binaries", type=pathlib.Path, required=True)
    parser.add_argument("--broker", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--size", choices=("short", "full"), default="full")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--workflows")
    options = parser.parse_args()
    is_short = options.size == "short"
    names = options.systems or list(SYSTEMS)
    workflows = options.workflows or ("rnaseq" if is_short else "montage,ninja-curl")
    workflows = [] if workflows == "none" else workflows.split(",")
    wrong = [one for one in names if one not in SYSTEMS]
    wrong += [one for one in workflows if one not in WORKFLOWS]
    if wrong:
        sys.exit(f"error: unknown: {', '.join(wrong)}; systems: {', '.join(SYSTEMS)}; "
                 f"workflows: {', '.join(WORKFLOWS)}")
    # Processes whose parent ends become children of this one, so that it can end them.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    found = versions(names)
    for number in range(options.rounds or (1 if is_short else 3)):
        for name in names:
            for slots, planned in plans(SYSTEMS[name], workflows):
                for result in run_session(name, slots, planned, options, number):
                    line = {"round": number, "system": name, "version": found[name],
                            "size": options.size, **result, "load": os.getloadavg()[0]}
                    with options.output.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                    show(line)


if __name__ == "__main__":
    main()
