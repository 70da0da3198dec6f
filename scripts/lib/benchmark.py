"""What scripts/benchmark measures. Each measurement appends lines of JSON to a file:

    {"name", "unit", "median", "min", "max", "rounds", "limit", "isMet", "note", "load"}

`limit` is what the median has to keep: looser than what is usually measured, so that it tells a
change for the worse from a busy machine. Ratios are of one round: the floor is measured before and after ours, and the round is left
out if the floor moved by more than a tenth meanwhile.
"""

import argparse
import asyncio
import contextlib
import datetime
import http.client
import json
import multiprocessing
import os
import pathlib
import platform
import pty
import random
import re
import socket
import statistics
import subprocess
import sys
import threading
import time

LAYER_WIDTH = 500


# The states of a graph in which nothing more happens.
GRAPH_ENDS = ("finished", "failed", "cancelled")


class Setup:
    """Where the programs are, how much to measure, and where figures go."""

    def __init__(self, options):
        self.binaries = pathlib.Path(options.binaries)
        self.work = pathlib.Path(options.work)
        self.output = pathlib.Path(options.output)
        self.is_short = options.size == "short"
        self.rounds = options.rounds or (3 if self.is_short else 7)
        self.missed = 0
        # What users run seals its messages; a figure that does without says so.
        self.trust = self.work / "trust"
        os.environ["OPERON_TRUST"] = str(self.trust)
        if not self.trust.exists():
            subprocess.run([self.program("operon"), "trust", "init", "--output", "quiet"],
                           check=True)

    def choose(self, full, short):
        return short if self.is_short else full

    def report(self, name, unit, values, at_least=None, at_most=None, note=""):
        """Appends a figure: the median of the rounds with the extremes."""
        values = [float(value) for value in values]
        median = statistics.median(values)
        is_met = True
        limit = None
        if at_least is not None:
            limit, is_met = f">= {at_least}", median >= at_least
        if at_most is not None:
            limit, is_met = f"<= {at_most}", median <= at_most
        self.missed += not is_met
        figure = {
            "name": name,
            "unit": unit,
            "median": median,
            "min": min(values),
            "max": max(values),
            "rounds": len(values),
            "limit": limit,
            "isMet": is_met,
            "note": note,
            "load": os.getloadavg()[0],
        }
        with self.output.open("a") as file:
            file.write(json.dumps(figure) + "\n")
        print(line(figure), file=sys.stderr)

    # Programs

    def program(self, name):
        return str(self.binaries / name)

    def floor(self, *arguments):
        """One line of JSON from the program that measures floors."""
        environment = dict(os.environ, OPERON_TEST_BROKER=os.environ["OPERON_BROKER"])
        text = subprocess.run(
            [self.program("FloorBenchmark"), *arguments],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        return json.loads(text)

    def run(self, graph, *arguments, broker=False, prefix=None):
        """One `operon run`: its report without the operations, and what it used."""
        command = [self.program("operon"), "run", "--output", "json", str(graph), *arguments]
        command += ["--prefix", prefix] if broker else ["--local"]
        report = self.work / "report.json"
        with report.open("wb") as output, (self.work / "stderr").open("wb") as errors:
            started = time.monotonic()
            process = subprocess.Popen(command, stdout=output, stderr=errors)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.monotonic() - started
        if process.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n" + self.last_words())
        head = json.loads(report.open().readline() + "]}")
        assert head["counts"]["succeeded"] == head["counts"]["total"], head["counts"]
        return {
            "seconds": seconds,
            "makespan": head["makespan"],
            "cpu": usage.ru_utime + usage.ru_stime,
            "rss": usage.ru_maxrss / 1024,
        }

    def last_words(self):
        return (self.work / "stderr").read_text()[-2_000:]

    @contextlib.contextmanager
    def workers(self, count, *arguments, slots=2, trust=()):
        """Worker processes with a prefix of their own; gives the prefix and the processes.

        `trust` are options for both sides.
        """
        prefix = f"bench{random.getrandbits(48):x}."
        command = [self.program("operon-worker"), "--prefix", prefix, "--slots", str(slots)]
        log = (self.work / "workers.log").open("ab")
        processes = [
            subprocess.Popen([*command, *arguments, *trust], stdout=log, stderr=log)
            for _ in range(count)
        ]
        try:
            # Whoever has run something is connected; both, or a round would measure one of them.
            graph = self.graph("warm", independent(2_000))
            for _ in range(3):
                self.run(graph, *trust, broker=True, prefix=prefix)
            yield prefix, processes
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(timeout=30)

    # Graphs

    def graph(self, name, operations):
        path = self.work / f"{name}.jsonl"
        if not path.exists():
            with path.open("w") as file:
                for operation in operations:
                    file.write(json.dumps(operation, separators=(",", ":")) + "\n")
        return path


def independent(count, **work):
    work = work or {"operation": "nothing"}
    return ({"name": f"operation-{index}", **work} for index in range(count))


def chain(count):
    for index in range(count):
        operation = {"name": f"link-{index}", "operation": "nothing"}
        if index > 0:
            operation["dependencies"] = [f"link-{index - 1}"]
        yield operation


def layered(count):
    """Layers of 500; every operation depends on 2 or 3 of the layer before."""
    source = random.Random(1)
    for index in range(count):
        operation = {"name": f"operation-{index}", "operation": "nothing"}
        layer = index // LAYER_WIDTH
        if layer > 0:
            before = range((layer - 1) * LAYER_WIDTH, layer * LAYER_WIDTH)
            chosen = source.sample(before, source.choice((2, 3)))
            operation["dependencies"] = [f"operation-{number}" for number in chosen]
        yield operation


def interleaved(setup, floor, ours):
    """Rounds of floor, ours, floor, …: pairs of what ours gave and the mean of its two floors.

    A round whose floor moved by more than a tenth is left out; if too few are left on a busy
    machine, all count and the note says so.
    """
    steady, every = [], []
    before = floor()
    for _ in range(setup.rounds * 2):
        result = ours()
        after = floor()
        pair = (result, (before + after) / 2)
        every.append(pair)
        if abs(before - after) <= 0.1 * pair[1]:
            steady.append(pair)
        before = after
        if len(steady) == setup.rounds:
            break
        if setup.is_short and len(every) >= setup.rounds:
            break
    if len(steady) >= setup.rounds or (not setup.is_short and len(steady) >= 5):
        return steady, f"{len(every) - len(steady)} rounds left out"
    return every, f"the floor moved in {len(every) - len(steady)} of {len(every)} rounds"


# Measurements


def throughput(setup):
    """Operations that do nothing, over the broker, to two worker processes."""
    count = setup.choose(10_000, 5_000)
    graph = setup.graph(f"independent-{count}", independent(count))

    def floor():
        return setup.floor("pipe", "--operations", str(count))["operationsPerSecond"]

    def measure(name, arguments, worker_arguments, at_least):
        with setup.workers(2, *worker_arguments) as (prefix, _):
            def ours():
                return setup.run(graph, *arguments, broker=True, prefix=prefix)

            pairs, note = interleaved(setup, floor, ours)
        speeds = [(count / result["makespan"], below) for result, below in pairs]
        ratios = [speed / below for speed, below in speeds]
        setup.report(f"throughput {name}", "x floor", ratios, at_least=at_least, note=note)
        setup.report(f"throughput {name}, absolute", "op/s", [speed for speed, _ in speeds])
        setup.report(
            f"throughput {name}, coordinator",
            "us CPU/op",
            [result["cpu"] / count * 1e6 for result, _ in pairs],
            note="start and file included",
        )
        return [below for _, below in pairs]

    one = ["--operations-per-message", "1"]
    floors = measure(
        "one per message", one, ["--events-per-message", "1"], setup.choose(0.5, 0.2)
    )
    setup.report("floor, one per message", "op/s", floors)
    measure("by default", [], [], setup.choose(1.0, 0.3))
    many = ["pipe", "--operations", "200000", "--per-message", "64", "--credit", "256"]
    setup.report(
        "floor, 64 per message",
        "op/s",
        [setup.floor(*many)["operationsPerSecond"] for _ in range(3)],
    )


def start(setup):
    """From the call of `operon run` to the first line of the first operation."""
    graph = setup.work / "start.yaml"
    graph.write_text(
        "operations:\n"
        "  first: { command: [/bin/bash, -c, 'echo $EPOCHREALTIME > \"$0\"', "
        f"'{setup.work}/first'] }}\n"
        "  second: { command: [/bin/true], dependencies: [first] }\n"
        "  third: { command: [/bin/true], dependencies: [second] }\n"
    )

    def bash():
        """What the shell takes by itself, which is not ours."""
        before = time.time()
        subprocess.run(
            ["/bin/bash", "-c", 'echo $EPOCHREALTIME > "$0"', str(setup.work / "first")],
            check=True,
        )
        return (float((setup.work / "first").read_text()) - before) * 1e3

    def once():
        before = time.time()
        setup.run(graph)
        return (float((setup.work / "first").read_text()) - before) * 1e3

    once()
    times = [once() for _ in range(20)]
    setup.report("start to first exec", "ms", times, at_most=setup.choose(100, 500))
    setup.report("the same of bash alone", "ms", [bash() for _ in range(20)])


def processes(setup):
    """/bin/true through two slots, against posix_spawn of it two at a time."""
    count = setup.choose(10_000, 2_000)
    graph = setup.graph(f"true-{count}", independent(count, command=["/bin/true"]))

    def floor():
        return setup.floor("spawn", "--processes", str(count), "--slots", "2")["seconds"]

    def ours():
        return setup.run(graph, "--slots", "2")

    setup.rounds = setup.choose(5, 2)
    pairs, note = interleaved(setup, floor, ours)
    ratios = [result["makespan"] / below for result, below in pairs]
    setup.report("processes", "x floor's time", ratios, at_most=setup.choose(2.0, 4.0), note=note)
    setup.report(
        "processes, absolute", "us/op", [r["makespan"] / count * 1e6 for r, _ in pairs]
    )
    setup.report("floor, processes", "us/op", [below / count * 1e6 for _, below in pairs])


def chain_latency(setup):
    """Dependent operations one after another: per link, two hops through the broker."""
    count = setup.choose(1_000, 500)
    graph = setup.graph(f"chain-{count}", chain(count))

    def floor():
        return setup.floor("chain", "--links", str(count))["microsecondsP50"]

    with setup.workers(1) as (prefix, _):
        def ours():
            result = setup.run(graph, broker=True, prefix=prefix)
            return result["makespan"] / count * 1e6

        pairs, note = interleaved(setup, floor, ours)
    ratios = [ours / below for ours, below in pairs]
    setup.report("chain", "x two-hop floor", ratios, at_most=setup.choose(2.0, 5.0), note=note)
    setup.report("chain, absolute", "us/link", [ours for ours, _ in pairs])
    setup.report("floor, chain (p50)", "us/link", [below for _, below in pairs])


def seals(setup):
    """What sealing the messages costs: the same runs in turn with seals and without."""
    ways = {"sealed": (), "in clear": ("--trust", "none")}

    def compare(name, graph, measure, unit, **limits):
        with contextlib.ExitStack() as stack:
            prefixes = {way: stack.enter_context(setup.workers(2, trust=trust))[0]
                        for way, trust in ways.items()}
            results = {way: [] for way in ways}
            for number in range(setup.rounds):
                # Neither is always the first.
                for way in sorted(ways, reverse=number % 2 == 1):
                    result = setup.run(graph, *ways[way], broker=True, prefix=prefixes[way])
                    results[way].append(measure(result))
        ratios = [one / other for one, other in zip(results["sealed"], results["in clear"])]
        setup.report(f"seals, {name}", "x in clear", ratios, **limits)
        for way, values in results.items():
            setup.report(f"seals, {name}, {way}", unit, values)

    count = setup.choose(100_000, 20_000)
    compare("throughput", setup.graph(f"layered-{count}", layered(count)),
            lambda result: count / result["makespan"], "op/s",
            at_least=setup.choose(0.97, 0.6))
    links = setup.choose(1_000, 500)
    compare("chain", setup.graph(f"chain-{links}", chain(links)),
            lambda result: result["makespan"] / links * 1e6, "us/link",
            at_most=setup.choose(1.05, 2.0))
    joins = {way: [join(setup, trust) for _ in range(setup.rounds)]
             for way, trust in ways.items()}
    ratios = [one / other for one, other in zip(joins["sealed"], joins["in clear"])]
    setup.report("seals, join", "x in clear", ratios, at_most=setup.choose(1.5, 4.0))
    for way, values in joins.items():
        setup.report(f"seals, join, {way}", "ms", [value * 1e3 for value in values])


def join(setup, trust):
    """Seconds from the start of a worker to the end of a run that has waited for it."""
    prefix = f"bench{random.getrandbits(48):x}."
    graph = setup.graph("one", independent(1))
    with (setup.work / "workers.log").open("ab") as log:
        run = subprocess.Popen(
            [setup.program("operon"), "run", "--output", "quiet", "--prefix", prefix, *trust,
             str(graph)], stdout=log, stderr=log)
        # Long enough that it is connected; it has no signal for that which costs nothing.
        time.sleep(0.5)
        began = time.monotonic()
        worker = subprocess.Popen([setup.program("operon-worker"), "--prefix", prefix, *trust],
                                  stdout=log, stderr=log)
        # Without a limit: with one, Python looks only every now and then.
        code = run.wait()
        seconds = time.monotonic() - began
        worker.terminate()
        worker.wait(timeout=30)
    if code != 0:
        sys.exit(f"a run that waited for its worker ended with {code}")
    return seconds


def memory(setup):
    """Layered graphs in this process: speed, and memory per operation."""
    resident = {}
    for count in setup.choose((100_000, 1_000_000), (20_000, 100_000)):
        graph = setup.graph(f"layered-{count}", layered(count))
        rounds = 1 if count >= 1_000_000 else 3
        results = [setup.run(graph) for _ in range(rounds)]
        name = f"in process, {count:,}"
        setup.report(
            name,
            "op/s",
            [count / result["makespan"] for result in results],
            at_least=setup.choose(None, 5_000),
        )
        setup.report(f"{name}, wall", "us/op", [r["seconds"] / count * 1e6 for r in results])
        setup.report(f"{name}, CPU", "us/op", [r["cpu"] / count * 1e6 for r in results])
        resident[count] = statistics.median(result["rss"] for result in results)
        setup.report(f"{name}, peak", "MiB", [result["rss"] for result in results])
    (small, large) = sorted(resident)
    slope = (resident[large] - resident[small]) * (1 << 20) / (large - small)
    setup.report(
        "peak memory per operation", "B/op", [slope], note="file, report and all; 2.5 dependencies"
    )


def growth(setup):
    """A layered graph over the broker at two sizes: the cost per operation must not grow."""
    small, large = setup.choose((10_000, 100_000), (5_000, 20_000))
    graphs = {count: setup.graph(f"layered-{count}", layered(count)) for count in (small, large)}
    rounds = setup.choose(3, 2)
    costs = {small: [], large: []}
    with setup.workers(2) as (prefix, _):
        for _ in range(rounds):
            for count, graph in graphs.items():
                result = setup.run(graph, broker=True, prefix=prefix)
                costs[count].append(result["makespan"] / count * 1e6)
    for count, values in costs.items():
        setup.report(f"layered, broker, {count:,}", "us/op", values)
    ratios = [after / before for before, after in zip(costs[small], costs[large])]
    setup.report(
        f"growth from {small:,} to {large:,}",
        "x",
        ratios,
        at_most=setup.choose(1.3, 2.5),
    )


def idle(setup):
    """A worker with nothing to do."""
    seconds = setup.choose(20, 5)
    with setup.workers(1) as (_, running):
        process = pathlib.Path(f"/proc/{running[0].pid}")
        before = cpu_seconds(process)
        # The one thing that is measured here is time passing.
        time.sleep(seconds)
        used = cpu_seconds(process) - before
        status = (process / "status").read_text()
    resident = int(status.split("VmRSS:")[1].split()[0]) / 1024
    setup.report("idle worker", "% of a core", [used / seconds * 100], at_most=1.0)
    setup.report("idle worker, memory", "MiB", [resident], at_most=setup.choose(60, 100))


def cpu_seconds(process):
    """Of all its threads, in nanoseconds' resolution."""
    total = 0
    for thread in (process / "task").iterdir():
        total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


def core(setup):
    """The scheduler by itself, with workers that finish everything at once."""
    sizes = setup.choose((10_000, 100_000, 1_000_000), (10_000, 100_000))
    costs, runs = {size: [] for size in sizes}, {}
    for _ in range(setup.choose(3, 1)):
        text = subprocess.run(
            [setup.program("core-benchmark"), *map(str, sizes)],
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        for run in map(json.loads, text.splitlines()):
            costs[run["operations"]].append(run["nanosecondsPerOperation"] / 1e3)
            runs[run["operations"]] = run
    for size, values in costs.items():
        setup.report(
            f"core, layered, {size:,}", "us/op", values, at_most=setup.choose(None, 20)
        )
    small, large = min(sizes), max(sizes)
    ratios = [after / before for before, after in zip(costs[small], costs[large])]
    setup.report(
        f"core, growth to {large:,}", "x", ratios, at_most=setup.choose(1.6, 3)
    )
    setup.report(
        "core, memory of a waiting operation",
        "B/op",
        [runs[large]["bytesPerOperation"]],
        at_most=400,
    )
    # On a busy machine one pair says little. Without the order between events it is over 30.
    queues = [queue_costs(setup) for _ in range(3)]
    setup.report(
        "core, 10,000 queues with work against one", "x", [many / one for one, many in queues],
        at_most=setup.choose(1.2, 3),
    )
    demands = [demand_costs(setup, large) for _ in range(setup.choose(3, 1))]
    setup.report(
        "core, one demand class", "us/op", [one / 1e3 for one, _ in demands],
        at_most=setup.choose(None, 20),
    )
    setup.report(
        "core, 100 demand classes against one", "x", [many / one for one, many in demands],
        at_most=setup.choose(1.5, 2.5),
    )
    # Class N asks for N processors of a worker that has 100, so most of them wait for room.
    setup.report(
        "core, 100 demand classes short of room",
        "us/op",
        [demand_cost(setup, large, 100, "--cpus", "100") / 1e3],
        at_most=setup.choose(40, 80),
    )


def queue_costs(setup):
    """What an event costs, in nanoseconds, when one queue has something to run, and when 10,000 have.
    Each message ends one operation, so that each is an event of its own."""
    return [
        core_cost(setup, 200_000, "--shape", "independent", "--batch", "1", "--queues", str(count))
        for count in (1, 10_000)
    ]


def demand_costs(setup, operations):
    """What an operation costs, in nanoseconds, when all ask for the same, and when a hundred demands
    stand in line."""
    return [demand_cost(setup, operations, count) for count in (1, 100)]


def demand_cost(setup, operations, count, *more):
    """What an operation costs, in nanoseconds, with so many demand classes."""
    return core_cost(setup, operations, "--demands", str(count), *more)


def core_cost(setup, operations, *options):
    """What an operation costs, in nanoseconds."""
    text = subprocess.run(
        [setup.program("core-benchmark"), str(operations), *options],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    return json.loads(text)["nanosecondsPerOperation"]


def kept(setup):
    """A coordinator that keeps everything in SQLite, with a worker in the same process."""
    sizes = setup.choose((10_000, 100_000, 1_000_000), (10_000, 50_000))
    store = setup.work / "kept.db"

    def step(name, *arguments):
        command = [setup.program("coordinator-benchmark"), name, str(store), *arguments]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        return json.loads(text)

    def clear():
        for file in setup.work.glob("kept.db*"):
            file.unlink()

    figures = {size: [] for size in sizes}
    for size in sizes:
        for _ in range(1 if size >= 1_000_000 else setup.choose(3, 1)):
            run = step("run", "--operations", str(size))
            clear()
            wait = step("wait", "--operations", str(size))
            restart = step("restart")
            clear()
            step("wait", "--operations", str(size))
            figures[size].append((run, wait, restart, step("cancel")))
            clear()
    for size, rounds in figures.items():
        runs, waits, restarts, cancels = zip(*rounds)

        def report(name, unit, results, key, scale, **limits):
            values = [result[key] * scale for result in results]
            setup.report(f"kept, {name}, {size:,}", unit, values, **limits)
            return statistics.median(values)

        each = 1e6 / size
        report("submit", "us CPU/op", waits, "submitCPUSeconds", each)
        report("run", "us CPU/op", runs, "runCPUSeconds", each, at_most=setup.choose(60, 200))
        report("run, wall", "us/op", runs, "runSeconds", each)
        report("file", "B/op", runs, "fileBytes", 1 / size, at_most=500)
        report("cancel", "s", cancels, "cancelSeconds", 1, at_most=setup.choose(None, 10))
        report("peak of a run", "MiB", runs, "peakBytes", 1 / (1 << 20))
        report("peak of a restart", "MiB", restarts, "peakBytes", 1 / (1 << 20))
        seconds = [result["restoreSeconds"] + result["firstStartSeconds"] for result in restarts]
        setup.report(f"kept, restart, {size:,}", "s", seconds, at_most=5)
    small, large = min(sizes), max(sizes)
    before, after = (
        statistics.median(run["runCPUSeconds"] / size for run, _, _, _ in figures[size])
        for size in (small, large)
    )
    setup.report(
        f"kept, growth to {large:,}", "x", [after / before], at_most=setup.choose(1.6, 3)
    )
    resident = {size: figures[size][-1][2]["residentBytes"] for size in (small, large)}
    setup.report(
        "kept, memory of a waiting operation",
        "B/op",
        [(resident[large] - resident[small]) / (large - small)],
        at_most=setup.choose(400, 1_000),
        note="of a coordinator that started again; 2.5 dependencies",
    )


class Cluster:
    """A coordinator with its store and its API, and two workers, as users start them."""

    def __init__(self, setup, number, **variables):
        self.setup = setup
        self.folder = setup.work / f"cluster-{number}"
        self.folder.mkdir()
        self.socket = str(self.folder / "api.sock")
        prefix = f"bench{random.getrandbits(48):x}."
        self.log = (self.folder / "log").open("ab")
        commands = [
            [
                setup.program("operon"), "coordinator", "--prefix", prefix,
                "--store", str(self.folder / "kept.db"), "--listen", f"unix:{self.socket}",
            ],
            *[[setup.program("operon-worker"), "--prefix", prefix, "--slots", "2"]] * 2,
        ]
        environment = {**os.environ, **variables}
        self.processes = [
            subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)
            for command in commands
        ]
        self.until(lambda: self.ask("/v1/status")["slots"] == 4)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait(timeout=60)

    def ask(self, path):
        """The answer to a GET; {} if there is none yet."""
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.connect(self.socket)
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        except (FileNotFoundError, ConnectionRefusedError):
            return {"slots": 0}
        finally:
            connection.close()

    def until(self, is_true, seconds=600):
        """Asks again and again, because a measured coordinator must not be watched."""
        end = time.monotonic() + seconds
        while not is_true():
            if time.monotonic() > end:
                sys.exit("the cluster did not do it: " + (self.folder / "log").read_text()[-2_000:])
            time.sleep(0.1)

    def client(self, *arguments):
        return [self.setup.program("operon"), *arguments, "--coordinator", f"unix:{self.socket}"]

    def cpu(self):
        return [cpu_seconds(pathlib.Path(f"/proc/{process.pid}")) for process in self.processes]

    def submit(self, graph):
        """The number of the graph, and the CPU seconds of the client and the coordinator."""
        before = self.cpu()[0]
        command = self.client("submit", str(graph), "--output", "quiet")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log)
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {process.returncode}")
        used = usage.ru_utime + usage.ru_stime + self.cpu()[0] - before
        return text.decode().split()[0], used

    def run(self, graph, observers=(), pages=0):
        """Submits a graph that is held back, starts the observers, lets it run, and waits."""
        queue = self.client("queue", "suspend", "default")
        subprocess.run(queue, check=True, stdout=self.log, stderr=self.log)
        number, _ = self.submit(graph)
        watching, terminals = [], []
        for arguments in observers:
            # A terminal for those that draw.
            ours, theirs = pty.openpty()
            terminals.append((ours, theirs))
            output = theirs if arguments[0] == "watch" else subprocess.DEVNULL
            command = self.client(*[number if part == "GRAPH" else part for part in arguments])
            watching.append(subprocess.Popen(command, stdout=output, stderr=self.log))
        readers = [threading.Thread(target=drain, args=(ours,), daemon=True) for ours, _ in terminals]
        for reader in readers:
            reader.start()
        if pages:
            watching.append(Pages(self, number, pages))
        if watching:
            # Until all of them are connected; nothing tells.
            time.sleep(2)
        # The start of the client that resumes is within the time.
        before, began = self.cpu(), time.time()
        resume = self.client("queue", "resume", "default")
        subprocess.run(resume, check=True, stdout=self.log, stderr=self.log)
        self.until(lambda: self.ask(f"/v1/graphs/{number}")["status"] in GRAPH_ENDS)
        view = self.ask(f"/v1/graphs/{number}")
        cpu = [after - earlier for after, earlier in zip(self.cpu(), before)]
        for process in watching:
            process.terminate()
        for process in watching:
            process.wait(timeout=60)
        for ours, theirs in terminals:
            os.close(theirs)
        assert view["exitCode"] == 0, view
        finished = datetime.datetime.fromisoformat(view["finishedAt"].replace("Z", "+00:00"))
        return {
            "seconds": finished.timestamp() - began,
            "coordinator": cpu[0],
            "workers": sum(cpu[1:]),
        }


def drain(descriptor):
    with contextlib.suppress(OSError):
        while os.read(descriptor, 1 << 16):
            pass


class Pages:
    """As many open pages as one process plays, with the requests of the page in a browser: one stream
    each, and after a change, at most once a second, one question. resource.js has these rules."""

    def __init__(self, cluster, number, count):
        self.count = count
        self.end = multiprocessing.Event()
        self.answers = multiprocessing.Value("Q")
        self.process = multiprocessing.Process(
            target=play_pages, args=(cluster.socket, number, count, self.end, self.answers))
        self.process.start()

    def terminate(self):
        self.end.set()

    def wait(self, timeout):
        self.process.join(timeout)
        assert self.process.exitcode == 0, "a page got no answer"
        assert self.answers.value >= self.count, "a page asked nothing"


def play_pages(path, graph, count, end, answers):
    """One in two shows the operations of the graph, one in four its picture, one in four all graphs."""
    # Browsers run on other machines, so they leave the cores to what is measured.
    os.nice(19)
    of_graph = f"/v1/graphs/{graph}/progress"
    kinds = [
        (of_graph, f"/v1/graphs/{graph}/operations?limit=50"),
        (of_graph, f"/v1/graphs/{graph}/picture?states=true"),
        (of_graph, f"/v1/graphs/{graph}/operations?limit=50"),
        ("/v1/progress", "/v1/graphs?limit=50"),
    ]

    async def connect():
        return await asyncio.open_unix_connection(path)

    async def request(reader, writer, address):
        """The head of the answer."""
        writer.write(f"GET {address} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        return head

    async def ask(address, changed):
        """Asks after each change, also after one that came during a pause."""
        reader, writer = await connect()
        while True:
            await changed.wait()
            changed.clear()
            start = time.monotonic()
            head = await request(reader, writer, address)
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            await reader.readexactly(int(length[1]))
            answers.value += 1
            took = time.monotonic() - start
            await asyncio.sleep(max(1 - took, 10 * took))

    async def page(stream, address):
        changed = asyncio.Event()
        questions = asyncio.create_task(ask(address, changed))
        reader, writer = await connect()
        try:
            await request(reader, writer, stream)
            while await reader.readline():
                changed.set()
                if questions.done():
                    questions.result()
        finally:
            questions.cancel()

    async def all_pages():
        pages = [asyncio.create_task(page(*kinds[index % 4])) for index in range(count)]
        await asyncio.to_thread(end.wait)
        for one in pages:
            if one.done():
                one.result()
            one.cancel()

    asyncio.run(all_pages())


WAIT = ("wait", "GRAPH")
OBSERVERS = [WAIT, ("watch", "GRAPH"), *[("events", "--follow", "--output", "json")] * 8]


def observers(setup):
    """A graph that is kept, over RabbitMQ: nobody looks, one waits for its end, ten observe, and a
    hundred pages are open."""
    # Long enough that pages and screens, which get news four times a second, get some.
    count = setup.choose(200_000, 10_000)
    graph = setup.graph(f"layered-{count}", layered(count))
    cases = {
        "alone": {}, "one wait": {"observers": [WAIT]}, "ten observers": {"observers": OBSERVERS},
        "100 pages": {"pages": 100},
    }
    results = {name: [] for name in cases}
    with Cluster(setup, "observed") as cluster:
        cluster.run(setup.graph("warm", independent(2_000)))
        for _ in range(setup.choose(5, 1)):
            for name, watching in cases.items():
                results[name].append(cluster.run(graph, **watching))
    for name, rounds in results.items():
        values = [result["seconds"] / count * 1e6 for result in rounds]
        setup.report(f"kept over the broker, {name}", "us/op", values)
        for part in ("coordinator", "workers"):
            values = [result[part] / count * 1e6 for result in rounds]
            setup.report(f"kept over the broker, {name}, {part}", "us CPU/op", values)
    limits = {
        "one wait": setup.choose(0.8, 0.4), "ten observers": setup.choose(0.5, 0.15),
        "100 pages": setup.choose(0.95, 0.15),
    }
    for name, least in limits.items():
        ratios = [
            quiet["seconds"] / watched["seconds"]
            for quiet, watched in zip(results["alone"], results[name])
        ]
        setup.report(f"{name}, speed", "x alone", ratios, at_least=least)


class Collector:
    """Takes the spans of OpenTelemetry, and looks at none."""

    def __init__(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.bytes = multiprocessing.Value("Q")
        self.process = multiprocessing.Process(
            target=collect, args=(listener, self.bytes), daemon=True)
        self.process.start()


def collect(listener, taken):
    # It runs on another machine.
    os.nice(19)

    async def serve(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])
                await reader.readexactly(length)
                taken.value += length
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async def run():
        server = await asyncio.start_server(serve, sock=listener)
        await server.serve_forever()

    asyncio.run(run())


def traces(setup):
    """A kept run whose coordinator and workers send spans, in turns with one that sends none."""
    count = setup.choose(100_000, 10_000)
    graph = setup.graph(f"layered-{count}", layered(count))
    collector = Collector()
    results = {"without traces": [], "with traces": []}
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "500"}
    with Cluster(setup, "untraced") as plain, Cluster(setup, "traced", **variables) as traced:
        for cluster in (plain, traced):
            cluster.run(setup.graph("warm", independent(2_000)))
        for _ in range(setup.choose(5, 1)):
            for name, cluster in zip(results, (plain, traced)):
                results[name].append(cluster.run(graph))
    assert collector.bytes.value > count, "no spans were sent"
    for name, rounds in results.items():
        setup.report(f"kept, {name}", "us/op", [one["seconds"] / count * 1e6 for one in rounds])
        values = [one["coordinator"] / count * 1e6 for one in rounds]
        setup.report(f"kept, {name}, coordinator", "us CPU/op", values)
    ratios = [
        before["seconds"] / after["seconds"] for before, after in zip(*results.values())
    ]
    setup.report("with traces, speed", "x without", ratios, at_least=setup.choose(0.3, 0.1))


# Prints lines at a pace, and at the end the number of bytes before it.
LOUD = """
import sys, time
seconds, pace = float(sys.argv[1]), float(sys.argv[2])
start, count, output = time.monotonic(), 0, sys.stdout.buffer
while (passed := time.monotonic() - start) < seconds:
    while count < passed * pace:
        count += output.write(b"%098d\\n" % count)
    output.flush()
    time.sleep(0.005)
output.write(b"%d\\n" % count)
"""


def logs(setup):
    """A command prints 10 MB/s, which somebody follows: nothing is missing, or the client says how
    much, and the memory of everybody stays flat."""
    seconds, pace = setup.choose(60, 5), 10_000_000
    broker = int(os.environ["OPERON_BROKER_PID"])
    with Cluster(setup, "logs") as cluster:
        loud = {"name": "loud", "command": ["python3", "-c", LOUD, str(seconds), str(pace)]}
        number, _ = cluster.submit(setup.graph("loud", [loud]))
        with (cluster.folder / "followed").open("wb") as output:
            process = subprocess.Popen(
                cluster.client("logs", f"{number}/loud", "--follow"),
                stdout=output, stderr=subprocess.PIPE,
            )
        names = ["coordinator", "one worker", "other worker", "client", "broker"]
        followed = [*(one.pid for one in [*cluster.processes, process]), broker]
        samples = {name: [] for name in names}
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=seconds / 30)
                break
            for name, one in zip(names, followed):
                samples[name].append(resident(one))
        said = process.stderr.read().decode()
        assert process.returncode == 0, said
        printed = int((cluster.folder / "followed").read_bytes().splitlines()[-1])
        size = (cluster.folder / "followed").stat().st_size - len(f"{printed}\n")
    missing = printed - size
    assert missing == 0 or said, "something is missing, and the client did not say so"
    setup.report("followed log, missing", "bytes", [missing], note=said.strip())
    setup.report("followed log, pace", "MB/s", [printed / seconds / 1e6], at_least=9)
    for name, values in samples.items():
        third = len(values) // 3
        growth = statistics.median(values[-third:]) - statistics.median(values[third:2 * third])
        note = f"{max(values):.0f} MiB at most"
        # The memory of the broker, which is not ours, grows in steps of several MiB.
        limit = None if name == "broker" else 4
        setup.report(f"followed log, growth of {name}", "MiB", [growth], at_most=limit, note=note)


