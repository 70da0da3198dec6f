"""Processes that die at once and are started again, and the broker."""
import os
import pathlib
import signal
import subprocess

import psutil

BROKER = pathlib.Path(__file__).resolve().parents[3] / "scripts" / "lib" / "broker.sh"


class Service:
    """A program in a session of its own, started again with the same command after each death."""

    def __init__(self, name, command, folder, environment=None):
        self.name = name
        self.command = [str(one) for one in command]
        self.log = folder / f"{name}.log"
        self.environment = {**os.environ, **(environment or {})}
        self.process = None

    def start(self):
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment, start_new_session=True)

    def family(self):
        """The process and all that it started, directly or not."""
        if self.process is None:
            return []
        try:
            main = psutil.Process(self.process.pid)
            return [main, *main.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def kill_machine(self, family):
        """Kills the family and what it starts meanwhile, as if the machine were gone.

        All are stopped first, so none of them sees the end of another. Gives their ids.
        """
        found = {}
        while family:
            for one in family:
                found[one.pid] = one
                send(one, signal.SIGSTOP)
            family = [one for one in self.family() if one.pid not in found]
        for one in found.values():
            send(one, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
        return set(found)

    def kill_process(self):
        """Kills the main process alone."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.kill_machine(self.family())


def send(process, number):
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        pass


class Broker:
    """A RabbitMQ of its own, which keeps its disk when it is killed."""

    def __init__(self, folder):
        self.folder = folder / "broker"

    def call(self, command):
        done = subprocess.run([BROKER, command, self.folder], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"the broker: {command} failed")
        return done.stdout.strip()

    def start(self):
        """The first time, and after a kill; returns when it takes logins."""
        is_new = not self.folder.exists()
        self.folder.mkdir(exist_ok=True)
        self.call("start" if is_new else "restart")

    def url(self):
        return self.call("url")

    def family(self):
        """The broker's process; a list, as of a service."""
        return [psutil.Process(int(self.call("pid")))]

    def stop(self):
        self.call("stop")
