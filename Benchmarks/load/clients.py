"""Thousands of connections at once: latency at an offered rate, and what is said beyond the limit.

The coordinator takes 1,000 connections, 500 from one address, and 16 more for health. A further
connection replaces the one that has waited longest; while all have a request, it is refused.
"""
import asyncio
import json
import random
import time

from load.client import JSON, Client, Closed, source
from load.report import mebibytes, milliseconds
from load.samples import percentile

LIMIT = 1_000
RESERVE = 16
GRAPH = b'{"operations":{"a":{"operation":"nothing"}}}'
P99_SECONDS = 1.0
CROWDS = 4
# What the last crowd may leave: the allocator keeps what those before it needed for the next.
LEFT_BYTES = 24 << 20


class Pool:
    """Clients that ask now and then, and connect again if their connection was replaced."""

    def __init__(self, port, count, report):
        self.port, self.report = port, report
        self.clients = [None] * count
        self.free = list(range(count))
        self.latencies = []
        self.replaced = self.cut = self.refused = 0
        self.wrong = []

    async def open(self):
        gate = asyncio.Semaphore(200)

        async def one(index):
            async with gate:
                self.clients[index] = await Client.connect(self.port, source(index))

        began = time.monotonic()
        await asyncio.gather(*(one(index) for index in range(len(self.clients))))
        self.report.say(f"{len(self.clients)} connections in {time.monotonic() - began:.1f} s")

    async def drive(self, rate, seconds):
        """Requests at this rate, each by a random client. Latency counts from when it was due."""
        began, number, running = time.monotonic(), 0, set()
        while (due := began + number / rate) < began + seconds:
            pause = due - time.monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
            number += 1
            if not self.free:
                continue
            place = random.randrange(len(self.free))
            self.free[place], self.free[-1] = self.free[-1], self.free[place]
            made = asyncio.ensure_future(self.ask(self.free.pop(), due, number))
            running.add(made)
            made.add_done_callback(running.discard)
        await asyncio.gather(*running)

    async def ask(self, index, due, number):
        kind = number % 5
        try:
            for _ in range(20):
                client = self.clients[index]
                try:
                    if client is None or not client.is_open:
                        self.replaced += 1
                        client = await Client.connect(self.port, source(index))
                        self.clients[index] = client
                    answer = await self.send(client, kind, f"{id(self)}-{number}")
                except (Closed, ConnectionError):
                    # Replaced just when the request was on its way: HTTP lets clients ask again.
                    self.cut += 1
                    continue
                break
            else:
                self.wrong.append("a request was cut 20 times")
                return
            if answer.status == 503:
                self.report.refusal(answer, "clients")
                self.refused += 1
                return
            self.latencies.append(time.monotonic() - due)
            if answer.status not in (200, 201):
                self.wrong.append(f"{answer.status} {answer.body[:200]!r}")
        except TimeoutError:
            self.wrong.append("a request had no answer within 120 s")
        finally:
            self.free.append(index)

    @staticmethod
    async def send(client, kind, key):
        if kind < 2:
            return await client.request("GET", "/healthz")
        if kind < 4:
            return await client.request("GET", "/v1/graphs?limit=20")
        return await client.request("POST", "/v1/graphs", GRAPH,
                                    JSON + f"Idempotency-Key: {key}\r\n")

    def close(self):
        for client in self.clients:
            if client is not None:
                client.close()


def run(cluster, report, options):
    cluster.start_worker(16)
    before = cluster.sampler.now("coordinator")
    for count in options.choose((10, 100, 1_000, 10_000), (10, 100, 1_000, 2_000)):
        asyncio.run(level(cluster, report, count, options))
    crowds = []
    for _ in range(CROWDS):
        asyncio.run(beyond(cluster, report, options))
        crowds.append(cluster.sampler.now("coordinator"))
    settle(cluster, before["descriptors"] + 2)
    after = cluster.sampler.now("coordinator")
    report.row("clients", "descriptors before, after all have left",
               f"{before['descriptors']}, {after['descriptors']}")
    report.row("clients", "memory before, after each crowd, and at the end",
               ", ".join(mebibytes(one["memory"]) for one in (before, *crowds, after)))
    report.expect(after["descriptors"] <= before["descriptors"] + 2,
                  "clients: descriptors of closed connections are left")
    report.expect(after["memory"] <= crowds[-2]["memory"] + LEFT_BYTES,
                  f"clients: the last crowd left more than {mebibytes(LEFT_BYTES)}")


