"""A mix of all for as long as is said, and a verdict: a line is laid through the second half of
what was measured, and may rise no further than the bounds below.
"""
import asyncio
import contextlib
import json
import random
import time

from load.client import JSON, Client, Closed, source
from load.plot import plot
from load.report import mebibytes, milliseconds
from load.samples import MIB, fit, percentile
from load.streams import is_closed, open_stream, read_head

# How far the line may rise within the second half, by what it shows.
BOUNDS = {"memory": 24 * MIB, "descriptors": 16, "threads": 8}
# A graph that is dropped leaves its outcomes: see docs/STORE.md.
BYTES_PER_OPERATION = 160
PROGRAMS = ("coordinator", "worker")


class Soak:
    def __init__(self, cluster, report, minutes):
        self.cluster, self.report = cluster, report
        self.seconds = minutes * 60
        self.began = time.monotonic()
        self.latencies = []
        self.counts = {}
        self.graphs = []
        self.operations = 0

    @property
    def is_over(self):
        return time.monotonic() - self.began > self.seconds

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    async def run(self):
        parts = [self.submitter(index) for index in range(4)]
        parts += [self.asker(index) for index in range(200)]
        parts += [self.passer(index) for index in range(4)]
        parts += [self.mute(index) for index in range(20)]
        parts += [self.large(), self.printer(), self.deaths()]
        await asyncio.gather(*parts)

    async def call(self, state, index, method, path, body=b"", fields="", expected=(200,)):
        """One request, again over another connection if that one was replaced."""
        for _ in range(20):
            try:
                if state.get("client") is None or not state["client"].is_open:
                    state["client"] = await Client.connect(self.cluster.port, source(index))
                began = time.monotonic()
                answer = await state["client"].request(method, path, body, fields)
            except (Closed, ConnectionError):
                self.count("connections replaced")
                state["client"] = None
                continue
            self.latencies.append((time.monotonic() - self.began, time.monotonic() - began))
            if answer.status in (429, 503):
                self.report.refusal(answer, "soak")
                self.count("refusals")
                await asyncio.sleep(float(answer.fields.get("retry-after", 5)))
                continue
            self.report.expect(answer.status in expected, f"soak: {method} {path} was answered "
                                                          f"with {answer.status}: "
                                                          f"{answer.body[:200]!r}")
            self.count("requests")
            return answer
        raise RuntimeError(f"{method} {path} had no answer in 20 attempts")

    async def submitter(self, index):
        """Small graphs, some with a name that comes again."""
        state = {}
        while not self.is_over:
            graph = {"operations": {"a": {"wait": "5ms"},
                                    "b": {"run": "echo $0", "dependencies": ["a"]},
                                    "c": {"operation": "nothing", "dependencies": ["b"]}}}
            if random.random() < 0.3:
                graph["name"] = f"name-{random.randrange(100)}"
            key = f"Idempotency-Key: {random.getrandbits(64):x}\r\n"
            answer = await self.call(state, index, "POST", "/v1/graphs",
                                     json.dumps(graph).encode(), JSON + key, (201,))
            self.graphs.append(answer.json()["id"])
            self.operations += 3
            await asyncio.sleep(0.1)

    async def asker(self, index):
        """A client that keeps its connection and asks now and then, also for what there is not."""
        state = {}
        paths = ["/v1/status", "/v1/graphs?limit=50", "/v1/workers", "/v1/queues", "/metrics",
                 "/healthz", "/v1/graphs/@latest", "/v1/graphs/@latest/records",
                 "/v1/graphs/@latest/timeline", "/v1/graphs/@latest/picture", "/nothing"]
        while not self.is_over:
            await asyncio.sleep(random.uniform(2, 10))
            path = random.choice(paths)
            await self.call(state, index, "GET", path, expected=(200, 404))

    async def passer(self, index):
        """A client that comes, asks once and goes, and sometimes goes without having asked."""
        while not self.is_over:
            await asyncio.sleep(random.uniform(0.02, 0.1))
            with contextlib.suppress(Closed, ConnectionError, TimeoutError):
                client = await Client.connect(self.cluster.port, f"127.0.0.{80 + index}")
                if random.random() < 0.7:
                    await client.request("GET", "/v1/status")
                client.close()
                self.count("connections that came and went")

    async def mute(self, index):
        """A stream that nobody reads, and that is opened again when the coordinator closes it."""
        loop = asyncio.get_running_loop()
        while not self.is_over:
            path = "/v1/events" if index % 2 else "/v1/graphs/@latest/log?follow=true"
            made = await loop.run_in_executor(
                None, open_stream, self.cluster.port, path, "127.0.0.95")
            answer = await loop.run_in_executor(None, read_head, made)
            self.report.expect(answer.status in (200, 404), f"soak: a stream got {answer.status}")
            while not self.is_over and not is_closed(made):
                await asyncio.sleep(1)
            self.count("streams that were not read")
            made.close()
            await asyncio.sleep(0.5)

    async def large(self):
        state = {}
        while not self.is_over:
            graph = {"operations": [
                {"name": f"l{number}", "wait": "2ms",
                 "dependencies": [f"l{number - 50}"] if number >= 50 else []}
                for number in range(2_000)]}
            answer = await self.call(state, 1, "POST", "/v1/graphs", json.dumps(graph).encode(),
                                     JSON, (201,))
            self.graphs.append(answer.json()["id"])
            self.operations += 2_000
            await asyncio.sleep(10)

    async def printer(self):
        """Logs and outputs of a megabyte, failures, and a cancel."""
        state = {}
        while not self.is_over:
            graph = {"operations": {
                "print": {"run": "yes 0123456789 | head -c 3000000"},
                "fail": {"run": "exit 3"},
                "skip": {"operation": "nothing", "dependencies": ["fail"]},
                "long": {"wait": "1h"}}}
            answer = await self.call(state, 2, "POST", "/v1/graphs", json.dumps(graph).encode(),
                                     JSON, (201,))
            number = answer.json()["id"]
            await asyncio.sleep(3)
            await self.call(state, 2, "GET", f"/v1/graphs/{number}/operations/print/log")
            await self.call(state, 2, "POST", f"/v1/graphs/{number}/cancel", b'{"wait": 10}', JSON)
            self.operations += 4
            await asyncio.sleep(3)

    async def deaths(self):
        """Fifty workers come, and are killed after a while."""
        loop = asyncio.get_running_loop()
        while not self.is_over:
            await loop.run_in_executor(None, self.cluster.start_many, 50)
            for _ in range(40):
                if not self.is_over:
                    await asyncio.sleep(1)
            await loop.run_in_executor(None, self.cluster.kill, "many")
            self.count("times 50 workers were killed")
            await asyncio.sleep(5)


