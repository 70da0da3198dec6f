"""What processes take, once a second: memory, descriptors, threads and processor time."""
import json
import os
import threading
import time

PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = os.sysconf("SC_CLK_TCK")
MIB = 1 << 20


def read(pid):
    """What a process has now; nothing if it has ended."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            resident = int(file.read().split()[1]) * PAGE
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name, in brackets, may have spaces.
            fields = file.read().rsplit(")", 1)[1].split()
        return {"memory": resident, "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
                "threads": int(fields[17]), "cpu": (int(fields[11]) + int(fields[12])) / TICK}
    except (OSError, IndexError):
        return None


class Sampler:
    """Reads all watched processes each second, and writes each reading as a line of JSON."""

    def __init__(self, output):
        self.output = output.open("w")
        self.watched = {}
        self.rows = []
        self.lock = threading.Lock()
        self.end = threading.Event()
        self.began = time.monotonic()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def watch(self, name, pid):
        with self.lock:
            self.watched[name] = pid

    def forget(self, name):
        with self.lock:
            self.watched.pop(name, None)

    def now(self, name):
        with self.lock:
            pid = self.watched[name]
        found = read(pid)
        if found is None:
            raise RuntimeError(f"{name} has ended by itself")
        return found

    def run(self):
        while not self.end.wait(1):
            self.sample()

    def sample(self):
        with self.lock:
            watched = list(self.watched.items())
        for name, pid in watched:
            found = read(pid)
            if found is not None:
                row = {"at": time.monotonic() - self.began, "name": name, **found}
                self.rows.append(row)
                self.output.write(json.dumps(row) + "\n")
        self.output.flush()

    def clock(self):
        return time.monotonic() - self.began

    def of(self, name, since=0.0):
        return [row for row in list(self.rows) if row["name"] == name and row["at"] >= since]

    def most(self, name, what, since=0.0):
        return max([row[what] for row in self.of(name, since)] + [self.now(name)[what]])

    def stop(self):
        self.end.set()
        self.thread.join()
        self.output.close()


def percentile(values, share):
    """The value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def fit(points):
    """The slope of the line with the least squares through these pairs."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