def resident(process):
    """The memory of a process in MiB."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024 if "VmRSS:" in status else 0


def served(setup):
    """What users run: a coordinator with its store and its API, in turns with `operon run`, which
    keeps nothing, and with the floor of a chain."""
    count, links = setup.choose(100_000, 10_000), setup.choose(1_000, 200)
    graph = setup.graph(f"layered-{count}", layered(count))
    line_of = setup.graph(f"chain-{links}", chain(links))
    kept, unkept, ratios, chains, floors, submits, cancels = [], [], [], [], [], [], []
    with Cluster(setup, "served") as cluster, setup.workers(2) as (prefix, _):
        cluster.run(setup.graph("warm", independent(2_000)))
        for _ in range(setup.choose(5, 1)):
            floors.append(setup.floor("chain", "--links", str(links))["microsecondsP50"])
            chains.append(cluster.run(line_of)["seconds"] / links * 1e6)
            kept.append(cluster.run(graph)["seconds"] / count * 1e6)
            makespan = setup.run(graph, broker=True, prefix=prefix)["makespan"]
            unkept.append(makespan / count * 1e6)
            ratios.append(unkept[-1] / kept[-1])
            subprocess.run(
                cluster.client("queue", "suspend", "default"),
                check=True, stdout=cluster.log, stderr=cluster.log,
            )
            number, used = cluster.submit(graph)
            submits.append(used / count * 1e6)
            begun = cluster.cpu()[0]
            subprocess.run(
                cluster.client("cancel", number), check=True, stdout=cluster.log, stderr=cluster.log
            )
            cluster.until(lambda: cluster.ask(f"/v1/graphs/{number}")["status"] in GRAPH_ENDS)
            cancels.append(cluster.cpu()[0] - begun)
    setup.report(f"served, kept, {count:,}", "us/op", kept)
    setup.report(f"served, not kept, {count:,}", "us/op", unkept)
    setup.report(
        "served, speed when kept", "x operon run", ratios, at_least=setup.choose(0.4, 0.2)
    )
    setup.report("served, submit", "us CPU/op", submits, at_most=setup.choose(30, 100))
    setup.report(f"served, cancel {count:,}", "s CPU", cancels)
    ratios = [ours / below for ours, below in zip(chains, floors)]
    setup.report("served, chain", "x two-hop floor", ratios, at_most=setup.choose(2.5, 6))
    setup.report("served, chain, absolute", "us/link", chains)


SMALL_GRAPH = json.dumps({"operations": [{"name": "only", "operation": "nothing"}]})


def submit_small(path, count, times):
    """Submits graphs of one operation over one connection, each when the one before is on the disk."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(path)
    for _ in range(count):
        begun = time.monotonic()
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/graphs", SMALL_GRAPH, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 201, answer.status
        times.append(time.monotonic() - begun)
    connection.close()


