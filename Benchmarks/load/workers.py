"""A thousand workers in one process: what their beats cost, how fast work reaches them, and what
becomes of it when all of them lose their connections, and when all of them die at once.

Each is the worker that `operon-worker` runs, with a connection to the broker, a lease and beats of
its own; see Benchmarks/ManyWorkers. Their operations wait, which needs no process.
"""
import time

from load.cluster import until
from load.report import mebibytes, milliseconds
from load.samples import MIB

# A worker says every two seconds that it lives.
BEAT_SECONDS = 2
# A lease of 6 s, and two seconds for the rest, as for one worker.
RECOVERY_SECONDS = 8
DISPATCH_P99_SECONDS = 1.0
# Until a thousand workers have connected again, and take work.
RECONNECTION_SECONDS = 30
GROWTH_BYTES = 24 * MIB
# Of one core, for the beats of a thousand workers.
IDLE_CPU = 0.25


def run(cluster, report, options):
    count = options.choose(1_000, 100)
    before = cluster.sampler.now("coordinator")
    seconds = cluster.start_many(count)
    report.row("workers", f"{count:,} workers are welcomed within", f"{seconds:.1f} s")
    status = cluster.json("/v1/status")
    report.expect(status["workers"] == count, f"workers: the coordinator has {status['workers']}")
    beats(cluster, report, options, count, before)
    throughput(cluster, report, options, count)
    reconnections(cluster, report, options, count)
    death(cluster, report, count)


def beats(cluster, report, options, count, before):
    seconds = options.choose(20, 6)
    first = cluster.sampler.now("coordinator")
    began = time.monotonic()
    time.sleep(seconds)
    last = cluster.sampler.now("coordinator")
    share = (last["cpu"] - first["cpu"]) / (time.monotonic() - began)
    each = share * BEAT_SECONDS / count
    grown = (last["memory"] - before["memory"]) / count
    report.row("workers", f"the coordinator with {count:,} workers that only beat",
               f"{share:.1%} of a core, {each * 1e6:,.0f} µs for each beat; "
               f"{grown / 1024:,.0f} KiB of memory for each worker")
    report.expect(share <= IDLE_CPU, f"workers: beats take {share:.1%} of a core")


def throughput(cluster, report, options, count):
    total = options.choose(50_000, 5_000)
    before = cluster.metric("operon_dispatch_seconds")
    names = [{"name": f"w{number}", "wait": "10ms"} for number in range(total)]
    began = time.monotonic()
    graph = cluster.submit({"operations": names})["id"]
    found = cluster.finish(graph)
    seconds = time.monotonic() - began
    report.expect(found["counts"]["succeeded"] == total, f"workers: {found['counts']}")
    p50, p99 = quantiles(before, cluster.metric("operon_dispatch_seconds"), (0.5, 0.99))
    report.row("workers", f"{total:,} operations of 10 ms, all submitted at once",
               f"{total / seconds:,.0f} a second; from grant to start p50 at most "
               f"{milliseconds(p50)}, p99 at most {milliseconds(p99)}")
    # One at a time: nothing waits for anything, but a thousand workers beat.
    before = cluster.metric("operon_dispatch_seconds")
    for _ in range(options.choose(200, 30)):
        graph = cluster.submit({"operations": {"one": {"wait": "1ms", "queue": "single"}}})["id"]
        cluster.ask("GET", "/v1/queues/single?wait=30")
    p50, p99 = quantiles(before, cluster.metric("operon_dispatch_seconds"), (0.5, 0.99))
    report.row("workers", "one operation at a time",
               f"from grant to start p50 at most {milliseconds(p50)}, p99 at most "
               f"{milliseconds(p99)}")
    report.expect(p99 <= DISPATCH_P99_SECONDS, f"workers: p99 of a start is {p99} s")


def quantiles(before, after, shares):
    """The bounds of the buckets in which these shares of the difference end."""
    buckets = []
    for name, value in after.items():
        if "_bucket" in name and 'le="' in name:
            bound = name.split('le="')[1].split('"')[0]
            buckets.append((float(bound.replace("+Inf", "inf")), value - before.get(name, 0)))
    buckets.sort()
    total = buckets[-1][1]
    return [next(bound for bound, count in buckets if count >= share * total)
            for share in shares]


