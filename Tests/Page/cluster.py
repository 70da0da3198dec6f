"""The coordinator and the workers that the tests run; scripts/check-page starts the broker."""

import os
import pathlib
import signal
import socket
import subprocess
import urllib.error
import urllib.request

from .api import Api, wait_for

TOKENS = {"ann": ("operate", "token-of-ann-0123456789abcdef"),
          "bob": ("read", "token-of-bob-0123456789abcdef"),
          "sue": ("submit", "token-of-sue-0123456789abcdef")}


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Cluster:
    """A coordinator at a fixed address, and workers by name."""

    def __init__(self, scratch, programs, broker, workers_broker, keep=None):
        self.scratch = pathlib.Path(scratch)
        self.programs = pathlib.Path(programs)
        self.broker = broker
        self.workers_broker = workers_broker
        self.keep = ["--keep", keep] if keep else []
        self.url = f"http://127.0.0.1:{free_port()}"
        self.coordinator = None
        self.workers = {}
        self.store = self.scratch / "operon.db"
        # Further variables of what is started.
        self.variables = {}
        self.tokens = self.scratch / "tokens"
        self.tokens.write_text("".join(
            f"{name}:{token} {scope}\n" for name, (scope, token) in TOKENS.items()))
        self.tokens.chmod(0o600)
        self.api = Api(self.url, TOKENS["ann"][1])

    def environment(self):
        """Nothing of the user's, so that no other coordinator or token is found."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.scratch), "LANG": "C.UTF-8",
                "XDG_STATE_HOME": str(self.scratch / "state"), **self.variables}

    def start(self, name, *arguments):
        """Starts a program; what it says goes to a file of its own."""
        with open(self.scratch / f"{name}.out", "ab") as output:
            return subprocess.Popen(
                [str(self.programs / arguments[0]), *arguments[1:]], stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, env=self.environment(), cwd=self.scratch)

    def start_coordinator(self):
        """Starts the coordinator, again with what its store has kept."""
        self.coordinator = self.start(
            "coordinator", "operon", "coordinator", "--broker", self.broker,
            "--store", str(self.store),
            "--listen", self.url.removeprefix("http://"), "--tokens", str(self.tokens), *self.keep)
        wait_for("the coordinator is ready", self.is_ready)

    def is_ready(self):
        """Whether the coordinator takes requests."""
        if self.coordinator.poll() is not None:
            raise AssertionError(f"the coordinator ended: {self.said('coordinator')}")
        try:
            with urllib.request.urlopen(self.url + "/readyz", timeout=10) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def said(self, name):
        """The last words of a program."""
        return (self.scratch / f"{name}.out").read_text(errors="replace")[-2000:]

    def start_worker(self, name, *arguments, log=None):
        """Starts a worker and waits until the coordinator knows it; `log` names its file."""
        log = log or name
        self.workers[name] = self.start(log, "operon-worker", "--broker", self.workers_broker,
                                        "--name", name, *arguments)

        def is_known():
            if self.workers[name].poll() is not None:
                raise AssertionError(f"the worker ended: {self.said(log)}")
            return any(worker["name"] == name for worker in self.api.get("workers")["workers"])
        wait_for(f"worker {name} is known", is_known)

    def end(self, program, how=signal.SIGTERM, seconds=60):
        """Ends a program and waits for its end."""
        if program is None or program.poll() is not None:
            return
        program.send_signal(how)
        try:
            program.wait(seconds)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()

    def kill_coordinator(self):
        """The coordinator dies at once."""
        self.end(self.coordinator, signal.SIGKILL)

    def restart_coordinator(self):
        """The coordinator ends in good order and comes back."""
        self.end(self.coordinator)
        self.start_coordinator()

    def stop(self):
        """Ends everything that was started."""
        for worker in self.workers.values():
            self.end(worker, signal.SIGKILL)
        self.end(self.coordinator, seconds=10)

    def run(self, *arguments, token="ann"):
        """What a command of `operon` prints."""
        file = self.scratch / f"token-of-{token}"
        file.write_text(TOKENS[token][1] + "\n")
        file.chmod(0o600)
        return subprocess.run(
            [str(self.programs / "operon"), *arguments, "--coordinator", self.url,
             "--token-file", str(file)], check=True, capture_output=True, text=True,
            env=self.environment(), timeout=120).stdout

    def gate(self, name):
        """A command that runs until `open_gate` is called, and a line that it prints before."""
        file = self.scratch / f"gate-{name}"
        return f"echo waiting at {name}; while [ ! -e {file} ]; do sleep 0.1; done"

    def open_gate(self, name):
        """Lets the commands at a gate go on."""
        (self.scratch / f"gate-{name}").touch()
