"""Readers that do not read: 500 streams of events and logs, of which the coordinator takes 200,
while a graph of 100,000 operations runs; and a slow reader, which must be told what it missed.
"""
import contextlib
import json
import select
import socket
import threading
import time

from load.client import source
from load.cluster import until
from load.report import mebibytes

TAKEN = 200
ASKED = 500
# Memory that a stream may take while nobody reads it: what the kernel does not take from the
# coordinator, and one batch of events.
BYTES_PER_STREAM = 1 << 20
# A run beside 200 streams that are not read, against the same run without them.
SLOWER = 2.0


def graph(count):
    lines = [{"name": f"s{number}", "wait": "1ms"} for number in range(count)]
    # Something prints, for the log streams, for as long as the graph runs.
    lines.append({"name": "chatter", "run": "yes 0123456789012345678901234567890123456789 "
                                            "| head -c 20000000"})
    return "\n".join(json.dumps(line) for line in lines)


def run(cluster, report, options):
    count = options.choose(100_000, 10_000)
    cluster.start_worker(64)
    alone = timed(cluster, report, count)
    before = cluster.sampler.now("coordinator")
    since = cluster.sampler.clock()
    held = cluster.submit({"operations": {"hold": {"external": True}}})["id"]
    mute, refused = open_mute(cluster, held)
    report.row("streams", f"of {ASKED} streams", f"{len(mute)} are open, {len(refused)} refused")
    report.expect(len(mute) == TAKEN, f"streams: {len(mute)} are open, not {TAKEN}")
    for answer in refused:
        report.refusal(answer, "streams")
    if refused:
        report.row("streams", "words of the refusal", f"“{refused[0].json().get('detail')}”")
    # One of them makes room for a reader that reads slowly.
    mute.pop().close()
    slow = SlowReader(cluster)
    beside = timed(cluster, report, count)
    most = cluster.sampler.most("coordinator", "memory", since)
    closed = sum(is_closed(one) for one in mute)
    report.row("streams", f"{count:,} operations without and with {TAKEN} streams",
               f"{count / alone:,.0f} and {count / beside:,.0f} a second")
    report.row("streams", "memory of the coordinator before, and at most beside them",
               f"{mebibytes(before['memory'])}, {mebibytes(most)}; {closed} streams were closed, "
               "because nothing was taken for a minute")
    report.expect(beside <= SLOWER * alone + 1,
                  f"streams: beside them the graph took {beside:.1f} s, without {alone:.1f} s")
    grown = most - before["memory"]
    bound = TAKEN * BYTES_PER_STREAM + (64 << 20)
    report.expect(grown <= bound, f"streams: memory grew by {mebibytes(grown)}")
    slow.finish(report)
    for one in mute:
        one.close()
    log_gap(cluster, report)


def timed(cluster, report, count):
    began = time.monotonic()
    number = cluster.submit(graph(count), "application/jsonl")["id"]
    found = cluster.finish(number)
    report.expect(found["counts"]["succeeded"] == count + 1, f"streams: {found['counts']}")
    return time.monotonic() - began


class Raw:
    """An answer that was read by hand."""

    def __init__(self, text):
        head, _, self.body = text.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        pairs = (line.partition(":") for line in lines[1:])
        self.fields = {name.lower(): value.strip() for name, _, value in pairs}

    def json(self):
        return json.loads(self.body)