def sync_times(folder, count):
    """What the disk takes to keep 4 KiB at the end of a file."""
    times = []
    descriptor = os.open(folder / "sync", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for _ in range(count):
        os.write(descriptor, bytes(4096))
        begun = time.monotonic()
        os.fdatasync(descriptor)
        times.append(time.monotonic() - begun)
    os.close(descriptor)
    return times


def small(setup):
    """Graphs of one operation over the API, kept: from one client, and from sixteen at a time."""
    count = setup.choose(500, 100)
    alone, pairs, rates = [], [], []
    with Cluster(setup, "small") as cluster:
        submit_small(cluster.socket, 100, [])
        for _ in range(setup.choose(5, 2)):
            floor = statistics.median(sync_times(cluster.folder, count)) * 1e3
            times = []
            submit_small(cluster.socket, count, times)
            alone.append(statistics.median(times) * 1e3)
            pairs.append(alone[-1] - floor)
            before, begun = cluster.cpu()[0], time.monotonic()
            clients = [
                multiprocessing.Process(target=submit_small, args=(cluster.socket, count, []))
                for _ in range(16)
            ]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
                assert client.exitcode == 0
            seconds = time.monotonic() - begun
            used = cluster.cpu()[0] - before
            rates.append((16 * count / seconds, used / (16 * count) * 1e6))
    setup.report("one graph after another (p50)", "ms", alone)
    setup.report("the same beyond the disk's sync", "ms", pairs, at_most=setup.choose(5, 20))
    setup.report("graphs from sixteen clients", "per s", [rate for rate, _ in rates])
    setup.report("graphs from sixteen clients, CPU", "us of coordinator", [cpu for _, cpu in rates])


def library(setup):
    """Operations of a Swift program, in process, beside Foundation's own queue in the same run."""
    width = 100

    def case(name, count, **limits):
        layers = limits.pop("layers", max(1, count // width))
        command = [setup.program("library-benchmark"), name]
        command += ["--count", str(count), "--layers", str(layers)]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        return json.loads(text)

    def report(name, unit, results, key, scale=1, **limits):
        values = [result[key] * scale for result in results]
        setup.report(f"library, {name}", unit, values, **limits)

    # Foundation's grows with the square of what waits, so it gets what it can do in seconds.
    beside = setup.choose(10_000, 4_000)
    rounds = setup.choose(3, 2)
    pairs = [(case("operon", beside), case("foundation", beside)) for _ in range(rounds)]
    ours, theirs = zip(*pairs)
    report(f"layered, {beside:,}", "op/s", ours, "perSecond")
    report(f"layered, {beside:,}, Foundation", "op/s", theirs, "perSecond")
    ratios = [our["perSecond"] / their["perSecond"] for our, their in pairs]
    setup.report("library, layered", "x Foundation", ratios, at_least=1)
    for count in setup.choose((100_000, 1_000_000), (20_000,)):
        results = [case("operon", count) for _ in range(1 if count >= 1_000_000 else rounds)]
        report(f"layered, {count:,}", "op/s", results, "perSecond", at_least=2_000)
        report(f"layered, {count:,}, CPU", "us/op", results, "cpuSeconds", 1e6 / count)
        report(f"layered, {count:,}, memory", "B/op", results, "bytesEach", at_most=3_000)
    flat = setup.choose(100_000, 20_000)
    report(f"flat, {flat:,}", "op/s", [case("operon", flat, layers=1)], "perSecond")
    theirs = [case("foundation", flat, layers=1)]
    report(f"flat, {flat:,}, Foundation", "op/s", theirs, "perSecond")

    many = setup.choose(1_000_000, 20_000)
    results = [case("sequence", many)]
    report(f"from a sequence, {many:,}", "op/s", results, "perSecond", at_least=2_000)
    growth = {"at_most": setup.choose(200, 3_000), "note": "500 in flight"}
    report(f"from a sequence, {many:,}, memory", "B/op", results, "bytesEach", **growth)

    waiting = setup.choose(1_000_000, 100_000)
    note = "with its handle; one dependency"
    results = [case("waiting", waiting)]
    report(f"waiting, {waiting:,}", "B/op", results, "bytesEach", at_most=400, note=note)
    few = setup.choose(20_000, 5_000)
    report(f"waiting, {few:,}, Foundation", "B/op", [case("foundationWaiting", few)], "bytesEach")

    small, large = setup.choose((10_000, 100_000), (4_000, 16_000))
    pairs = [(case("reversed", small), case("reversed", large)) for _ in range(rounds)]
    report(f"chain in reverse, {large:,}", "op/s", [many for _, many in pairs], "perSecond")
    ratios = [few["perSecond"] / many["perSecond"] for few, many in pairs]
    setup.report("library, growth of a chain", "x", ratios, at_most=setup.choose(1.6, 2.5))
    report("a chain of 1,000,000 let go", "s", [case("release", 1_000_000)], "seconds", at_most=10)


MEASUREMENTS = {
    "throughput": throughput,
    "start": start,
    "processes": processes,
    "chain": chain_latency,
    "memory": memory,
    "growth": growth,
    "idle": idle,
    "core": core,
    "kept": kept,
    "library": library,
    "served": served,
    "observers": observers,
    "logs": logs,
    "traces": traces,
    "small": small,
    "seals": seals,
}


# Output


def number(value):
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def line(figure):
    if "median" not in figure:
        return json.dumps(figure)
    spread = ""
    if figure["rounds"] > 1:
        spread = f"{number(figure['min'])}–{number(figure['max'])}"
    limit = figure["limit"] or ""
    missed = "" if figure["isMet"] else "  MISSED"
    return (
        f"{figure['name']:<36} {number(figure['median']):>10} {figure['unit']:<16} "
        f"{spread:<18} {limit:<9}{missed}"
    ).rstrip()


def table(path):
    figures = [json.loads(text) for text in path.read_text().splitlines()]
    print(f"{platform.system()} {platform.release()}, {os.cpu_count()} processors")
    for figure in figures:
        print(line(figure))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("measure")
    measure.add_argument("name", choices=MEASUREMENTS)
    measure.add_argument("--size", choices=("short", "full"), default="full")
    measure.add_argument("--rounds", type=int)
    measure.add_argument("--binaries", required=True)
    measure.add_argument("--work", required=True)
    measure.add_argument("--output", required=True)
    shown = commands.add_parser("table")
    shown.add_argument("output", type=pathlib.Path)
    options = parser.parse_args()
    if options.command == "table":
        table(options.output)
        return
    setup = Setup(options)
    MEASUREMENTS[options.name](setup)
    if setup.missed:
        sys.exit(f"{setup.missed} figures missed their limits")


if __name__ == "__main__":
    main()
