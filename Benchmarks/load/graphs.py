"""A million graphs of one operation each, from 16 clients, pruned as they end.

Each tenth of the run is looked at alone: rate, latency and memory must stay what they were.
"""
import asyncio
import time

from load.client import JSON, Client
from load.report import mebibytes, milliseconds
from load.samples import percentile

CLIENTS = 16
# Clients pause while more operations than this have not ended, so that the run measures a
# coordinator that keeps up.
BACKLOG = 2_000
GRAPH = b'{"operations":{"a":{"wait":"1ms"}}}'
# What stays of each dropped graph: its outcomes, and when it ended.
BYTES_PER_GRAPH = 160
SLACK_BYTES = 48 << 20


def run(cluster, report, options):
    count = options.graphs or options.choose(1_000_000, 20_000)
    cluster.start_worker(64)
    tenths = asyncio.run(submit(cluster, report, count))
    ended = None
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        ended = cluster.metric("operon_outcomes_total").get(
            'operon_outcomes_total{outcome="succeeded"}', 0)
        if ended >= count:
            break
        time.sleep(0.1)
    report.expect(ended == count, f"graphs: of {count} operations, {ended:.0f} succeeded")
    judge(report, count, tenths)
    store = sum(one.stat().st_size for one in cluster.folder.glob("operon.db*"))
    report.row("graphs", "size of the store", mebibytes(store))


async def submit(cluster, report, count):
    going = asyncio.Event()
    going.set()
    left = iter(range(count))
    latencies, tenths = [], []
    state = {"done": 0, "paused": 0.0}
    mark = {"at": time.monotonic(), "paused": 0.0}

    async def client():
        connection = await Client.connect(cluster.port)
        for number in left:
            await going.wait()
            began = time.monotonic()
            answer = await connection.request(
                "POST", "/v1/graphs", GRAPH,
                JSON + f"Idempotency-Key: {cluster.prefix}{number}\r\n")
            latencies.append(time.monotonic() - began)
            if answer.status != 201:
                report.expect(False, f"graphs: {answer.status} {answer.body[:200]!r}")
                return
            state["done"] += 1
            if state["done"] % (count // 10) == 0:
                end_tenth()
        connection.close()

    def end_tenth():
        now = time.monotonic()
        found = cluster.sampler.now("coordinator")
        worker = cluster.sampler.now("worker")
        tenth = {"rate": count // 10 / (now - mark["at"]), "p50": percentile(latencies, 0.5),
                 "p99": percentile(latencies, 0.99), "memory": found["memory"],
                 "worker": worker["memory"], "descriptors": found["descriptors"],
                 "threads": found["threads"]}
        tenths.append(tenth)
        latencies.clear()
        mark["at"] = now
        report.say(f"graphs: {state['done']:,}: {tenth['rate']:,.0f} a second, "
                   f"p99 {milliseconds(tenth['p99'])}, {mebibytes(tenth['memory'])}")

    async def watch():
        connection = await Client.connect(cluster.port, "127.0.0.50")
        while True:
            answer = await connection.request("GET", "/v1/status")
            counts = answer.json()["operations"]
            open_count = sum(counts.get(one, 0)
                             for one in ("pending", "ready", "dispatched", "executing"))
            (going.clear if open_count > BACKLOG else going.set)()
            await asyncio.sleep(0.1)

    watching = asyncio.ensure_future(watch())
    # Clients wait for what it says: if it fails, so does the phase.
    sending = asyncio.gather(*(client() for _ in range(CLIENTS)))
    await asyncio.wait((watching, sending), return_when=asyncio.FIRST_COMPLETED)
    if watching.done():
        sending.cancel()
        await watching
    watching.cancel()
    await sending
    return tenths


def judge(report, count, tenths):
    for index, one in enumerate(tenths):
        report.row("graphs", f"tenth {index + 1}: graphs a second, p50, p99, memory of the "
                             "coordinator, of the worker",
                   f"{one['rate']:,.0f}, {milliseconds(one['p50'])}, {milliseconds(one['p99'])}, "
                   f"{mebibytes(one['memory'])}, {mebibytes(one['worker'])}")
    early, late = tenths[1:4], tenths[-3:]
    # Medians of three tenths, as other programs use the machine now and then.
    before, after = (median([one["rate"] for one in part]) for part in (early, late))
    report.expect(after >= 0.6 * before,
                  f"graphs: the rate fell from {before:,.0f} to {after:,.0f} a second")
    before, after = (median([one["p99"] for one in part]) for part in (early, late))
    report.expect(after <= 2 * before + 0.05, f"graphs: p99 grew from {milliseconds(before)} to "
                                              f"{milliseconds(after)}")
    graphs = count * 8 // 10
    grown = tenths[-1]["memory"] - tenths[1]["memory"]
    report.row("graphs", "memory that each graph leaves, from the second tenth on",
               f"{grown / graphs:,.0f} bytes")
    report.expect(grown <= BYTES_PER_GRAPH * graphs + SLACK_BYTES,
                  f"graphs: memory grew by {mebibytes(grown)} with {graphs:,} graphs")
    grown = tenths[-1]["worker"] - tenths[1]["worker"]
    report.expect(grown <= SLACK_BYTES, f"graphs: the worker grew by {mebibytes(grown)}")
    for what in ("descriptors", "threads"):
        grown = tenths[-1][what] - tenths[0][what]
        report.expect(grown <= 4, f"graphs: the coordinator has {grown} more {what}")


def median(values):
    return sorted(values)[len(values) // 2]