def open_stream(port, path, address, room=4_096):
    """A connection whose kernel keeps little for it, with its request sent."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    made.bind((address, 0))
    made.settimeout(30)
    made.connect(("127.0.0.1", port))
    made.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return made


def read_head(made):
    text = b""
    while b"\r\n\r\n" not in text:
        piece = made.recv(1)
        if not piece:
            break
        text += piece
    length = [line for line in text.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    size = int(length[0].split(b":")[1]) if length else 0
    while size > 0 and (piece := made.recv(size)):
        text += piece
        size -= len(piece)
    return Raw(text)


def open_mute(cluster, held):
    """Three of four read events, the fourth the log of a graph; all of them read only the head."""
    mute, refused = [], []
    for index in range(ASKED):
        path = "/v1/events" if index % 4 else f"/v1/graphs/{held}/log?follow=true"
        made = open_stream(cluster.port, path, source(index, 250))
        answer = read_head(made)
        if answer.status == 200:
            mute.append(made)
        else:
            refused.append(answer)
            made.close()
    return mute, refused


def wait_for_stream(cluster, path, address):
    """A stream, as soon as the coordinator has noticed that another reader has left."""
    made = []

    def opens():
        made.append(open_stream(cluster.port, path, address))
        return read_head(made[-1]).status == 200

    until(opens, "a stream that was closed makes no room")
    for one in made[:-1]:
        one.close()
    return made[-1]


def is_closed(made):
    poll = select.poll()
    poll.register(made, select.POLLRDHUP)
    return bool(poll.poll(0))


class SlowReader:
    """Takes a little at a time until the graph has ended, and then all that there is."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.made = wait_for_stream(cluster, "/v1/events", "127.0.0.90")
        self.text = bytearray()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.stopped = threading.Event()
        self.thread.start()

    def read(self):
        # A reader that takes nothing for a minute is closed: this one takes a little.
        while not self.stopped.wait(1):
            with contextlib.suppress(TimeoutError):
                self.text += self.made.recv(2_048)

    def finish(self, report):
        self.stopped.set()
        self.thread.join()
        last = self.cluster.json("/v1/status")["lastEvent"]
        self.made.settimeout(30)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and newest(self.text) < last:
            piece = self.made.recv(1 << 20)
            if not piece:
                report.expect(False, "streams: the slow reader was cut")
                break
            self.text += piece
        self.made.close()
        seen, gaps = parse(self.text)
        report.expect(bool(seen) and max(seen) >= last, "streams: the slow reader came to no end")
        first = min(seen)
        covered = sum(gap["last"] - gap["first"] + 1 for gap in gaps)
        said = set(seen)
        for gap in gaps:
            said.update(range(gap["first"], gap["last"] + 1))
        missed = [number for number in range(first, last + 1) if number not in said]
        report.row("streams", "a reader that takes 2 KiB a second",
                   f"got {len(seen):,} events, and {len(gaps)} gaps of {covered:,} events")
        report.expect(not missed, f"streams: the slow reader misses {len(missed)} events without "
                                  f"a word: {missed[:5]}")


def newest(text):
    """The number of the last event that has come as a whole; 0 if there is none."""
    start = text.rfind(b"id: ", 0, max(0, text.rfind(b"\n\n")))
    return int(text[start + 4:text.index(b"\n", start)]) if start >= 0 else 0


def parse(text):
    """The numbers of the events in a stream, and the gaps in it."""
    seen, gaps = set(), []
    for block in bytes(text).split(b"\n\n")[:-1]:
        lines = [line for line in block.split(b"\n") if b": " in line]
        fields = dict(line.split(b": ", 1) for line in lines)
        if fields.get(b"event") == b"gap":
            gaps.append(json.loads(fields[b"data"]))
        if b"id" in fields:
            seen.add(int(fields[b"id"]))
    return seen, gaps


def log_gap(cluster, report):
    """An operation prints 40 MB while a reader of its log sleeps."""
    size = 40_000_000
    number = cluster.submit({"operations": {
        "wait": {"external": True},
        "print": {"run": f"yes 01234567890123456789 | head -c {size}", "dependencies": ["wait"]},
    }})["id"]
    path = f"/v1/graphs/{number}/operations/print/log?follow=true"
    made = wait_for_stream(cluster, path, "127.0.0.92")
    cluster.ask("POST", f"/v1/graphs/{number}/operations/wait/complete",
                '{"outcome": "succeeded"}', {"Content-Type": "application/json"})
    cluster.finish(number)
    text = bytearray()
    while b"event: end" not in text:
        piece = made.recv(1 << 20)
        if not piece:
            break
        text += piece
    made.close()
    got = missed = 0
    for block in bytes(text).split(b"\n\n"):
        if b"event: log" in block:
            data = json.loads(block.split(b"data: ", 1)[1])
            got += len(data["text"])
            missed += data.get("missedBytes", 0)
    report.row("streams", "a log of 40 MB for a reader that sleeps meanwhile",
               f"{got:,} bytes, and {missed:,} said to be missing")
    report.expect(got + missed == size, f"streams: a log of {size} bytes came as {got} and "
                                        f"{missed} that are missing")
