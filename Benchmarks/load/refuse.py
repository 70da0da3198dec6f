"""More than the coordinator takes: bodies, and clients. Each refusal must say what it is, and
whatever was accepted must be there afterwards and come to its end.

A client that is refused comes back as `Retry-After` says, with the same idempotency key.
"""
import asyncio
import collections
import json
import time

from load.client import JSON, Client, Closed, source
from load.report import mebibytes, milliseconds
from load.samples import percentile

# All bodies that are being read have 512 MiB together.
BODY_BYTES = 24 << 20
# A busy machine has taken a minute and a half.
PATIENCE_SECONDS = 300
OPERATIONS = 500


def run(cluster, report, options):
    cluster.start_worker(64)
    bodies = Crowd(cluster, report, "large bodies")
    asyncio.run(bodies.run(options.choose(64, 40), graph(BODY_BYTES, OPERATIONS), each=1))
    report.expect(bodies.refusals > 0, "refuse: no large body was refused")
    crowd = Crowd(cluster, report, "small graphs")
    asyncio.run(crowd.run(options.choose(4_000, 2_000), graph(0, 1), each=options.choose(5, 1)))
    accepted = bodies.accepted + crowd.accepted
    expected = bodies.sent + crowd.sent
    report.expect(len(set(accepted)) == len(expected),
                  f"refuse: {len(expected)} graphs were sent, {len(set(accepted))} accepted")
    settle(cluster, report, accepted)


def graph(size, count):
    """A graph with room: what it takes to read is what counts here."""
    text = json.dumps({"operations": [{"name": f"r{number}", "wait": "1ms"}
                                      for number in range(count)]})
    return (text + " " * max(0, size - len(text))).encode()


class Crowd:
    def __init__(self, cluster, report, name):
        self.cluster, self.report, self.name = cluster, report, name
        self.accepted, self.sent, self.latencies = [], [], []
        self.refusals = self.cut = 0
        self.words = collections.Counter()

    async def run(self, count, body, each):
        since = self.cluster.sampler.clock()
        began = time.monotonic()
        await asyncio.gather(*(self.client(index, body, each) for index in range(count)))
        seconds = time.monotonic() - began
        most = self.cluster.sampler.most("coordinator", "memory", since)
        words = "; ".join(f"{number} × “{text}”" for text, number in sorted(self.words.items()))
        p50, p99 = (milliseconds(percentile(self.latencies, share)) for share in (0.5, 0.99))
        self.report.row(
            "refuse", f"{self.name}: {count * each:,} from {count:,} clients at once",
            f"all accepted after {seconds:.1f} s, p50 {p50} p99 {p99} from the attempt that was; "
            f"{self.refusals:,} refusals in words, {self.cut} cut without a word; at most "
            f"{mebibytes(most)}" + (f". {words}" if words else ""))
        self.report.expect(self.cut == 0, f"refuse: {self.cut} requests of {self.name} were cut "
                                          "without a word")

    async def client(self, index, body, each):
        connection, is_new = None, True
        deadline = time.monotonic() + PATIENCE_SECONDS
        for number in range(each):
            key = f"{self.cluster.prefix}{self.name.replace(' ', '-')}-{index}-{number}"
            self.sent.append(key)
            while True:
                try:
                    if connection is None or not connection.is_open:
                        is_new = True
                        connection = await Client.connect(self.cluster.port, source(index))
                    began = time.monotonic()
                    answer = await connection.request(
                        "POST", "/v1/graphs", body, JSON + f"Idempotency-Key: {key}\r\n",
                        seconds=300)
                except (Closed, ConnectionError):
                    # A connection that was answered before may lose its place while it waits.
                    self.cut += is_new
                    connection = None
                    if time.monotonic() > deadline:
                        raise RuntimeError(f"{key} has no answer") from None
                    continue
                is_new = False
                if answer.status == 201:
                    self.latencies.append(time.monotonic() - began)
                    self.accepted.append(answer.json()["id"])
                    break
                self.refusals += 1
                self.words[answer.json().get("detail", "")] += 1
                self.report.refusal(answer, "refuse")
                connection.close()
                connection = None
                if answer.status not in (429, 503):
                    return
                await asyncio.sleep(float(answer.fields.get("retry-after", 5)))
        if connection is not None:
            connection.close()


def settle(cluster, report, accepted):
    """Waits until all that was accepted has ended, and looks at each."""
    deadline = time.monotonic() + 300
    left = list(accepted)
    while left and time.monotonic() < deadline:
        left = [one for one in left
                if cluster.json(f"/v1/graphs/{one}")["status"] != "finished"]
        if left:
            time.sleep(0.5)
    report.row("refuse", "accepted graphs afterwards",
               f"{len(accepted):,}, of which {len(left)} are lost or have not succeeded")
    report.expect(not left, f"refuse: {len(left)} accepted graphs have not succeeded: {left[:5]}")