def run(cluster, report, options):
    cluster.start_worker(16)
    since = cluster.sampler.clock()
    soak = Soak(cluster, report, options.minutes)
    asyncio.run(soak.run())
    unfinished = [one for one in soak.graphs[-1_000:]
                  if cluster.finish(one, 120)["status"] != "finished"]
    report.expect(not unfinished, f"soak: {len(unfinished)} graphs have not succeeded")
    report.row("soak", f"{options.minutes:g} minutes",
               ", ".join(f"{count:,} {what}" for what, count in sorted(soak.counts.items()))
               + f"; {len(soak.graphs):,} graphs with {soak.operations:,} operations")
    half = soak.seconds / 2
    first, second = ([value for at, value in soak.latencies if (at < half) == is_first]
                     for is_first in (True, False))
    p99 = [percentile(one, 0.99) for one in (first, second)]
    report.row("soak", "latency in the first and in the second half",
               ", ".join(f"p50 {milliseconds(percentile(one, 0.5))} p99 {milliseconds(late)}"
                         for one, late in zip((first, second), p99)))
    report.expect(p99[1] <= 2 * p99[0] + 0.1, "soak: latency grew")
    draw(cluster, report, since, options)
    for name in PROGRAMS:
        judge(report, name, cluster.sampler.of(name, since), soak)


def judge(report, name, rows, soak):
    start = rows[0]["at"] + soak.seconds / 2
    rows = [row for row in rows if start <= row["at"] <= rows[0]["at"] + soak.seconds]
    said = []
    for what, bound in BOUNDS.items():
        if what == "memory" and name == "coordinator":
            bound += BYTES_PER_OPERATION * soak.operations // 2
        risen = fit([(row["at"], row[what]) for row in rows]) * soak.seconds / 2
        values = [row[what] for row in rows]
        shown = mebibytes if what == "memory" else "{:,.0f}".format
        said.append(f"{what} {shown(min(values))} to {shown(max(values))}, "
                    f"the line rises by {shown(risen)}")
        report.expect(risen <= bound, f"soak: {what} of the {name} rose by {shown(risen)} in the "
                                      f"second half, which is over {shown(bound)}")
    report.row("soak", f"the {name} in the second half", "; ".join(said))


def draw(cluster, report, since, options):
    rows = {name: cluster.sampler.of(name, since) for name in PROGRAMS}
    panels = []
    for what, heading, unit in (("memory", "memory, MiB", MIB), ("descriptors", "descriptors", 1),
                                ("threads", "threads", 1)):
        panels.append((heading, [
            (name, [(row["at"] - since, row[what] / unit) for row in thinned(found)])
            for name, found in rows.items()]))
    panels.append(("processor time, %", [
        (name, [(after["at"] - since,
                 100 * (after["cpu"] - before["cpu"]) / (after["at"] - before["at"]))
                for before, after in zip(thinned(found), thinned(found)[1:])])
        for name, found in rows.items()]))
    path = options.output / "soak.svg"
    path.write_text(plot("A coordinator and a worker under a mix of loads",
                         f"scripts/load soak {options.minutes:g}", panels))
    report.say(f"the plot is {path}")


def thinned(rows):
    """At most some 600 points: more than a picture can show says nothing."""
    return rows[::max(1, len(rows) // 600)]