async def level(cluster, report, count, options):
    pool = Pool(cluster.port, count, report)
    since = cluster.sampler.clock()
    rate = options.choose(500, 250)
    try:
        await pool.open()
        await pool.drive(rate, options.choose(15, 4))
        most = cluster.sampler.most("coordinator", "memory", since)
        descriptors = cluster.sampler.most("coordinator", "descriptors", since)
    finally:
        pool.close()
    p50, p99 = (percentile(pool.latencies, share) for share in (0.5, 0.99))
    report.row("clients", f"{count:,} clients, {rate} requests a second",
               f"p50 {milliseconds(p50)}, p99 {milliseconds(p99)}; {pool.replaced} connected "
               f"again, {pool.cut} cut, {pool.refused} refused; "
               f"at most {mebibytes(most)}, {descriptors} descriptors")
    report.expect(not pool.wrong, f"clients: of {count}, {len(pool.wrong)} had no answer: "
                                  f"{pool.wrong[:2]}")
    report.expect(p99 <= P99_SECONDS,
                  f"clients: with {count} clients, p99 is over {P99_SECONDS} s")


def settle(cluster, descriptors):
    """A closed connection leaves the coordinator as soon as its end has been read."""
    deadline = time.monotonic() + 20
    while cluster.sampler.now("coordinator")["descriptors"] > descriptors:
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)


async def wait_in_queue(port, index):
    client = await Client.connect(port, source(index))
    asked = client.request("GET", "/v1/queues/held?wait=60")
    return client, asyncio.ensure_future(asked)


async def beyond(cluster, report, options):
    """All connections have a request that waits, and others come."""
    held = cluster.submit({"operations": {"hold": {"external": True, "queue": "held"}}})["id"]
    # Those who have just left may still have their places.
    settle(cluster, 40)
    waiting = [await wait_in_queue(cluster.port, index) for index in range(LIMIT)]
    # One whose request has not been read yet makes room for whoever comes: it is refused, and
    # another one takes the place that is free when that one has left.
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        probe = await ask_once(cluster.port, "/v1/status")
        if probe is not None and probe.status == 503:
            break
        waiting.append(await wait_in_queue(cluster.port, len(waiting)))
    waiting = [(client, asked) for client, asked in waiting if not asked.done()]
    count = options.choose(1_000, 300)
    alone = [await ask_once(cluster.port, "/v1/status") for _ in range(100)]
    health = []

    async def monitor():
        for _ in range(20):
            began = time.monotonic()
            answer = await ask_once(cluster.port, "/healthz")
            health.append(time.monotonic() - began)
            report.expect(answer is not None and answer.status == 200,
                          "clients: while all connections are busy, health is not answered")

    _, *burst = await asyncio.gather(monitor(), *(
        ask_once(cluster.port, "/v1/status", source(index)) for index in range(count)))
    for name, answers in (("one after the other", alone), (f"{count:,} at once", burst)):
        mute = sum(one is None for one in answers)
        refused = [one for one in answers if one is not None]
        for one in refused:
            report.refusal(one, "clients")
        words = {one.json().get("detail") for one in refused}
        report.row("clients", f"beyond {LIMIT:,} busy connections, {name}",
                   f"{len(refused)} refused in words, {mute} cut without a word: "
                   + "; ".join(f"“{one}”" for one in words))
        report.expect(mute == 0, f"clients: {mute} of {len(answers)} that came {name} were cut "
                                 "without a word")
    report.row("clients", "health meanwhile", f"p99 {milliseconds(percentile(health, 0.99))}")
    body = json.dumps({"outcome": "succeeded"}).encode()
    # As all connections are busy, it is one of those that wait that must make room.
    leaver, unanswered = waiting.pop()
    unanswered.cancel()
    leaver.close()
    done = None
    deadline = time.monotonic() + 30
    while done is None or done.status == 503:
        if time.monotonic() > deadline:
            raise RuntimeError("nobody made room for the request that ends the waiting")
        done = await ask_once(cluster.port, f"/v1/graphs/{held}/operations/hold/complete",
                              method="POST", body=body)
    report.expect(done.status == 200, f"clients: complete was answered with {done.status}")
    answers = await asyncio.gather(*(asked for _, asked in waiting), return_exceptions=True)
    good = sum(getattr(one, "status", 0) == 200 for one in answers)
    report.expect(good == len(waiting), f"clients: of {len(waiting)} that waited, {good} were "
                                        "answered")
    for client, _ in waiting:
        client.close()


async def ask_once(port, path, address="127.0.0.100", method="GET", body=b""):
    """The answer over a connection of its own; nothing if it ends without a word."""
    client = None
    try:
        client = await Client.connect(port, address)
        return await client.request(method, path, body, (JSON if body else "")
                                    + "Connection: close\r\n", seconds=60)
    except (Closed, ConnectionError, TimeoutError):
        return None
    finally:
        if client is not None:
            client.close()
