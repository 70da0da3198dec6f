"""Operon: `operon run` with workers over RabbitMQ, or alone in one process.

The clock is the coordinator's: from the first operation that it sends to the last outcome. The
time of the whole command, with its start, the file and the report, is kept as `elapsed`.
"""
import json
import pathlib
import random
import subprocess
import time


class System:
    def __init__(self, setup):
        self.setup = setup
        self.is_local = setup.options.get("local", False)
        self.has_processes = setup.options.get("processes", False)
        self.prefix = f"peers{random.getrandbits(48):x}."
        self.workers = []
        self.elapsed = 0.0

    def prepare(self):
        if self.is_local:
            return
        self.trust = self.setup.folder / "trust"
        if not self.trust.exists():
            subprocess.run([self.setup.binaries / "operon", "trust", "init", "--output", "quiet",
                            "--trust", self.trust], check=True)
        # Two slots are two workers, and eight are four with two slots each.
        count = min(self.setup.slots, 4)
        logs = [self.setup.folder / f"worker{number}.log" for number in range(count)]
        for log in logs:
            command = [self.setup.binaries / "operon-worker", "--broker", self.setup.broker,
                       "--prefix", self.prefix, "--slots", str(self.setup.slots // count),
                       "--name", log.stem, "--verbose", "--trust", self.trust]
            with log.open("w") as output:
                self.workers.append(subprocess.Popen(command, stdout=output, stderr=output))
        # The first run makes the exchanges for which the workers look.
        self.run([(0.0, [])])
        deadline = time.monotonic() + 30
        while not all(": connected (" in log.read_text() for log in logs):
            if time.monotonic() > deadline:
                raise RuntimeError("a worker did not connect within 30 s")
            time.sleep(0.02)

    def run(self, graph):
        file = self.setup.folder / "graph.jsonl"
        times = {seconds for seconds, _ in graph if seconds > 0}
        with file.open("w") as output:
            for index, (seconds, before) in enumerate(graph):
                operation = {"name": f"o{index}", **self.work(seconds, len(times) == 1)}
                if before:
                    operation["dependencies"] = [f"o{one}" for one in before]
                output.write(json.dumps(operation, separators=(",", ":")) + "\n")
        command = [self.setup.binaries / "operon", "run", file, "--output", "json"]
        if self.is_local:
            command += ["--local", "--slots", str(self.setup.slots)]
        else:
            command += ["--broker", self.setup.broker, "--prefix", self.prefix,
                        "--trust", self.trust]
        report = self.setup.folder / "report.json"
        started = time.perf_counter()
        with report.open("w") as output:
            done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True)
        self.elapsed = time.perf_counter() - started
        if done.returncode != 0:
            raise RuntimeError(f"operon ended with {done.returncode}: {done.stderr[-500:]}")
        return makespan(report, len(graph))

    def work(self, seconds, is_uniform):
        """What an operation does; `is_uniform` if all take the same time.

        A `wait` holds its time, and Operon would use it. Where times differ, Operon is told what it
        assumes of a command: a second. Where all are equal, it would learn the time from the first.
        """
        if self.has_processes:
            return {"command": ["sleep", f"{seconds:.6f}"] if seconds > 0 else ["/bin/true"]}
        if seconds == 0:
            return {"operation": "nothing"}
        wait = {"wait": f"{round(seconds * 1e9)}ns"}
        return wait if is_uniform else {**wait, "expectedDuration": "1s"}

    def stop(self):
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.wait(timeout=30)


def makespan(report: pathlib.Path, count):
    """From the first line of the report; the operations follow in lines of their own."""
    with report.open() as lines:
        head = json.loads(lines.readline() + "]}")
    if head["counts"]["succeeded"] != count:
        raise RuntimeError(f"not all succeeded: {head['counts']}")
    return head["makespan"]
