"""Operon: a coordinator with a store, and two workers with two slots each, over RabbitMQ.

Its settings are the defaults but for one: each worker has a state directory, as under systemd. So
its next process knows at once what the one before left behind, and no lease has to run out.
A graph is acknowledged when the coordinator has answered its submission, which is repeated with the
same idempotency key until then.
"""
import http.client
import json
import pathlib
import random
import socket
import subprocess
import sys
import time

from kills.processes import Broker, Service

STEP = pathlib.Path(__file__).with_name("step.py")


class System:
    kinds = ("machine", "absent", "process", "coordinator", "broker")

    def __init__(self, setup):
        self.setup = setup
        self.broker = Broker(setup.folder)
        self.socket = setup.folder / "api.sock"
        self.services = []
        self.numbers = {}
        self.acknowledged = set()

    def version(self):
        done = subprocess.run([self.setup.binaries / "operon", "--version"], capture_output=True,
                              text=True, check=True)
        return done.stdout.strip()

    def start(self):
        self.broker.start()
        prefix = f"kills{random.getrandbits(48):x}."
        trust = self.setup.folder / "trust"
        if not trust.exists():
            subprocess.run([self.setup.binaries / "operon", "trust", "init", "--output", "quiet",
                            "--trust", trust], check=True)
        environment = {"OPERON_BROKER": self.broker.url(), "OPERON_TRUST": str(trust)}
        self.coordinator = Service("coordinator", [
            self.setup.binaries / "operon", "coordinator", "--prefix", prefix, "--verbose",
            "--store", self.setup.folder / "kept.db", "--listen", f"unix:{self.socket}",
        ], self.setup.folder, environment)
        self.workers = [Service(f"worker{number}", [
            self.setup.binaries / "operon-worker", "--prefix", prefix, "--slots", "2",
            "--verbose", "--name", f"worker{number}",
            "--state-directory", self.setup.folder / f"state{number}",
        ], self.setup.folder, environment) for number in range(self.setup.workers)]
        self.services = [self.coordinator, *self.workers]
        for one in self.services:
            one.start()
        slots = 2 * self.setup.workers
        self.setup.until(lambda: self.answer("GET", "/v1/status").get("slots") == slots)

    def submit(self, graph):
        """Returns when the coordinator has acknowledged it."""
        command = [sys.executable, "-I", "-S", STEP, self.setup.ledger]
        operations = [
            {"name": name, "command": [*map(str, command), name, f"{seconds:.3f}"],
             "dependencies": before} for name, seconds, before in graph.operations]
        body = json.dumps({"name": f"graph-{graph.name}", "operations": operations})
        while graph.name not in self.numbers:
            answer = self.answer("POST", "/v1/graphs", body, {
                "Content-Type": "application/json", "Idempotency-Key": f"graph-{graph.name}"})
            if "id" in answer:
                self.numbers[graph.name] = answer["id"]
                self.acknowledged.update(name for name, _, _ in graph.operations)
            else:
                time.sleep(0.2)

    def answer(self, method, path, body=None, headers={}):
        """The answer of the API, or nothing while it has none."""
        connection = http.client.HTTPConnection("localhost")
        try:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(10)
            connection.sock.connect(str(self.socket))
            connection.request(method, path, body, headers)
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            return {}
        finally:
            connection.close()

    def outcomes(self):
        """Of the operations that the coordinator says have ended."""
        found = {}
        for name, number in self.numbers.items():
            states = self.answer("GET", f"/v1/graphs/{number}/states").get("runs", [])
            index = 0
            for run in states:
                for one in range(index, index + run["count"]):
                    if run["state"] in ("succeeded", "failed", "cancelled", "skipped"):
                        found[f"{name}.{one}"] = run["state"]
                index += run["count"]
        return found

    def help(self):
        """What a person would do if a run hung: start everything again."""
        for one in self.services:
            one.kill_machine(one.family())
        for one in self.services:
            one.start()

    def stop(self):
        for one in reversed(self.services):
            one.stop()
        self.broker.stop()