def reconnections(cluster, report, options, count):
    """The broker closes all connections at once, again and again, while each worker runs an
    operation: what runs goes on, and nobody keeps anything of a connection that is gone."""
    rounds = options.choose(10, 2)
    open_before = cluster.broker.connections()
    graph = cluster.submit(
        {"operations": [{"name": f"r{number}", "wait": f"{rounds * 12}s"}
                        for number in range(count)]})["id"]

    def executing():
        return cluster.json(f"/v1/graphs/{graph}")["counts"]["executing"]

    until(lambda: executing() == count, "not every worker runs an operation")
    before = attempts(cluster)
    seconds, readings = [], []
    for _ in range(rounds):
        began = time.monotonic()
        cluster.broker.close_connections()
        until(lambda: cluster.broker.connections() < open_before, "no connection was closed",
              pause=0.02)
        until(lambda: cluster.broker.connections() >= open_before,
              "not all have connected again", seconds=2 * RECONNECTION_SECONDS)
        seconds.append(time.monotonic() - began)
        readings.append({name: cluster.sampler.now(name) for name in ("coordinator", "many")})
    found = cluster.finish(graph)
    report.expect(found["counts"]["succeeded"] == count, f"workers: after cuts {found['counts']}")
    # One lookup for all of them: each has ended once, and none was lost.
    ended = {end: value - before.get(end, 0) for end, value in attempts(cluster).items()}
    others = {end: value for end, value in ended.items() if value and "succeeded" not in end}
    report.expect(not others and sum(ended.values()) == count,
                  f"workers: attempts that ended after cuts: {ended}")
    # Each connection that comes again takes room once, and the next one takes its place.
    middle = readings[len(readings) // 2]
    grown = {name: readings[-1][name]["memory"] - middle[name]["memory"]
             for name in ("coordinator", "many")}
    report.row("workers", f"{rounds} times, all {count:,} connections are closed at once",
               f"all are there again after at most {max(seconds):.1f} s; each operation took "
               "one attempt, and none was lost; in the second half of the times, memory of the "
               "coordinator rises by "
               f"{grown['coordinator'] / MIB:,.1f} MiB, of the workers by "
               f"{grown['many'] / MIB:,.1f} MiB")
    report.expect(max(seconds) <= RECONNECTION_SECONDS,
                  f"workers: it took {max(seconds):.1f} s until all had connected again")
    for name, value in grown.items():
        report.expect(value <= GROWTH_BYTES, f"workers: {name} grew by {value / MIB:.1f} MiB")


def attempts(cluster):
    return cluster.metric("operon_attempts_total")


def death(cluster, report, count):
    """All die while each of them runs an operation; one worker with room for all is left."""
    names = [{"name": f"d{number}", "wait": "20s"} for number in range(count)]
    graph = cluster.submit({"operations": names})["id"]

    def executing():
        return cluster.json(f"/v1/graphs/{graph}")["counts"]["executing"]

    until(lambda: executing() == count, "not every worker runs an operation")
    cluster.start_worker(count, name="heir")
    before = cluster.sampler.now("coordinator")
    attempts = cluster.metric("operon_attempts_total").get(
        'operon_attempts_total{end="lost"}', 0)
    began = time.monotonic()
    cluster.kill("many")

    def lost():
        return cluster.metric("operon_attempts_total").get(
            'operon_attempts_total{end="lost"}', 0) - attempts

    until(lambda: lost() >= count and executing() == count,
          "what dead workers ran has not started again")
    seconds = time.monotonic() - began
    used = cluster.sampler.now("coordinator")["cpu"] - before["cpu"]
    report.row("workers", f"all {count:,} are killed with an operation each",
               f"all run again after {seconds:.1f} s; the coordinator used {used:.1f} s of "
               "processor time meanwhile")
    report.expect(seconds <= RECOVERY_SECONDS, f"workers: after their death it took {seconds:.1f} "
                                               "s until all ran again")
    found = cluster.finish(graph)
    report.expect(found["counts"]["succeeded"] == count,
                  f"workers: after their death {found['counts']}")
    status = cluster.json("/v1/status")
    report.expect(status["workers"] == 1, f"workers: {status['workers']} are left, not one")
    after = cluster.sampler.now("coordinator")
    report.row("workers", "memory of the coordinator afterwards",
               f"{mebibytes(after['memory'])}, {after['descriptors']} descriptors")
