"""The alert rules: a real Prometheus fires them for a real cluster in trouble."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import unittest
import urllib.parse
import urllib.request

from Page.api import ApiError, wait_for
from Page.cluster import TOKENS, Cluster, free_port

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# What takes an hour takes fifteen seconds: the rules are the same otherwise.
FASTER = 240
# How often Prometheus scrapes and evaluates, in milliseconds: as an interval of a minute, sped up.
INTERVAL = 60_000 // FASTER
UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


def faster(text):
    """The rules with all their durations divided."""
    def divide(match):
        milliseconds = int(match[2]) * UNITS[match[3]] // FASTER
        assert milliseconds > 0, match[0]
        return f"{match[1]}{milliseconds}ms{match[4]}"
    text = re.sub(r"(\bfor: )(\d+)(ms|s|m|h)($)", divide, text, flags=re.M)
    return re.sub(r"(\[)(\d+)(ms|s|m|h)(\])", divide, text)


class AlertTests(unittest.TestCase):
    """A cluster that has one trouble after the other."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(os.environ["OPERON_TEST_SCRATCH"]) / "alerts"
        cls.scratch.mkdir()
        cls.cluster = Cluster(cls.scratch, os.environ["OPERON_BIN"],
                              os.environ["OPERON_TEST_BROKER"],
                              os.environ["OPERON_TEST_WORKER_BROKER"])
        cls.addClassCleanup(cls.cluster.stop)
        cls.disk = cls.scratch / "disk"
        cls.disk.mkdir()
        cls.cluster.store = cls.disk / "operon.db"
        cls.cluster.start_coordinator()
        cls.start_prometheus()

    @classmethod
    def start_prometheus(cls):
        """Starts Prometheus with the rules, and with what docs/DEPLOY.md has as configuration."""
        rules = faster((ROOT / "deploy/observability/alerts.yaml").read_text(encoding="utf-8"))
        (cls.scratch / "alerts.yaml").write_text(rules, encoding="utf-8")
        token = cls.scratch / "prometheus.token"
        token.write_text(TOKENS["bob"][1], encoding="utf-8")
        (cls.scratch / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": f"{INTERVAL}ms", "scrape_timeout": f"{INTERVAL}ms",
                       "evaluation_interval": f"{INTERVAL}ms"},
            "rule_files": ["alerts.yaml"],
            "scrape_configs": [{
                "job_name": "operon",
                "authorization": {"credentials_file": str(token)},
                "static_configs": [{"targets": [cls.cluster.url.removeprefix("http://")]}],
            }],
        }), encoding="utf-8")
        cls.url = f"http://127.0.0.1:{free_port()}"
        cls.prometheus = subprocess.Popen(
            [os.environ["OPERON_TEST_PROMETHEUS"], f"--config.file={cls.scratch}/prometheus.yml",
             f"--storage.tsdb.path={cls.scratch}/tsdb",
             f"--web.listen-address={cls.url.removeprefix('http://')}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(cls.scratch / "prometheus.out", "wb"))
        cls.addClassCleanup(cls.end_prometheus)
        wait_for("Prometheus has scraped the coordinator",
                 lambda: cls.query("up") == 1)

    @classmethod
    def end_prometheus(cls):
        """Ends Prometheus by its process."""
        cls.prometheus.kill()
        cls.prometheus.wait()

    @classmethod
    def ask(cls, path):
        """The data of an answer of Prometheus."""
        def answer():
            if cls.prometheus.poll() is not None:
                raise AssertionError((cls.scratch / "prometheus.out").read_text())
            try:
                with urllib.request.urlopen(f"{cls.url}/api/v1/{path}", timeout=10) as answer:
                    return json.loads(answer.read())["data"]
            except OSError:
                return None
        return wait_for(f"Prometheus answers {path}", answer)

    @classmethod
    def query(cls, expression):
        """The value of an expression; `None`: it has none yet."""
        data = cls.ask("query?query=" + urllib.parse.quote(expression))
        return float(data["result"][0]["value"][1]) if data["result"] else None

    def firing(self):
        """The names of the alerts that fire."""
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"]
                if alert["state"] == "firing"}

    def wait_firing(self, name, seconds=120):
        """Waits until an alert fires."""
        wait_for(f"{name} fires", lambda: name in self.firing(), seconds)

    def wait_quiet(self, name, seconds=120):
        """Waits until an alert does not fire any more."""
        wait_for(f"{name} is over", lambda: name not in self.firing(), seconds)

    def test_rules_fire_and_end(self):
        """Each trouble fires its alert, which ends with it. A cluster without trouble fires none."""
        # Longer than any rule waits that needs no operations.
        wait_for("Prometheus has scraped for 5 s",
                 lambda: self.query("count_over_time(up[6s])") >= 5_000 // INTERVAL)
        self.assertEqual(self.firing(), set())
        self.no_worker()
        self.backlog_grows()
        self.attempts_are_lost()
        self.no_broker()
        self.no_coordinator()
        self.store_is_full()

    def no_worker(self):
        """Operations wait, and no worker comes."""
        self.cluster.api.submit("waits", [{"name": "one", "run": "true"}])
        self.wait_firing("OperonNoWorkers")
        self.cluster.start_worker("worker-a", "--slots", "2")
        self.cluster.api.wait_status("waits", "finished")
        self.wait_quiet("OperonNoWorkers")

    def backlog_grows(self):
        """More comes than the workers can run."""
        stop = threading.Event()

        def submit():
            number = 0
            while not stop.wait(0.5):
                number += 1
                self.cluster.api.submit(f"flood-{number}", [
                    {"name": f"o{index}", "run": "sleep 0.2", "queue": "flood"}
                    for index in range(20)])
        flood = threading.Thread(target=submit)
        flood.start()
        try:
            self.wait_firing("OperonBacklogGrows")
        finally:
            stop.set()
            flood.join()
        for graph in self.cluster.api.get("graphs?limit=1000")["graphs"]:
            if graph["name"].startswith("flood"):
                self.cluster.api.post(f"graphs/{graph['id']}/cancel")
        self.wait_quiet("OperonBacklogGrows")

    def attempts_are_lost(self):
        """A worker dies with what it runs."""
        self.cluster.api.submit("dies", [
            {"name": f"o{index}", "run": self.cluster.gate("dies")} for index in range(2)])
        self.cluster.api.wait_state("dies", "o1", "executing")
        self.cluster.end(self.cluster.workers["worker-a"], signal.SIGKILL)
        self.wait_firing("OperonAttemptsLost")
        self.wait_firing("OperonWorkersLost")
        self.cluster.open_gate("dies")
        self.cluster.start_worker("worker-b", "--slots", "2")
        self.cluster.api.wait_status("dies", "finished")

    def store_is_full(self):
        """The disk of the store is full, and then it is not."""
        # Seen by the coordinator alone, which runs in a mount namespace of its own.
        self.cluster.end(self.cluster.coordinator)
        kept = self.scratch / "kept.db"
        shutil.copy(self.cluster.store, kept)
        self.start_coordinator_on_small_disk(kept)
        disk = pathlib.Path(f"/proc/{self.cluster.coordinator.pid}/root{self.disk}")
        filler = disk / "filler"
        with open(filler, "wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass
        try:
            # More than what the files of the store have left to be written again.
            self.cluster.api.submit("large", [
                {"name": f"o{index}", "run": f"echo {'x' * 1_000}"} for index in range(20_000)])
        except (ApiError, OSError):
            # It is refused, or waits in vain.
            pass
        self.wait_firing("OperonStoreDown")
        filler.unlink()
        self.wait_quiet("OperonStoreDown")

    def start_coordinator_on_small_disk(self, kept):
        """Starts the coordinator on a disk of 128 MiB with this store."""
        mount = (f"mount -t tmpfs -o size=128m tmpfs {self.disk} && "
                 f"cp {kept} {self.cluster.store} && exec \"$0\" \"$@\"")
        start = self.cluster.start

        def start_in_namespace(name, *arguments):
            programs = self.cluster.programs
            namespace = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--map-root-user"])
            with open(self.scratch / f"{name}.out", "ab") as output:
                return subprocess.Popen(
                    [*namespace, "sh", "-c", mount, str(programs / arguments[0]), *arguments[1:]],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    env=self.cluster.environment(), cwd=self.scratch)
        self.cluster.start = start_in_namespace
        try:
            self.cluster.start_coordinator()
        finally:
            self.cluster.start = start

    def no_coordinator(self):
        """The coordinator is gone, and comes back."""
        self.cluster.kill_coordinator()
        self.wait_firing("OperonCoordinatorDown")
        self.cluster.start_coordinator()
        self.wait_quiet("OperonCoordinatorDown")

    def no_broker(self):
        """The broker dies, and comes back."""
        broker = str(ROOT / "scripts/lib/broker.sh")
        subprocess.run([broker, "kill9", os.environ["OPERON_TEST_BROKER_FOLDER"]], check=True)
        self.wait_firing("OperonBrokerDown")
        subprocess.run([broker, "restart", os.environ["OPERON_TEST_BROKER_FOLDER"]], check=True)
        self.wait_quiet("OperonBrokerDown")
