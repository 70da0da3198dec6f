"""A broker, a coordinator with a store and its API on loopback, and workers, all of our own."""
import http.client
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import subprocess
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BROKER = REPOSITORY / "scripts" / "lib" / "broker.sh"
# A start takes a second, and much longer while compilers use the machine.
START_SECONDS = 60


def raise_descriptors():
    """As many descriptors as this process may have, and the programs that it starts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


class Broker:
    def __init__(self, folder):
        self.folder = folder
        subprocess.run([BROKER, "start", folder], check=True)
        self.url = subprocess.run([BROKER, "url", folder], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout.strip()

    def evaluate(self, expression):
        """What the broker's Erlang makes of an expression."""
        return subprocess.run([BROKER, "eval", self.folder, expression], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()

    def connections(self):
        return int(self.evaluate("length(rabbit_networking:connections_local())."))

    def close_connections(self):
        """As `rabbitmqctl close_all_connections` does, but all of them at the same time."""
        self.evaluate('[spawn(fun() -> rabbit_networking:close_connection(P, "load") end) || '
                      "P <- rabbit_networking:connections_local()], ok.")

    def stop(self):
        subprocess.run([BROKER, "stop", self.folder], check=False)


class Cluster:
    """A coordinator with a prefix and a store of its own."""

    def __init__(self, name, folder, binaries, broker, sampler, output, keep="100000"):
        self.folder = folder / name
        self.folder.mkdir()
        self.output = output
        self.binaries, self.broker, self.sampler, self.keep = binaries, broker, sampler, keep
        self.prefix = f"load{random.getrandbits(48):x}."
        self.port = free_port()
        self.programs = {}
        self.number = 0

    def __enter__(self):
        subprocess.run([self.binaries / "operon", "trust", "init", "--output", "quiet",
                        "--trust", self.folder / "trust"], check=True)
        try:
            self.start("coordinator", [
                self.binaries / "operon", "coordinator", "--prefix", self.prefix,
                "--store", self.folder / "operon.db", "--listen", f"127.0.0.1:{self.port}",
                "--allow-any-user", "--keep", self.keep])
            until(lambda: self.ask("GET", "/readyz")[0] == 200, "the coordinator is not ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        """Stops all, and keeps what they said: the folder is removed at the end of the run."""
        errors = []
        for name in reversed(list(self.programs)):
            try:
                self.stop(name)
            except RuntimeError as error:
                errors.append(error)
        for pattern in ("*.log", "*.out"):
            for one in self.folder.glob(pattern):
                shutil.copy(one, self.output / f"{self.folder.name}-{one.name}")
        if errors:
            raise errors[0]

    def start(self, name, command):
        """Standard output goes to a file of its own beside the messages."""
        environment = {**os.environ, "OPERON_BROKER": self.broker.url,
                       "OPERON_TRUST": str(self.folder / "trust"),
                       "XDG_STATE_HOME": str(self.folder / "state")}
        with (self.folder / f"{name}.out").open("wb") as out, \
                (self.folder / f"{name}.log").open("ab") as log:
            program = subprocess.Popen(
                [str(one) for one in command], stdin=subprocess.DEVNULL, stdout=out, stderr=log,
                env=environment, start_new_session=True)
        self.programs[name] = program
        self.sampler.watch(name, program.pid)
        return program

    def start_worker(self, slots, name="worker"):
        program = self.start(name, [self.binaries / "operon-worker", "--prefix", self.prefix,
                                    "--slots", str(slots), "--name", name, "--drain-timeout", "2"])
        until(lambda: any(one["name"] == name for one in self.json("/v1/workers")["workers"]),
              f"{name} is not welcomed")
        return program

    def start_many(self, count, name="many"):
        """So many workers in one process; gives how long it took until all were welcomed."""
        began = time.monotonic()
        self.start(name, [self.binaries / "many-workers", "--broker", self.broker.url,
                          "--prefix", self.prefix, "--count", str(count)])
        out = self.folder / f"{name}.out"
        until(lambda: f"welcomed {count}\n" in out.read_text(), f"not all {count} are welcomed",
              seconds=180)
        return time.monotonic() - began

    def kill(self, name):
        program = self.programs.pop(name)
        program.send_signal(signal.SIGKILL)
        program.wait()
        self.sampler.forget(name)

    def stop(self, name):
        program = self.programs.pop(name)
        self.sampler.forget(name)
        if program.poll() is not None:
            raise RuntimeError(f"{name} ended by itself with {program.returncode}: "
                               + (self.folder / f"{name}.log").read_text()[-2_000:])
        program.terminate()
        try:
            program.wait(timeout=60)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
            raise RuntimeError(f"{name} did not end within 60 s of SIGTERM") from None

    def ask(self, method, path, body=None, fields=None):
        """The status, the header fields and the text of an answer; 0 if there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, fields or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, {}, ""
        finally:
            connection.close()

    def json(self, path):
        status, _, text = self.ask("GET", path)
        if status != 200:
            raise RuntimeError(f"GET {path} was answered with {status}: {text[:500]}")
        return json.loads(text)

    def submit(self, graph, kind="application/json"):
        """The graph as the coordinator shows it."""
        body = graph if isinstance(graph, str) else json.dumps(graph)
        self.number += 1
        status, _, text = self.ask("POST", "/v1/graphs", body.encode(), {
            "Content-Type": kind, "Idempotency-Key": f"{self.prefix}{self.number}"})
        if status != 201:
            raise RuntimeError(f"a graph was answered with {status}: {text[:500]}")
        return json.loads(text)

    def finish(self, graph, seconds=600):
        """Waits for the end of a graph, and gives how it then looks."""
        found = {}

        def has_ended():
            found.update(self.json(f"/v1/graphs/{graph}"))
            return found["status"] in ("finished", "failed", "cancelled")

        until(has_ended, f"graph {graph} has not ended", seconds=seconds, pause=0.1)
        return found

    def metric(self, start):
        """All lines of /metrics that begin so, as pairs of name with labels and value."""
        _, _, text = self.ask("GET", "/metrics")
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if line.startswith(start))
        return {name: float(value) for name, value in lines}


def free_port():
    """A port that the kernel gives to no connection by itself."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        end = int(file.read().split()[0])
    for port in random.sample(range(10000, max(end, 11000)), 200):
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise RuntimeError("no free port below the range of the kernel")


def until(is_true, sentence, seconds=START_SECONDS, pause=0.05):
    """Asks again and again, as another process gives no signal of what it has done."""
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{sentence} within {seconds} s")
        time.sleep(pause)
